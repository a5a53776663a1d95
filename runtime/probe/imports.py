"""Runs a callback right after a module was imported, whenever that is, without importing it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

Callback = Callable[[ModuleType], None]


class _Loader(Loader):
    """Executes a module by its own loader, then calls back; whatever else is asked of it, the module's own loader answers."""

    def __init__(self, loader: Any, done: Callback) -> None:
        self._loader = loader
        self._done = done

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # not yet there: somebody copies this object
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:  # the module is to look as if nobody had stood between
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._done(module)


class PostImport(MetaPathFinder):
    """The finder at the head of `sys.meta_path`; `watch` adds a module, `remove` takes the finder away."""

    def __init__(self) -> None:
        self._callbacks: dict[str, Callback] = {}
        self._finding: set[str] = set()

    def install(self) -> None:
        """Begin to see imports; idempotent."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """See no more imports."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def watch(self, name: str, callback: Callback) -> None:
        """Call back once, after `name` was executed; at once when it is imported already."""
        module = sys.modules.get(name)
        spec = getattr(module, "__spec__", None)
        if module is not None and not getattr(spec, "_initializing", False):
            callback(module)
        else:
            self._callbacks[name] = callback

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Let the other finders find a watched module and stand between its loader and the import."""
        if fullname not in self._callbacks or fullname in self._finding:
            return None
        self._finding.add(fullname)
        try:
            spec = find_spec(fullname)
        except (ImportError, ValueError):
            return None
        finally:
            self._finding.discard(fullname)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return None
        spec.loader = _Loader(spec.loader, partial(self._executed, fullname))
        return spec

    def _executed(self, name: str, module: ModuleType) -> None:
        """Only now: a program may ask whether a module can be found, or fail to import it, and import it later."""
        callback = self._callbacks.pop(name, None)
        if callback is not None:
            callback(module)
