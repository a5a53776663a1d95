"""Carries compiled kernels between GPU hosts of one kind, so that a server on a bare host does not compile for minutes.

usage: python3 tests/gpu/kernel_cache.py pack|unpack FILE.tar.xz
"""

from __future__ import annotations

import sys
import tarfile
from pathlib import Path

#: What Triton, tvm-ffi, flashinfer and the driver keep, below the home folder.
FOLDERS = (".triton/cache", ".cache/tvm-ffi", ".cache/flashinfer", ".cache/sglang", ".nv/ComputeCache")


def pack(file: Path, home: Path | None = None) -> int:
    """Write what there is; the number of files."""
    home = home or Path.home()
    count = 0
    with tarfile.open(file, "w:xz", preset=6) as packed:
        for folder in FOLDERS:
            for path in sorted((home / folder).rglob("*")):
                if path.is_file() and not path.is_symlink():
                    packed.add(path, arcname=path.relative_to(home).as_posix())
                    count += 1
    return count


def unpack(file: Path, home: Path | None = None) -> None:
    """Put them back, with their times: build tools compare these."""
    with tarfile.open(file) as packed:
        packed.extractall(home or Path.home(), filter="data")


def main() -> None:
    """Parse and do."""
    action, file = sys.argv[1], Path(sys.argv[2])
    if action == "pack":
        print(f"{pack(file)} files, {file.stat().st_size / 1e6:.1f} MB in {file}")
    elif action == "unpack":
        unpack(file)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
