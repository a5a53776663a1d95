"""The CUDA inspector: sees every capture and replay that goes through PyTorch or cuda-bindings, and reads each graph."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from .. import frames
from ..imports import PostImport
from ..labels import Label, LabelReader
from ..patching import Patches
from ..recorder import Capture, Recorder
from . import LAUNCH_MODULES, cuda_trees
from .cuda_atomic import no_collection
from .cuda_driver import Driver, DriverError
from .cuda_graph_class import GraphClass
from .cuda_launch import LaunchHooks
from .cuda_memory import AllocatorWatch, unfollowed
from .cuda_nodes import Inspection, NodeReader
from .cuda_placement import mark
from .cuda_poison import Poisoner
from .cuda_references import Resolution
from .cuda_switch import RecorderSwitch
from .cuda_window import pool_id

#: The import that brings this inspector in.
TRIGGER = "torch"


@dataclass(slots=True)
class Pending:
    """A capture between its begin and its record."""

    capture: Capture
    stream: int
    device: int
    label: Label
    stack: int | None
    site: dict[str, Any] | None
    found: tuple[Inspection, Resolution] | None = None
    handle: int | None = None
    why: str | None = None
    #: Microseconds spent reading nodes, reading the allocator and tying references.
    spent: dict[str, int] = field(default_factory=dict)


class CudaInspector:
    """Connects the hooks with the recorder; `remove` restores everything."""

    def __init__(self, recorder: Recorder, torch: Any, driver: Driver | None = None) -> None:
        """Args: recorder: the worker's. torch: the imported module. driver: replaces libcuda in tests."""
        self.recorder = recorder
        self.torch = torch
        self.patches = Patches()
        self.active = False
        self.raw: dict[int, int] = {}
        #: Graphs that PyTorch keeps beside their executables.
        self.kept: set[int] = set()
        self._driver = driver
        self._reader: NodeReader | None = None
        self._watch: AllocatorWatch | None = None
        self._pending: dict[int, Pending] = {}
        self._ended: deque[tuple[int, int]] = deque()
        self._keys: dict[tuple[int, str], tuple[weakref.ref[Any], int]] = {}
        self._labels = LabelReader(None)
        self._last_keyed: tuple[int, str] | None = None
        self._poisoner: Poisoner | None = None
        self.launches = LaunchHooks.of(self)
        self._graphs = GraphClass(self)
        self._guard = threading.local()

    # Installing

    def install(self, imports: PostImport) -> None:
        """Put every hook in place; recording begins when CUDA is initialised."""
        recorder = self.recorder
        try:
            self._labels = LabelReader.of_folder(recorder.config.folder)
        except (OSError, ValueError, KeyError, TypeError) as error:
            recorder.problem("map", error)
        acted = self._graphs.install()
        recorder.hello(**self._facts(), hooks=acted | {"launch": "cuda-bindings when imported"})
        for name in LAUNCH_MODULES:
            imports.watch(name, self.launches.patch)
        recorder.set_drain(self.drain)
        lazy = getattr(self.torch.cuda, "_lazy_call", None)
        if lazy is not None:
            lazy(self.activate)

    def activate(self) -> None:
        """CUDA is initialised in this process: begin to follow the allocator (never raises)."""
        if self.active or self.recorder.sealed or self.recorder.config.count_only:
            return
        try:
            unseen = unfollowed(self.torch)
            if unseen is not None:
                self.recorder.problem("allocator", unseen)
                return
            driver = self._driver or Driver()
            watch = AllocatorWatch(self.recorder, self.torch, driver, stacks=self.recorder.config.stacks)
            watch.trace.start()
            self.recorder.timeline.latest.setdefault(threading.get_ident(), 0)  # its events carry the mark of no replay
            self._reader, self._watch, self.active = NodeReader(driver), watch, True
            RecorderSwitch(self.recorder, self.torch, watch, self.patches).install()
            self.recorder.recorder_event("on", detail="markers" if watch.trace.set_marker else "times")
            if self.recorder.config.poison:
                self._poisoner = Poisoner(self.recorder, self.torch, driver)
        except Exception as error:
            self.recorder.problem("activate", error)

    def _facts(self) -> dict[str, Any]:
        import os

        version = getattr(self.torch, "version", None)
        driver: str | None = None
        try:
            with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
                words = file.readline().split()
            driver = next((w for w in words if w[:1].isdigit() and "." in w), None)
        except OSError:
            pass
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return {
            "torch": getattr(self.torch, "__version__", None) and str(self.torch.__version__),
            "cuda": getattr(version, "cuda", None),
            "driver": driver,
            "devices": None if visible is None else [d for d in visible.split(",") if d],
        }

    def forked(self) -> None:
        """In a forked child: nothing of the parent's device is valid; a later initialisation of CUDA activates afresh."""
        self.active = False
        self._reader = self._watch = self._poisoner = None
        self._pending.clear()
        self._ended.clear()
        self._keys.clear()
        self.raw.clear()
        self.launches.forked()

    def remove(self) -> None:
        """Restore everything and stop recording."""
        self.recorder.set_drain(None)
        self.patches.remove()
        self.launches.patches.remove()
        if self.active and self._watch is not None:
            self.active = False
            try:
                self._watch.trace.stop()
            except Exception as error:
                self.recorder.problem("remove", error)

    def drain(self) -> None:
        """The recorder's source of events: the allocator's, and graphs that ended meanwhile."""
        recorder = self.recorder
        before = recorder.replays_logged
        if self.active and self._watch is not None:
            self._watch.drain()
        recorder.order_replays(before)
        while self._ended and self._ended[0][1] <= before:
            graph = self._ended.popleft()[0]
            self.forget_raw(graph)
            recorder.graph_event(graph, "destroyed")
        if recorder.closing:
            self.launches.tell_unused()

    def forget_raw(self, graph: int) -> None:
        """The raw graph is gone; its handle may name another one from now on."""
        for handle in [h for h, g in self.raw.items() if g == graph]:
            del self.raw[handle]

    def raw_graph(self, handle: int) -> int | None:
        """The captured graph of a raw handle, unless its owner is gone."""
        known = self.raw.get(handle)
        if known is not None and any(graph == known for graph, _ in tuple(self._ended)):
            return None
        return known

    def holds(self, handle: int, node: int) -> bool:
        """Whether a raw graph holds a node."""
        return self._reader is not None and node in self._reader.driver.nodes(handle)

    def _note_end(self, graph: int) -> None:
        """A graph object is gone; called by the garbage collector at any moment, so it only takes a note."""
        self._ended.append((graph, self.recorder.replays_logged))

    # Captures

    def began(self, graph: Any, pool: Any) -> None:
        """A capture is about to begin on the current stream."""
        if self.recorder.sealed:
            return
        capture = self.recorder.begin_capture()
        stack = frames.here(2)
        label = self._labels.read(sys._getframe(2))
        cuda = self.torch.cuda
        known = pool_id(pool)
        device, stream = int(cuda.current_device()), int(cuda.current_stream().cuda_stream)
        if self._watch is not None:
            self._watch.open(capture, device, known, stream, arranged=cuda_trees.captures(sys._getframe(2)))
        site = label.site or ({"file": stack[0][0], "line": stack[0][1], "qualname": stack[0][2]} if stack else None)
        self._pending[id(graph)] = Pending(
            capture,
            stream,
            device,
            label,
            self.recorder.stack(stack),
            site,
        )

    def ending(self, graph: Any) -> None:
        """The capture is about to end: inspect the graph while it is open."""
        pending = self._pending.get(id(graph))
        if pending is None or pending.found is not None or pending.why is not None:
            return
        pending.why = "not inspected"
        if self.recorder.config.count_only:
            pending.why = "this launch counts replays only"
            return
        if self._watch is None or self._reader is None or not self.active:
            pending.why = "the allocator is not followed"
            return
        reader, driver = self._reader, self._reader.driver
        handle = driver.captured_graph(pending.stream)
        if handle is None:
            pending.why = "the stream no longer captures"
            return
        pending.handle = handle
        with self.recorder.held(), no_collection():
            started = time.perf_counter_ns()
            inspection = reader.read(handle)
            pending.spent["nodes"] = (time.perf_counter_ns() - started) // 1000
            resolution = self._resolve(pending, inspection)
        pending.found = (inspection, resolution)
        pending.why = None

    def _resolve(self, pending: Pending, inspection: Inspection) -> Resolution:
        watch = self._watch
        assert watch is not None
        graph = pending.capture.graph
        found: Resolution | None = None

        def fetch() -> None:
            # What is told while references are tied belongs to this moment: nothing is fetched again for it.
            nonlocal found
            memory = watch.digest(whole=True)
            drained = time.perf_counter_ns()
            pending.spent["allocator"] = (drained - started) // 1000
            if memory is not None:
                found = watch.resolve(graph, inspection.words, inspection.names, memory)
                self.recorder.blocks.embed(graph, frozenset(inner for _, inner in inspection.embeds))
            pending.spent["references"] = (time.perf_counter_ns() - drained) // 1000

        started = time.perf_counter_ns()
        self.recorder.drain(fetch)
        if found is None:
            raise RuntimeError("the allocator's events could not be read")
        return found

    def ended(self, graph: Any, keep_graph: bool | None) -> int | None:
        """The capture ended well: write it; returns the graph's identifier."""
        pending = self._pending.pop(id(graph), None)
        if pending is None:
            return None
        pool: Any = None
        try:
            pool = list(graph.pool())
        except Exception as error:
            self.recorder.problem("pool", error)
        if pool is not None and self._watch is not None:
            guess = self._watch.pool_of(pending.capture.graph)
            if (list(guess) != pool) if guess is not None else self._watch.knows(tuple(pool)):
                pending.why, pending.found = f"the capture's pool was taken for {guess}", None
        identifier = self._write(pending, pool, keep_graph)
        if keep_graph and pending.handle is not None:
            self.raw[pending.handle] = identifier
            self.kept.add(identifier)
        weakref.finalize(graph, self._note_end, identifier).atexit = False
        return identifier

    def _write(self, pending: Pending, pool: Any, keep_graph: bool | None) -> int:
        recorder, label = self.recorder, pending.label
        inspection, resolution = pending.found or (Inspection(), Resolution())
        unread = list(inspection.unread)
        why = pending.why or resolution.why
        if why is not None:
            unread.append({"node": None, "type": "graph", "why": why})
        more: dict[str, Any] = {
            "pool": pool,
            "label": label.label,
            "key": label.key,
            "site": pending.site,
            "path": label.path,
            "stack": pending.stack,
            "nodes": inspection.nodes,
            "names": inspection.names,
            "refs": resolution.refs,
            "unowned": resolution.unowned,
            "unread": unread,
            "complete": not unread,
            "keep_graph": keep_graph,
            "dangling": resolution.dangling,
            "spent": pending.spent,
        }
        if inspection.embeds:
            more["embeds"] = inspection.embeds
        pending.label = Label()  # holds the capturing object no longer than needed
        with recorder.lock:
            identifier = recorder.end_capture(pending.capture, **more)
            if self._watch is not None:
                self._watch.close(identifier)
            self._note_key(label, identifier)
        if self._reader is not None and not unread:
            self._reader.remember(inspection, identifier)
        arranged = self._watch is not None and self._watch.arranges(
            identifier
        )  # torch fills free memory before a replay
        if self._poisoner is not None and pool is not None and not arranged:
            self._poisoner.captured(identifier, pending.device, (int(pool[0]), int(pool[1])))
        return identifier

    def _note_key(self, label: Label, graph: int) -> None:
        """The same object captures the same key again, and other captures lay between: the old graph is outdated."""
        if label.label is None or label.owner is None:
            self._last_keyed = None
            return
        try:
            owner = weakref.ref(label.owner)
        except TypeError:
            return
        key = (id(label.owner), f"{label.path} {label.label} {label.key}")
        old = self._keys.get(key)
        if old is not None and old[0]() is label.owner and self._last_keyed != key:
            self.recorder.graph_event(old[1], "recaptured", by=graph)
        self._keys[key] = (owner, graph)
        self._last_keyed = key

    def failed(self, graph: Any, reason: str) -> None:
        """The capture did not end well."""
        pending = self._pending.pop(id(graph), None)
        if pending is not None:
            if self._watch is not None:
                self._watch.close(pending.capture.graph)
            self.recorder.abandon_capture(pending.capture, reason)

    def inspect_now(self, handle: int) -> int:
        """Inspect a graph that no PyTorch capture made (built or captured through cuda-bindings) and write it."""
        recorder = self.recorder
        stack = frames.here(3)
        capture = recorder.begin_capture()
        site = {"file": stack[0][0], "line": stack[0][1], "qualname": stack[0][2]} if stack else None
        device = int(self.torch.cuda.current_device())
        pending = Pending(capture, 0, device, Label(), recorder.stack(stack), site, handle=handle)
        pending.why = "the allocator is not followed"
        if self._watch is not None and self._reader is not None and self.active:
            with recorder.lock:
                self._watch.open(capture, device, None)
                try:
                    inspection = self._reader.read(handle)
                    pending.found, pending.why = (inspection, self._resolve(pending, inspection)), None
                except Exception as error:
                    pending.why = f"{type(error).__name__}: {error}"
        return self._write(pending, None, True)

    # Replays

    def replayed(self, graph: int, stream: int | None = None) -> None:
        """A launch of `graph` starts, on `stream` where the call names it; the hot path."""
        if self._pending and self._captures(stream):
            return  # recorded as a child of the graph that is being captured; nothing runs
        if self._poisoner is not None:
            self._poisoner.before(graph, stream)
        number = self.recorder.replay(graph)
        watch = self._watch
        if watch is not None and (setter := watch.trace.set_marker) is not None:
            setter(mark(number))

    def _captures(self, stream: int | None) -> bool:
        """Whether a stream, or else the current one, is being captured."""
        if stream is None or self._reader is None:
            return bool(self.torch.cuda.is_current_stream_capturing())
        return self._reader.driver.captured_graph(stream) is not None


def install(recorder: Recorder, imports: PostImport) -> CudaInspector:
    """Begin to inspect; torch must be imported."""
    inspector = CudaInspector(recorder, sys.modules["torch"])
    inspector.install(imports)
    return inspector


__all__ = ["TRIGGER", "CudaInspector", "DriverError", "install"]
