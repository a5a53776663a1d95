"""Enters the probe once in each process of a run: hooks imports, survives fork, and writes the footer however the process ends."""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import sys
from types import ModuleType
from typing import Any

from .config import ProbeConfig, from_environment
from .drainer import Drainer
from .imports import PostImport
from .inspectors import LAUNCH_MODULES
from .recorder import Recorder
from .roles import RoleFinder
from .sources import SourceScan

_DEFAULT_INSPECTOR = f"{__package__}.inspectors.cuda"


class Probe:
    """The probe of this process; nothing of it shows until the inspected library is imported."""

    def __init__(self, config: ProbeConfig) -> None:
        """Args: config: the run's."""
        self.config = config
        self.imports = PostImport()
        self.handle: Any = None
        self.recorder = Recorder(config)
        self.drainer = self._make_drainer()

    def _make_drainer(self) -> Drainer:
        options = self.config.options
        sources = SourceScan(self.recorder, tuple(options.get("sources", ())) or ("sglang",))
        roles = RoleFinder(self.recorder, dict(options.get("roles", {})))
        return Drainer(self.recorder, [roles.look, sources.scan], self._take_away)

    def enter(self) -> None:
        """Watch for the inspected library and for the end of the process."""
        self.imports.install()
        name, _, trigger = self.config.inspector.partition("@")
        if name == "cuda":
            name, trigger = _DEFAULT_INSPECTOR, "torch"
            for bindings in LAUNCH_MODULES:  # the inspector watches for those that come after torch
                self.imports.watch(bindings, self._before_torch)
        if trigger:
            self.imports.watch(trigger, functools.partial(self._install, name))
        else:
            self._install(name, None)
        atexit.register(self._exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before_fork, after_in_parent=self._after_fork, after_in_child=self._forked)
        original = os._exit

        @functools.wraps(original)
        def leave(status: int) -> Any:
            self.drainer.finish("exit")
            original(status)

        os._exit = leave

    def _before_torch(self, module: ModuleType) -> None:
        try:
            importlib.import_module(f"{_DEFAULT_INSPECTOR}_launch").early(module)
        except Exception as error:
            self.recorder.problem("cuda-bindings", error)

    def _install(self, name: str, _: ModuleType | None) -> None:
        try:
            module = importlib.import_module(name)
            arguments = (self.recorder, self.imports) if name == _DEFAULT_INSPECTOR else (self.recorder,)
            self.handle = module.install(*arguments)
            self.recorder.hello()  # unless the inspector said more already
            drain = getattr(self.handle, "drain", None)
            if callable(drain):
                self.recorder.set_drain(drain)
            if self.config.launch == "program":
                self.recorder.role("program")
            self.drainer.start()
        except Exception as error:
            self.recorder.problem("inspector", error)

    def _take_away(self) -> None:
        """The run is sealed and the process lives on: leave nothing in its way."""
        self.imports.remove()
        remove = getattr(self.handle, "remove", None)
        try:
            if callable(remove):
                remove()
        except Exception as error:
            print(f"sgl-graph probe: {error}", file=sys.stderr)

    def _exit(self) -> None:
        self.drainer.finish("exit")

    def _before_fork(self) -> None:
        self.recorder.lock.acquire()

    def _after_fork(self) -> None:
        self.recorder.lock.release()

    def _forked(self) -> None:
        """In a forked child: another worker, with its own file once it has something to write."""
        self.recorder.forked()
        if self.handle is not None:
            restart = getattr(self.handle, "forked", None)
            if callable(restart):
                restart()
            drain = getattr(self.handle, "drain", None)
            if callable(drain):
                self.recorder.set_drain(drain)
            self.drainer = self._make_drainer()
            self.drainer.start()


_probe: Probe | None = None


def enter() -> Probe | None:
    """Enter the probe if this process belongs to a run; idempotent, and a failure never reaches the host program."""
    global _probe
    if _probe is None:
        try:
            config = from_environment()
            if config is not None and not config.seal.exists():
                _probe = Probe(config)
                _probe.enter()
        except Exception as error:
            print(f"sgl-graph probe: not active: {error}", file=sys.stderr)
    return _probe
