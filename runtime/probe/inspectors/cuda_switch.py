"""Notices when somebody else switches the allocator, its recording or its markers, and takes the latter up again."""

from __future__ import annotations

import functools
from typing import Any

from .. import frames
from ..patching import Patches
from ..recorder import Recorder
from .cuda_memory import AllocatorWatch
from .cuda_workspaces import clearing

#: What `torch.cuda.use_mem_pool` and the like call to send a program's allocations into a private pool, and to end that.
_ROUTED = (
    "_cuda_beginAllocateToPool",
    "_cuda_beginAllocateCurrentStreamToPool",
    "_cuda_beginAllocateCurrentThreadToPool",
)
_ROUTED_END = "_cuda_endAllocateToPool"


class RecorderSwitch:
    """Wraps the functions that switch recording, on `torch._C`, through which every caller goes."""

    def __init__(self, recorder: Recorder, torch: Any, watch: AllocatorWatch, patches: Patches) -> None:
        """Args: recorder: told of it. torch: the module. watch: what records. patches: restores."""
        self._recorder = recorder
        self._torch = torch
        self._watch = watch
        self._trace = watch.trace
        self._patches = patches

    def install(self) -> None:
        """Wrap what this torch has."""
        c = self._torch._C
        for name in ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy"):
            if hasattr(c, name):
                self._patches.replace(c, name, self._switch)
        if hasattr(c, "_cuda_setMemoryMetadata"):
            self._patches.replace(c, "_cuda_setMemoryMetadata", self._metadata)
        if hasattr(c, "_cuda_getMemoryMetadata"):
            self._patches.replace(c, "_cuda_getMemoryMetadata", self._metadata_read)
        if hasattr(c, "_cuda_cudaCachingAllocator_enable"):
            self._patches.replace(c, "_cuda_cudaCachingAllocator_enable", self._caching)

        if hasattr(c, "_cuda_clearCublasWorkspaces"):
            self._patches.replace(c, "_cuda_clearCublasWorkspaces", clearing)
        for name in _ROUTED:
            if hasattr(c, name):
                self._patches.replace(c, name, functools.partial(self._routed, by=1))
        if hasattr(c, _ROUTED_END):
            self._patches.replace(c, _ROUTED_END, functools.partial(self._routed, by=-1))

    def _switch(self, original: Any) -> Any:
        recorder, trace, watch = self._recorder, self._trace, self._watch

        @functools.wraps(original)
        def switched(*args: Any, **kwargs: Any) -> Any:
            with recorder.lock:  # else certificates could begin while the program's switch makes them worthless
                # What happened until here is read first; the program's own history is emptied by that, as its switch would.
                try:
                    recorder.drain()
                    watch.exact()
                except Exception as error:
                    recorder.problem("recorder switch", error)
                result = original(*args, **kwargs)
                try:
                    if not recorder.sealed and trace.recording:
                        lost = trace.resume()
                        event = "off-by-other" if lost else "on"
                        detail = lost or "recording was switched by the program and taken up again; no event was lost"
                        recorder.recorder_event(event, detail=detail, stack=recorder.stack(frames.here(2)))
                except Exception as error:
                    recorder.problem("recorder switch", error)
                return result

        return switched

    def _caching(self, original: Any) -> Any:
        recorder = self._recorder

        @functools.wraps(original)
        def enable(value: Any) -> Any:
            if not value:
                try:
                    recorder.drain()
                    detail = "the caching allocator was switched off: memory taken meanwhile shows no owner"
                    recorder.recorder_event("off-by-other", detail=detail, stack=recorder.stack(frames.here(2)))
                except Exception as error:
                    recorder.problem("caching", error)
            return original(value)

        return enable

    def _routed(self, original: Any, by: int) -> Any:
        """The program takes memory from a private pool by hand, which may be that of graphs' temporaries: all of it is followed."""
        recorder, watch = self._recorder, self._watch

        @functools.wraps(original)
        def route(*args: Any, **kwargs: Any) -> Any:
            try:
                with recorder.lock:
                    watch.exact()
                    watch.routed = max(0, watch.routed + by)
            except Exception as error:
                recorder.problem("pool", error)
            return original(*args, **kwargs)

        return route

    def _metadata(self, original: Any) -> Any:
        recorder, trace = self._recorder, self._trace

        @functools.wraps(original)
        def set_metadata(*args: Any, **kwargs: Any) -> Any:
            try:
                if trace.set_marker is not None:
                    recorder.drain()
                    trace.yield_marker()  # from here on the order of events rests on their times
            except Exception as error:
                recorder.problem("markers", error)
            return original(*args, **kwargs)

        return set_metadata

    def _metadata_read(self, original: Any) -> Any:
        trace = self._trace

        @functools.wraps(original)
        def get_metadata(*args: Any, **kwargs: Any) -> Any:
            found = original(*args, **kwargs)
            return "" if trace.set_marker is not None else found  # the mark of a replay is nothing of the program's

        return get_metadata
