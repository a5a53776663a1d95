"""Allocator events and addresses as the recorder's blocks: what a graph references, who allocated it, what became of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import cache
from typing import Any

from .. import frames
from ..recorder import Capture, Recorder
from ..timeline import Waiting
from . import cuda_segments
from .cuda_certifier import Certifier
from .cuda_driver import Driver
from .cuda_nodes import Word
from .cuda_placement import Place, Placement
from .cuda_references import Origins, References, Resolution
from .cuda_segments import MemoryMap
from .cuda_trace import AllocatorTrace, Batch, Entry
from .cuda_trees import arranged
from .cuda_window import DEFAULT, Handed, Left, Pool, Window
from .cuda_workspaces import is_workspace


def unfollowed(torch: Any) -> str | None:
    """Why the memory of this process shows no owners, if it does not."""
    if "PYTORCH_NO_CUDA_MEMORY_CACHING" in os.environ:
        return "PYTORCH_NO_CUDA_MEMORY_CACHING switches the caching allocator off: memory shows no owners"
    backend = getattr(torch.cuda, "get_allocator_backend", lambda: "native")()
    return None if backend == "native" else f"the {backend} allocator serves this process: its memory shows no owners"


class AllocatorWatch:
    """Follows the caching allocator for the recorder; `drain` is the recorder's source of events."""

    def __init__(self, recorder: Recorder, torch: Any, driver: Driver, *, stacks: bool) -> None:
        """Args: recorder: receives blocks and events. torch: the module. driver: classifies memory. stacks: gather them."""
        self.trace = AllocatorTrace(torch, stacks=stacks)
        self._recorder = recorder
        self._torch = torch
        self._pools: set[Pool] = set()
        self._claimed: set[Pool] = set()
        self._arranged: set[int] = set()
        self._certifier = Certifier(recorder, self.trace, self.digest)
        self._windows: dict[int, Window] = {}
        #: How many times the program has routed its own allocations into a private pool and not ended that.
        self.routed = 0
        self._events = 0
        self._origin: Origins = {}
        self._references = References(recorder, driver, self._origin)

    # Windows

    def open(
        self, capture: Capture, device: int, pool: Pool | None, stream: int | None = None, *, arranged: bool = False
    ) -> None:
        """A capture begins; a pool that torch makes for it is recognised later as one that was not known before."""
        with self._recorder.lock:  # else certificates could begin in between
            self.exact()
            self._windows[capture.graph] = Window(capture, device, pool, frozenset(self._pools), stream, arranged)
            if pool is not None:
                self._claimed.add(pool)
            if arranged:
                self._arranged.add(capture.graph)

    def exact(self) -> None:
        """Follow every event from here on, if only certificates were taken."""
        if self._certifier.active:
            self._recorder.drain(self._certifier.leave)

    def close(self, graph: int) -> None:
        """A capture ended or failed; what it left alive is remembered as its own."""
        window = self._windows.pop(graph, None)
        if window is None:
            return
        for handed in window.at.values():
            stack = self._recorder.stack(frames.from_trace(handed.frames))
            self._origin[window.device, handed.address] = (graph, handed.size, stack)

    def pool_of(self, graph: int) -> Pool | None:
        """The pool of an open capture as far as known."""
        window = self._windows.get(graph)
        return None if window is None else window.pool

    # Events

    def drain(self) -> None:
        """Fetch and digest the events since the last time (the recorder calls this under its lock)."""
        if self._certifier.active:
            self._certifier.look()
        elif self.trace.recording:
            started = time.monotonic()
            self.digest()
            now = time.monotonic()
            self._recorder.account(batches=1, events=self._events, seconds=now - started)
            if not (self._windows or self.routed or self._recorder.closing):
                self._certifier.consider(now, self._events, now - started)

    def digest(self, batch: Batch | None = None, *, whole: bool = False) -> MemoryMap | None:
        """Fetch events and tell the recorder those that matter, each between the replays it happened between.

        Args:
            batch: Events that were fetched already.
            whole: The segments are wanted, whatever the events are.

        Returns:
            The segments right after the events, if a capture is open and they were looked at: only an allocation needs them.
        """
        recorder = self._recorder
        first = recorder.replays_ordered
        batch = batch or self.trace.fetch()
        self._events = sum(len(entries) for entries in batch.entries)
        whole = whole or any(entry["action"] == "alloc" for entries in batch.entries for entry in entries)
        memory = cuda_segments.take(self._torch) if self._windows and whole else None
        if memory is not None:
            self._find_pools(batch.entries, memory)
            self._pools |= memory.pools
        waiting = cache(recorder.timeline.waiting)
        latest = recorder.timeline.latest if self.trace.set_marker is not None else None
        pending: list[tuple[Place, int, int, Entry]] = []
        for device, entries in enumerate(batch.entries):
            placement = Placement(first, waiting, batch.clock, latest)
            for number, entry in enumerate(self._relevant(device, entries)):
                pending.append((placement.place(entry), device, number, entry))
        if len(batch.entries) > 1:
            pending.sort(key=lambda item: (item[0].after, *item[1:3]))
        for place, device, _, entry in pending:
            # Replays that an earlier tie let go first may be among those that followed this event.
            before = max(place.before, recorder.replays_ordered)
            near = waiting()[place.after - first : before - first] if before > place.after else []
            recorder.order_replays(place.likely if self._unsure(device, entry, near) else place.after)
            self._tell(device, entry, place.t, memory)
        for text in batch.lost:
            recorder.recorder_event("overflow" if "overflowed" in text else "gap", detail=text)
        return memory

    def _unsure(self, device: int, entry: Entry, replays: list[Waiting]) -> bool:
        """Whether replays that are too close to an event to order them use memory that it concerns: a hazard for their graphs.

        The event is told behind those that may have come first, as far as the clocks tell: no fault is claimed of them.
        """
        if not replays:
            return False
        recorder, address = self._recorder, int(entry["addr"])
        if entry["action"] == "free_requested":
            blocks = [b for b in recorder.blocks.concerned(device, address, 1) if b.address == address and not b.freed]
        else:
            blocks = recorder.blocks.concerned(device, address, int(entry["size"]))
        graphs = {replay.graph for replay in replays}
        # A graph's own capture may let go of its blocks: no order makes that a fault of that graph.
        graphs = {g for b in blocks for g in graphs & b.users if b.freed or b.allocation.during != g}
        if graphs:
            detail = f"{len(replays)} replays are too close to the event ({entry['action']}) to order"
            recorder.recorder_event("tie", detail=detail, blocks=[b.id for b in blocks], graphs=sorted(graphs))
        return bool(graphs)

    def _find_pools(self, batch: list[list[Entry]], memory: MemoryMap) -> None:
        """The pool that torch made for a capture: new since its begin, and memory was handed out from it.

        Where several captures look for theirs at once, each gets that from which its own stream took memory.
        """
        seeking = [w for w in self._windows.values() if w.pool is None and w.device < len(batch)]
        for window in seeking:
            alone = sum(other.device == window.device for other in seeking) == 1
            fresh = memory.pools - window.others - self._claimed - {DEFAULT}
            for entry in batch[window.device]:
                if entry["action"] == "alloc" and (alone or entry.get("stream") == window.stream):
                    segment = memory.segment(entry["addr"])
                    if segment is not None and segment.pool in fresh:
                        window.pool = segment.pool
                        self._claimed.add(segment.pool)
                        break

    def arranges(self, graph: int) -> bool:
        """Whether torch.compile captured a graph."""
        return graph in self._arranged

    def knows(self, pool: Pool) -> bool:
        """Whether memory was seen in a pool."""
        return pool in self._pools

    def _relevant(self, device: int, entries: Iterable[Entry]) -> Iterable[Entry]:
        blocks = self._recorder.blocks
        watching = any(window.device == device for window in self._windows.values())
        origin = self._origin
        handed: set[int] = set()  # in this batch: who gives it back is told, too
        for entry in entries:
            action = entry["action"]
            if action == "free_requested":
                address = entry["addr"]
                if watching or address in handed or blocks.is_live(device, address) or (device, address) in origin:
                    yield entry
            elif action == "alloc":
                if watching or blocks.touches(device, entry["addr"], entry["size"]):
                    handed.add(entry["addr"])
                    yield entry
            elif action in ("segment_free", "segment_unmap"):
                yield entry

    def _tell(self, device: int, entry: Entry, t: int, memory: MemoryMap | None) -> None:
        """Note one event."""
        action, address, size = entry["action"], int(entry["addr"]), int(entry["size"])
        recorder = self._recorder
        windows = [w for w in self._windows.values() if w.device == device]
        if action == "alloc":
            during = self._owner(windows, address, memory)
            for window in windows:
                window.hand(Handed(address, max(size, 1), entry.get("frames") or []))
            mine = during in self._arranged if during is not None else arranged(entry.get("frames") or [])
            if not mine and recorder.blocks.touches(device, address, size):
                recorder.allocated(device, address, max(size, 1), stack=self._stack(entry), t=t, during=during)
        elif action == "free_requested":
            for window in windows:
                freed = entry.get("frames") or []
                window.freed[address] = freed
                known = window.at.pop(address, None)
                if known is not None:
                    known.freed = freed
            origin = self._origin.pop((device, address), None)
            if origin is not None:
                graph, left_size, stack = origin
                for window in windows:
                    window.left.append(Left(address, left_size, graph, stack, entry.get("frames") or []))
            if recorder.blocks.is_live(device, address):
                block = recorder.blocks.live_at(device, address)
                # Nobody may read a compiled function's output once it was let go of: torch gives the memory to another graph.
                let_go = block is not None and block.allocation.during in self._arranged
                scratch = let_go or is_workspace(entry.get("frames") or [])
                recorder.freed(device, address, stack=self._stack(entry), t=t, scratch=scratch)
        else:
            recorder.segment_gone(device, address, size)

    @staticmethod
    def _owner(windows: list[Window], address: int, memory: MemoryMap | None) -> int | None:
        if not windows or memory is None:
            return None
        segment = memory.segment(address)
        if segment is None:
            return None
        return next((w.capture.graph for w in windows if w.pool == segment.pool and segment.pool != DEFAULT), None)

    def _stack(self, entry: Entry) -> int | None:
        return self._recorder.stack(frames.from_trace(entry.get("frames") or []))

    def resolve(self, graph: int, words: list[Word], names: list[str], memory: MemoryMap) -> Resolution:
        """Tie the words of an open capture to blocks; events must have been digested with the same `memory`."""
        return self._references.resolve(self._windows[graph], words, names, memory)
