"""One run a GPU: locks that vanish with their process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from sgl_graph.analyzer.errors import GpuUnavailable


@contextmanager
def gpu_locks(names: Sequence[str]) -> Iterator[None]:
    """Hold the locks of these GPUs.

    Args:
        names: UUIDs; locked in sorted order, so that two runs cannot wait for each other.

    Raises:
        GpuUnavailable: Another run holds one.
    """
    folder = Path(tempfile.gettempdir()) / f"sgl-graph-locks-{os.getuid()}"
    with ExitStack() as held:
        if names:
            folder.mkdir(mode=0o700, exist_ok=True)
        for name in sorted(set(names)):
            safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)
            try:
                held.enter_context(FileLock(folder / f"{safe}.lock", timeout=0))
            except Timeout as error:
                raise GpuUnavailable(
                    f"another sgl-graph run holds GPU {name}", hint="wait for it, or choose with CUDA_VISIBLE_DEVICES"
                ) from error
        yield
