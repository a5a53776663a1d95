"""Writes the injection folder of one launch: a copy of the probe, a `sitecustomize` that chains to any other, and its settings."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import ProbeUnsupported
from sgl_graph.runtime.probe.config import FOLDER_VARIABLE

_PACKAGE = "_sgl_graph_probe"
_SITECUSTOMIZE = '''"""Enters the sgl-graph probe of this run, then the sitecustomize that this one hides, if any."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.realpath(os.path.dirname(__file__))
try:
    from {package} import bootstrap as _bootstrap

    _bootstrap.enter()
except Exception as _error:
    print("sgl-graph probe: not active:", _error, file=sys.stderr)

_others = [p for p in sys.path if os.path.realpath(p or os.curdir) != _here]
_spec = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _spec is not None and _spec.loader is not None:
    _module = importlib.util.module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    _spec.loader.exec_module(_module)
'''

#: Functions whose presence on the main thread's stack tells what a process of the server is.
SERVER_ROLES: Mapping[str, str] = {
    "run_scheduler_process": "scheduler",
    "run_detokenizer_process": "detokenizer",
    "run_data_parallel_controller_process": "controller",
    "launch_server": "launcher",
}


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """What the probe of a launch is told.

    Attributes:
        run: The run's identifier.
        launch: The launch's name.
        receipts: Folder of the receipt files.
        inspector: `cuda`, or `module` / `module@trigger` of another inspector.
        tool: Digest of this tool.
        poison: Overwrite what graphs must not depend on.
        stacks: Gather stacks with allocator events.
        count_only: See captures and replays, inspect nothing.
        sources: Top-level packages whose imported modules are digested.
        roles: Function names that tell a process's role.
    """

    run: str
    launch: str
    receipts: Path
    inspector: str = "cuda"
    tool: str | None = None
    poison: bool = False
    stacks: bool = True
    count_only: bool = False
    sources: tuple[str, ...] = ("sglang",)
    roles: Mapping[str, str] = field(default_factory=lambda: dict(SERVER_ROLES))


@dataclass(frozen=True, slots=True)
class InjectionFolder:
    """A written injection folder."""

    folder: Path

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """`base` with the folder first on PYTHONPATH and named for the probe."""
        paths = [str(self.folder), *(p for p in base.get("PYTHONPATH", "").split(os.pathsep) if p)]
        return {**base, "PYTHONPATH": os.pathsep.join(paths), FOLDER_VARIABLE: str(self.folder)}

    def seal(self) -> None:
        """Ask every worker to write its footer."""
        (self.folder / "seal").touch()


def write_injection(folder: Path, settings: ProbeSettings, map_bytes: bytes | None = None) -> InjectionFolder:
    """Write `folder`, which must not exist.

    Args:
        folder: Where; it must stay until the launch has ended.
        settings: What the probe is told.
        map_bytes: The path map, which names sites and label expressions.

    Raises:
        ProbeUnsupported: The folder cannot be written.
    """
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True)
        ignore = shutil.ignore_patterns("__pycache__", "*.pyc")
        shutil.copytree(Path(__file__).parent / "probe", folder / _PACKAGE, ignore=ignore)
        (folder / "sitecustomize.py").write_text(_SITECUSTOMIZE.format(package=_PACKAGE), "utf-8")
        if map_bytes is not None:
            (folder / "map.json").write_bytes(map_bytes)
        settings.receipts.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(_as_json(settings), indent=1), "utf-8")
    except OSError as error:
        raise ProbeUnsupported(
            f"the injection folder {folder} cannot be written: {error}", hint="choose a writable --out"
        ) from error
    return InjectionFolder(folder)


def _as_json(settings: ProbeSettings) -> dict[str, Any]:
    return {
        "run": settings.run,
        "launch": settings.launch,
        "receipts": str(settings.receipts.absolute()),
        "inspector": settings.inspector,
        "tool": settings.tool,
        "poison": settings.poison,
        "stacks": settings.stacks,
        "count_only": settings.count_only,
        "options": {"sources": list(settings.sources), "roles": dict(settings.roles)},
    }


@dataclass(frozen=True, slots=True)
class FolderInjector:
    """Prepares the injections of one run, each in a folder of its own below `base`.

    Attributes:
        base: Where the folders go; outside the archive, for they are no evidence.
        inspector: As in ProbeSettings.
        tool: Digest of this tool.
    """

    base: Path
    inspector: str = "cuda"
    tool: str | None = None

    def __call__(
        self, *, launch: str, receipts: Path, run: str, map_bytes: bytes | None, count_only: bool, poison: bool
    ) -> InjectionFolder:
        """Write the injection folder of a launch.

        Raises:
            ProbeUnsupported: The folder cannot be written.
        """
        settings = ProbeSettings(
            run=run,
            launch=launch,
            receipts=receipts,
            inspector=self.inspector,
            tool=self.tool,
            poison=poison,
            count_only=count_only,
        )
        return write_injection(self.base / f"inject-{launch}", settings, map_bytes)
