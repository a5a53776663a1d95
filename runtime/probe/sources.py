"""Digests of the serving source as this worker imported it, gathered off the hot path from `sys.modules`."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from .recorder import Recorder


class SourceScan:
    """Each call reports modules that were imported since the last one."""

    def __init__(self, recorder: Recorder, packages: tuple[str, ...]) -> None:
        """Args: recorder: receives `source` records. packages: top-level packages whose modules matter."""
        self._recorder = recorder
        self._packages = packages
        self._seen: set[str] = set()
        self._root: str | None = None
        self._version: str | None = None

    def scan(self) -> int:
        """Digest what is new; returns how many modules that were."""
        found: dict[str, str] = {}
        for name in list(sys.modules):
            if name in self._seen or name.partition(".")[0] not in self._packages:
                continue
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if file is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
                continue  # later, once it is complete
            self._seen.add(name)
            if not file.endswith(".py"):
                continue
            try:
                found[name] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
            except OSError as error:
                self._recorder.problem("source", error)
                continue
            if self._root is None:
                self._root = _root(Path(file), name)
        if found:
            package = sys.modules.get(self._packages[0])
            version = getattr(package, "__version__", None)
            self._version = version if isinstance(version, str) else self._version
            self._recorder.source(self._root, self._version, found)
        return len(found)


def _root(file: Path, module: str) -> str:
    """The folder that holds the top-level package."""
    depth = module.count(".") + (1 if file.name == "__init__.py" else 0)
    return str(file.parents[depth])
