"""Hooks on the graph functions of cuda-bindings: which captured graph a launched executable was made from."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .cuda_hooked import Hooked

#: Modules that offer these functions: runtime and driver, under their present and their former names.
LAUNCH_MODULES = ("cuda.bindings.runtime", "cuda.bindings.driver", "cuda.cudart", "cuda.cuda")
_INSTANTIATE = (
    "cudaGraphInstantiate",
    "cudaGraphInstantiateWithFlags",
    "cudaGraphInstantiateWithParams",
    "cuGraphInstantiate",
    "cuGraphInstantiateWithParams",
)
_UPDATE = ("cudaGraphExecUpdate", "cuGraphExecUpdate")
_DESTROY = ("cudaGraphExecDestroy", "cuGraphExecDestroy")
_FORGET = ("cudaGraphDestroy", "cuGraphDestroy")
_LAUNCH = ("cudaGraphLaunch", "cuGraphLaunch")
_SET = ("cudaGraphExec", "cuGraphExec")
#: Change a graph that was captured or built; its executables stay as they are until it is instantiated anew.
_EDIT = re.compile(r"(cuda|cu)Graph(Add\w+Node|AddNode|DestroyNode|\w*NodeSetParams)(1D|FromSymbol|ToSymbol|_v2)?")


class LaunchHooks:
    """Follows graph -> executable -> launch through cuda-bindings."""

    def __init__(self, inspector: Hooked) -> None:
        """Args: inspector: knows which raw graph was captured as what."""
        self._inspector = inspector
        self._executables: dict[int, int] = {}
        self._strangers: set[int] = set()

    def bind(self, executable: int, graph: int) -> None:
        """An executable launches `graph` from now on."""
        self._executables[executable] = graph
        self._strangers.discard(executable)

    def patch(self, module: ModuleType) -> None:
        """Wrap the module's functions and every name bound to them before (never raises)."""
        try:
            for names, make in (
                (_INSTANTIATE, self._instantiate),
                (_UPDATE, self._update),
                (_DESTROY, self._destroy),
                (_FORGET, self._forget),
                (_LAUNCH, self._launch),
            ):
                for name in names:
                    self._wrap(module, name, make)
            for name in dir(module):
                if name.startswith(_SET) and "SetParams" in name:
                    self._wrap(module, name, self._set_parameters)
                elif _EDIT.fullmatch(name):
                    self._wrap(module, name, self._edit)
        except Exception as error:
            self._inspector.recorder.problem("cuda-bindings", error)

    def _wrap(self, module: ModuleType, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(module, name, None)
        if original is None or getattr(original, "_sgl_graph", False):
            return
        wrapper: Any = functools.wraps(original)(make(original))
        wrapper._sgl_graph = True
        self._inspector.patches.set(module, name, wrapper)
        self._inspector.patches.sweep(original, wrapper)

    def _safely(self, where: str, function: Any, *arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            self._inspector.recorder.problem(where, error)

    def _graph_of(self, handle: int) -> int:
        known = self._inspector.raw_graph(handle)
        if known is None:
            known = self._inspector.raw[handle] = self._inspector.inspect_now(handle)
        return known

    def _edit(self, original: Any) -> Any:
        def wrapper(target: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(target, *args, **kwargs)
            self._safely("edit", self._edited_by, target, result)
            return result

        return wrapper

    def _edited_by(self, target: Any, result: Any) -> None:
        """A graph, or one by its node, was changed: what was built by hand is read again when an executable is made of it."""
        if not _succeeded(result):
            return
        inspector, handle = self._inspector, int(target)
        if handle not in inspector.raw:
            # The driver must not be asked about a graph whose owner is gone.
            known = [raw for raw in inspector.raw if inspector.raw_graph(raw) is not None]
            handle = next((raw for raw in known if inspector.holds(raw, handle)), 0)
        identifier = inspector.raw.get(handle)
        if identifier is not None and identifier in inspector.kept:
            # Its memory is known from its capture alone; PyTorch may make its executable of it at the next replay, unseen.
            inspector.recorder.graph_event(identifier, "updated")
        else:
            inspector.raw.pop(handle, None)

    def _instantiate(self, original: Any) -> Any:
        def wrapper(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(graph, *args, **kwargs)
            self._safely("instantiate", self._instantiated, graph, result)
            return result

        return wrapper

    def _instantiated(self, graph: Any, result: Any) -> None:
        if _succeeded(result):
            identifier = self._graph_of(int(graph))
            self.bind(int(result[1]), identifier)
            self._inspector.recorder.graph_event(identifier, "instantiated")

    def _update(self, original: Any) -> Any:
        def wrapper(executable: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(executable, graph, *args, **kwargs)
            self._safely("update", self._updated_to, executable, graph, result)
            return result

        return wrapper

    def _updated_to(self, executable: Any, graph: Any, result: Any) -> None:
        if not _succeeded(result):
            return
        self.bind(int(executable), self._graph_of(int(graph)))

    def _destroy(self, original: Any) -> Any:
        def wrapper(executable: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(executable, *args, **kwargs)
            self._safely("destroy", self._executables.pop, int(executable), None)
            return result

        return wrapper

    def _forget(self, original: Any) -> Any:
        def wrapper(graph: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(graph, *args, **kwargs)
            self._safely("destroy", self._inspector.raw.pop, int(graph), None)
            return result

        return wrapper

    def _launch(self, original: Any) -> Any:
        def wrapper(executable: Any, *args: Any, **kwargs: Any) -> Any:
            self._safely("launch", self._launched, executable, next(iter((*args, *kwargs.values())), None))
            return original(executable, *args, **kwargs)

        return wrapper

    def _launched(self, executable: Any, stream: Any) -> None:
        handle = int(executable)
        identifier = self._executables.get(handle)
        if identifier is not None:
            self._inspector.replayed(identifier, None if stream is None else int(stream))
        elif handle not in self._strangers:
            self._strangers.add(handle)
            self._inspector.recorder.problem("launch", "an executable graph was launched whose making was not seen")

    def _set_parameters(self, original: Any) -> Any:
        def wrapper(executable: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(executable, *args, **kwargs)
            self._safely("update", self._changed, executable, result)
            return result

        return wrapper

    def _changed(self, executable: Any, result: Any) -> None:
        identifier = self._executables.get(int(executable))
        if _succeeded(result) and identifier is not None:
            # No `by`: the executable's references are no longer those of any inspected graph.
            self._inspector.recorder.graph_event(identifier, "updated")


def _succeeded(result: Any) -> bool:
    return bool(isinstance(result, tuple) and result and int(result[0]) == 0)
