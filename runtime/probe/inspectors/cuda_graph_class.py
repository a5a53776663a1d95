"""Hooks on `torch.cuda.CUDAGraph`: torch's own where this release has them, else wrapped methods; subclasses pass through."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from .cuda_hooked import Hooked

#: Where a captured graph keeps its identifier.
_ATTRIBUTE = "_sgl_graph_id"


class GraphClass:
    """Wraps the class's methods; a failure of the probe is a problem record, never an exception of the program.

    The wrappers name their first parameter as torch does, so that Python's complaints about a call read the same.
    """

    def __init__(self, inspector: Hooked) -> None:
        """Args: inspector: receives what happens."""
        self._inspector = inspector
        self._own_replay_hook = self._hooked = False
        self._unseen = False

    def install(self) -> dict[str, str | None]:
        """Put the hooks in place; returns which mechanism acts, as `hello` records it."""
        cls = self._inspector.torch.cuda.CUDAGraph
        replace = self._inspector.patches.replace
        if not replace(cls, "capture_begin", self._capture_begin):
            return {"capture": None, "replay": None}
        replace(cls, "capture_end_pre", self._capture_end_pre)
        replace(cls, "capture_end", self._capture_end)
        replace(cls, "capture_end_post", self._capture_end_post)
        replace(cls, "reset", self._reset)
        replace(cls, "instantiate", self._instantiate)
        replace(cls, "raw_cuda_graph_exec", self._raw_exec)
        self._own_replay_hook = hasattr(cls, "register_replay_start_hook")
        if not self._own_replay_hook:
            replace(cls, "replay", self._replay)
        return {
            "capture": "class methods",
            "replay": "register_replay_start_hook" if self._own_replay_hook else "class methods",
        }

    def _safely(self, where: str, function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            self._inspector.recorder.problem(where, error)
            return None

    def _capture_begin(self, original: Any) -> Any:
        inspector, safely = self._inspector, self._safely

        @functools.wraps(original)
        def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
            pool = kwargs.get("pool", args[0] if args else None)
            safely("capture_begin", inspector.began, self, pool)
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                safely("capture_begin", inspector.failed, self, f"{type(error).__name__} in capture_begin")
                raise

        return capture_begin

    def _capture_end_pre(self, original: Any) -> Any:
        inspector, safely = self._inspector, self._safely

        @functools.wraps(original)
        def capture_end_pre(self: Any, *args: Any, **kwargs: Any) -> Any:
            safely("inspection", inspector.ending, self)
            try:
                return original(self, *args, **kwargs)
            except BaseException as error:
                safely("capture_end", inspector.failed, self, f"{type(error).__name__} in capture_end_pre")
                raise

        return capture_end_pre

    def _capture_end(self, original: Any) -> Any:
        inspector, safely, finish = self._inspector, self._safely, self._finish

        @functools.wraps(original)
        def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
            safely("inspection", inspector.ending, self)
            try:
                result = original(self, *args, **kwargs)
            except BaseException as error:
                safely("capture_end", inspector.failed, self, f"{type(error).__name__} in capture_end")
                raise
            safely("capture_end", finish, self)
            return result

        return capture_end

    def _capture_end_post(self, original: Any) -> Any:
        safely, finish = self._safely, self._finish

        @functools.wraps(original)
        def capture_end_post(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            safely("capture_end", finish, self)
            return result

        return capture_end_post

    def _finish(self, graph: Any) -> None:
        inspector = self._inspector
        identifier = inspector.ended(graph, _keeps(graph))
        if identifier is None:
            return
        object.__setattr__(graph, _ATTRIBUTE, identifier)  # whatever a subclass does on assignment
        if self._own_replay_hook and not getattr(graph, "_sgl_graph_hooked", False):
            try:
                graph.register_replay_start_hook(functools.partial(self._on_replay, weakref.ref(graph)))
                object.__setattr__(graph, "_sgl_graph_hooked", True)
                self._hooked = True
            except Exception as error:
                self._wrap_instead(error)

    def _wrap_instead(self, error: Exception) -> None:
        """Torch refused its own hook, which may have another form there: wrap the class's method, as where there is no hook."""
        self._own_replay_hook = False
        recorder = self._inspector.recorder
        if self._hooked:  # replays of graphs before this one would count twice
            recorder.problem("replay hook", error)
            return
        recorder.recorder_event("on", detail=f"replays are seen by the class's method: {type(error).__name__}: {error}")
        self._inspector.patches.replace(self._inspector.torch.cuda.CUDAGraph, "replay", self._replay)

    def _on_replay(self, known: weakref.ref[Any], *_: Any, **__: Any) -> None:
        """Whatever torch gives a hook, the graph is known from when it was captured."""
        try:
            identifier = _identifier(known())
            if identifier is not None:
                self._inspector.replayed(identifier)
        except Exception as error:
            self._inspector.recorder.problem("replay", error)

    def _replay(self, original: Any) -> Any:
        replayed, unknown = self._inspector.replayed, self._unknown

        @functools.wraps(original)
        def replay(self: Any, *args: Any, **kwargs: Any) -> Any:
            failure: Exception | None = None
            try:
                replayed(self._sgl_graph_id)
            except Exception as error:
                failure = error
            result = original(self, *args, **kwargs)
            if failure is not None:  # torch did not refuse, so something ran
                unknown(self, failure)
            return result

        return replay

    def _unknown(self, graph: Any, error: Exception) -> None:
        if isinstance(error, AttributeError) and _identifier(graph) is None:
            if not self._unseen:
                self._unseen = True
                self._inspector.recorder.problem("replay", "a graph was replayed whose capture was not seen")
            return
        self._inspector.recorder.problem("replay", error)

    def _reset(self, original: Any) -> Any:
        inspector, safely = self._inspector, self._safely

        @functools.wraps(original)
        def reset(self: Any, *args: Any, **kwargs: Any) -> Any:
            identifier = _identifier(self)
            if identifier is not None:
                safely("reset", inspector.recorder.graph_event, identifier, "reset")
                safely("reset", inspector.forget_raw, identifier)
            result = original(self, *args, **kwargs)
            if identifier is not None:  # torch refuses to replay it until it is captured again
                safely("reset", object.__delattr__, self, _ATTRIBUTE)
            return result

        return reset

    def _instantiate(self, original: Any) -> Any:
        inspector, safely = self._inspector, self._safely

        @functools.wraps(original)
        def instantiate(self: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            identifier = _identifier(self)
            if identifier is not None:
                safely("instantiate", inspector.recorder.graph_event, identifier, "instantiated")
            return result

        return instantiate

    def _raw_exec(self, original: Any) -> Any:
        inspector, safely = self._inspector, self._safely

        @functools.wraps(original)
        def raw_cuda_graph_exec(self: Any, *args: Any, **kwargs: Any) -> Any:
            handle = original(self, *args, **kwargs)
            identifier = _identifier(self)
            if identifier is not None:
                safely("raw_cuda_graph_exec", inspector.launches.hand_out, int(handle), identifier)
            return handle

        return raw_cuda_graph_exec


def _identifier(graph: Any) -> int | None:
    """The identifier of a captured graph."""
    found = getattr(graph, _ATTRIBUTE, None)
    return found if isinstance(found, int) else None


def _keeps(graph: Any) -> bool | None:
    """Whether torch keeps the captured graph beside its executable."""
    try:
        graph.raw_cuda_graph()
    except Exception:
        return False if hasattr(graph, "raw_cuda_graph") else None
    return True
