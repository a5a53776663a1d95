"""Hooks on the graph functions of cuda-bindings: which captured graph a launched executable was made from."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..patching import Patches
from .call_arguments import Picker
from .cuda_hooked import Hooked

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
_UPLOAD = ("cudaGraphUpload", "cuGraphUpload")
_CLONE = ("cudaGraphClone", "cuGraphClone")
_END_CAPTURE = ("cudaStreamEndCapture", "cuStreamEndCapture")
_SET = ("cudaGraphExec", "cuGraphExec")
_ENABLE = ("cudaGraphNodeSetEnabled", "cuGraphNodeSetEnabled")
#: Change a graph that was captured or built; its executables stay as they are until it is instantiated anew.
_EDIT = re.compile(r"(cuda|cu)Graph(Add\w+Node|AddNode|DestroyNode|\w*NodeSetParams)(1D|FromSymbol|ToSymbol|_v2)?")


class LaunchHooks:
    """Follows graph -> executable -> launch through cuda-bindings."""

    def __init__(self, inspector: Hooked | None = None) -> None:
        """Args: inspector: knows which raw graph was captured as what; None until there is one."""
        self._owner = inspector
        self.patches = Patches()
        self._executables: dict[int, int] = {}
        self._strangers: set[int] = set()
        #: Clones that nobody edited, and the graphs that they were cloned from.
        self._clones: dict[int, int] = {}
        #: Executables of PyTorch whose handles the program asked for, until it uses them where that is seen.
        self._handed_out: dict[int, int] = {}

    @classmethod
    def of(cls, inspector: Hooked) -> LaunchHooks:
        """The hooks that `early` put in place, or new ones."""
        found = _waiting.pop() if _waiting else cls()
        found._owner = inspector
        return found

    @property
    def _inspector(self) -> Hooked:
        assert self._owner is not None
        return self._owner

    def bind(self, executable: int, graph: int) -> None:
        """An executable launches `graph` from now on."""
        self._executables[executable] = graph
        self._strangers.discard(executable)

    def hand_out(self, executable: int, graph: int) -> None:
        """The program asked PyTorch for the handle of a graph's executable."""
        if self._executables.get(executable) != graph:
            self._handed_out[executable] = graph
        self.bind(executable, graph)

    def tell_unused(self) -> None:
        """At the end: a handle that was handed out and came back to no function that is seen was for a launch from C."""
        graphs, self._handed_out = sorted(set(self._handed_out.values())), {}
        for graph in graphs:
            what = (
                f"the executable of graph {graph} was handed out, and no launch of it was seen: C may have launched it"
            )
            self._inspector.recorder.problem("launch", what)

    def forked(self) -> None:
        """In a forked child no handle of the parent is valid."""
        for known in (self._executables, self._strangers, self._clones, self._handed_out):
            known.clear()

    def patch(self, module: ModuleType) -> None:
        """Wrap the module's functions and every name bound to them before (never raises)."""
        try:
            for names, make in (
                (_INSTANTIATE, self._instantiate),
                (_UPDATE, self._update),
                (_DESTROY, self._destroy),
                (_FORGET, self._forget),
                (_LAUNCH, self._launch),
                (_UPLOAD, self._upload),
                (_CLONE, self._clone),
                (_END_CAPTURE, self._end_capture),
            ):
                for name in names:
                    self._wrap(module, name, make)
            for name in dir(module):
                if (name.startswith(_SET) and "SetParams" in name) or name in _ENABLE:
                    self._wrap(module, name, self._set_parameters)
                elif _EDIT.fullmatch(name):
                    self._wrap(module, name, functools.partial(self._edit, of_node="GraphAdd" not in name))
        except Exception as error:
            if self._owner is not None:
                self._owner.recorder.problem("cuda-bindings", error)

    def _wrap(self, module: ModuleType, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(module, name, None)
        if original is None or getattr(original, "_sgl_graph", False):
            return
        wrapper: Any = functools.wraps(original)(make(original))
        wrapper._sgl_graph = True
        self.patches.set(module, name, wrapper)
        self.patches.sweep(original, wrapper)

    def _safely(self, where: str, function: Callable[[], None]) -> None:
        if self._owner is None:
            return  # there is no torch yet, so no graph of it
        try:
            function()
        except Exception as error:
            self._inspector.recorder.problem(where, error)

    def _graph_of(self, handle: int) -> int:
        known = self._inspector.raw_graph(handle)
        if known is None:
            known = self._inspector.raw[handle] = self._inspector.inspect_now(handle)
        return known

    def _after(self, where: str, original: Any, told: Callable[..., None], count: int) -> Any:
        """Call the function, then tell what it was given first and what it returned."""
        pick = Picker(original, count)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._safely(where, lambda: told(*pick(args, kwargs), result))
            return result

        return wrapper

    def _edit(self, original: Any, *, of_node: bool) -> Any:
        pick = Picker(original, 1)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            edited: list[int] = []
            # Looked up before: a node that is destroyed is found in no graph afterwards.
            self._safely("edit", lambda: edited.append(self._graph_with(pick(args, kwargs)[0], of_node)))
            result = original(*args, **kwargs)
            if edited:
                self._safely("edit", lambda: self._edited(edited[0], result))
            return result

        return wrapper

    def _graph_with(self, target: Any, of_node: bool) -> int:
        """The handle of a known graph, given itself or one of its nodes; 0 for any other."""
        inspector, handle = self._inspector, 0 if target is None else int(target)
        if handle in inspector.raw or not of_node:
            return handle
        # The driver must not be asked about a graph whose owner is gone.
        known = [raw for raw in inspector.raw if inspector.raw_graph(raw) is not None]
        return next((raw for raw in known if inspector.holds(raw, handle)), 0)

    def _edited(self, handle: int, result: Any) -> None:
        """A graph was changed: what was built by hand is read again when an executable is made of it."""
        if not _succeeded(result):
            return
        inspector = self._inspector
        identifier = inspector.raw.get(handle)
        cloned = self._clones.pop(handle, None) == identifier
        if identifier is not None and identifier in inspector.kept and not cloned:
            # Its memory is known from its capture alone; PyTorch may make its executable of it at the next replay, unseen.
            inspector.recorder.graph_event(identifier, "updated")
        else:  # what a clone was cloned from stays as it is
            inspector.raw.pop(handle, None)

    def _instantiate(self, original: Any) -> Any:
        return self._after("instantiate", original, self._instantiated, 1)

    def _instantiated(self, graph: Any, result: Any) -> None:
        if _succeeded(result):
            identifier = self._graph_of(int(graph))
            self.bind(int(result[1]), identifier)
            self._inspector.recorder.graph_event(identifier, "instantiated")

    def _update(self, original: Any) -> Any:
        return self._after("update", original, self._updated_to, 2)

    def _updated_to(self, executable: Any, graph: Any, result: Any) -> None:
        if not _succeeded(result):
            return
        self._handed_out.pop(int(executable), None)
        self.bind(int(executable), self._graph_of(int(graph)))

    def _destroy(self, original: Any) -> Any:
        return self._after("destroy", original, self._destroyed, 1)

    def _destroyed(self, executable: Any, _: Any) -> None:
        self._executables.pop(int(executable), None)
        self._handed_out.pop(int(executable), None)

    def _forget(self, original: Any) -> Any:
        return self._after("destroy", original, self._forgotten, 1)

    def _forgotten(self, graph: Any, _: Any) -> None:
        self._inspector.raw.pop(int(graph), None)
        self._clones.pop(int(graph), None)

    def _clone(self, original: Any) -> Any:
        return self._after("clone", original, self._cloned, 1)

    def _cloned(self, graph: Any, result: Any) -> None:
        """A clone of a captured graph runs what that graph runs, temporaries included, until somebody edits it."""
        if not _succeeded(result):
            return
        clone, identifier = int(result[1]), self._inspector.raw_graph(int(graph))
        self._inspector.raw.pop(clone, None)
        if identifier is not None:
            self._inspector.raw[clone] = identifier
            self._clones[clone] = identifier

    def _end_capture(self, original: Any) -> Any:
        return self._after("capture", original, self._captured, 1)

    def _captured(self, _: Any, result: Any) -> None:
        """Read at once: what it references may belong to somebody else when an executable is made of it."""
        if _succeeded(result) and int(result[1]):
            self._inspector.raw.pop(int(result[1]), None)
            self._graph_of(int(result[1]))

    def _upload(self, original: Any) -> Any:
        return self._after("upload", original, self._uploaded, 1)

    def _uploaded(self, executable: Any, _: Any) -> None:
        self._handed_out.pop(int(executable), None)

    def _launch(self, original: Any) -> Any:
        pick = Picker(original, 2)

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self._safely("launch", lambda: self._launched(*pick(args, kwargs)))
            return original(*args, **kwargs)

        return wrapper

    def _launched(self, executable: Any, stream: Any) -> None:
        if executable is None:
            return  # the function refuses such a call
        handle = int(executable)
        identifier = self._executables.get(handle)
        self._handed_out.pop(handle, None)
        if identifier is not None:
            self._inspector.replayed(identifier, None if stream is None else int(stream))
        elif handle not in self._strangers:
            self._strangers.add(handle)
            self._inspector.recorder.problem("launch", "an executable graph was launched whose making was not seen")

    def _set_parameters(self, original: Any) -> Any:
        return self._after("update", original, self._changed, 1)

    def _changed(self, executable: Any, result: Any) -> None:
        identifier = self._executables.get(int(executable))
        self._handed_out.pop(int(executable), None)
        if _succeeded(result) and identifier is not None:
            # No `by`: the executable's references are no longer those of any inspected graph.
            self._inspector.recorder.graph_event(identifier, "updated")


#: Hooks that wait for the inspector.
_waiting: list[LaunchHooks] = []


def early(module: ModuleType) -> None:
    """Wrap a module of cuda-bindings that the program imported before torch, and may take functions from for good."""
    if not _waiting:
        _waiting.append(LaunchHooks())
    _waiting[0].patch(module)


def _succeeded(result: Any) -> bool:
    return bool(isinstance(result, tuple) and result and int(result[0]) == 0)
