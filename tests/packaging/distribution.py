"""Builds the distribution from a copy of the tree and installs it, offline, beside the dependencies of this interpreter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("analyzer", "runtime", "cli")
_FILES = ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile")
_FOLDERS = (*ROOMS, "tests", "fixtures", "docs", "benchmarks")
_IGNORED = shutil.ignore_patterns("__pycache__", "*.py[cod]")


def room_files(root: Path = ROOT) -> set[str]:
    """Every file of the three packages, relative to the root."""
    return {
        str(path.relative_to(root))
        for room in ROOMS
        for path in (root / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in {".pyc", ".pyo"}
    }


def copy_tree(target: Path) -> Path:
    """A copy of the tree as a clone would have it, so that building leaves the repository alone."""
    target.mkdir(parents=True)
    for name in _FILES:
        shutil.copy2(ROOT / name, target / name)
    for name in _FOLDERS:
        shutil.copytree(ROOT / name, target / name, ignore=_IGNORED)
    return target


def run(command: Sequence[str | Path], cwd: Path) -> str:
    """Run a command that must succeed, and return its stdout; nothing of this environment's PYTHONPATH reaches it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Environment:
    """A virtual environment that sees this interpreter's dependencies, but not its own installation of the project."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.folder = folder
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = folder / "lib" / version / "site-packages"
        # A folder named in a .pth file has its packages found and its own .pth files, so the editable install, ignored.
        (self.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    def install(self, *arguments: str | Path, cwd: Path) -> None:
        """`pip install` without an index and without dependencies."""
        options = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation")
        run([sys.executable, "-m", "pip", "--python", self.python, "install", *options, *arguments], cwd)
