"""Allocator events and addresses as the recorder's blocks: what a graph references, who allocated it, what became of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from .. import frames
from ..blocks import Allocation, Block
from ..recorder import Capture, Recorder
from ..timeline import Waiting
from . import cuda_segments
from .cuda_certifier import Certifier
from .cuda_driver import Driver
from .cuda_nodes import Word
from .cuda_placement import Place, Placement
from .cuda_segments import Cell, MemoryMap, SegmentView
from .cuda_trace import AllocatorTrace, Batch, Entry
from .cuda_window import Handed, Left, Pool, Window
from .cuda_workspaces import is_workspace

_DEFAULT: Pool = (0, 0)


@dataclass(slots=True)
class Resolution:
    """References of a capture as its record holds them."""

    refs: list[list[Any]] = field(default_factory=list)
    unowned: list[dict[str, Any]] = field(default_factory=list)
    dangling: list[tuple[Block, int | None]] = field(default_factory=list)


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
        self._driver = driver
        self._pools: set[Pool] = set()
        self._certifier = Certifier(recorder, self.trace, self.digest)
        self._windows: dict[int, Window] = {}
        #: How many times the program has routed its own allocations into a private pool and not ended that.
        self.routed = 0
        self._events = 0
        self._origin: dict[tuple[int, int], tuple[int, int, int | None]] = {}
        self._kinds: dict[int, str | None] = {}

    # Windows

    def open(self, capture: Capture, device: int, pool: Pool | None) -> None:
        """A capture begins; a pool that torch makes for it is recognised later as one that was not known before."""
        with self._recorder.lock:  # else certificates could begin in between
            self.exact()
            self._windows[capture.graph] = Window(capture, device, pool, frozenset(self._pools))

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
        """The pool that torch made for a capture: new since its begin, and memory was handed out from it."""
        for window in self._windows.values():
            if window.pool is not None or window.device >= len(batch):
                continue
            fresh = memory.pools - window.others - {_DEFAULT}
            for entry in batch[window.device]:
                segment = memory.segment(entry["addr"]) if entry["action"] == "alloc" else None
                if segment is not None and segment.pool in fresh:
                    window.pool = segment.pool
                    break

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
            if recorder.blocks.touches(device, address, size):
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
                scratch = is_workspace(entry.get("frames") or [])
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
        return next((w.capture.graph for w in windows if w.pool == segment.pool and segment.pool != _DEFAULT), None)

    def _stack(self, entry: Entry) -> int | None:
        return self._recorder.stack(frames.from_trace(entry.get("frames") or []))

    # References

    def resolve(self, graph: int, words: list[Word], names: list[str], memory: MemoryMap) -> Resolution:
        """Tie the words of an open capture to blocks; events must have been digested with the same `memory`."""
        window = self._windows[graph]
        out = Resolution()
        unowned: dict[tuple[str, int], int] = {}
        temporaries: dict[int, Block] = {}
        dead: dict[int, Block] = {}
        for word in words:
            segment = memory.segment(word.value)
            kind: str
            block: Block | None = None
            if segment is None:
                found = self._memory_kind(word.value)
                if found is None:
                    continue
                kind = "pinned" if found == "pinned" else "unowned"
                if kind == "unowned":
                    unowned[found, word.name] = unowned.get((found, word.name), 0) + 1
            else:
                wider = self._wider(window, word, segment)
                if wider is not None:
                    block = self._temporary(window, wider, segment, temporaries)
                    block.users.add(graph)
                    out.refs.append([word.node, word.name, word.parameter, word.offset, word.via, "chain", block.id])
                tied = self._tie(window, word, segment, temporaries, dead, out)
                if tied is None:
                    unowned["stale-word", word.name] = unowned.get(("stale-word", word.name), 0) + 1
                    continue
                kind, block = tied
                left = window.left_at(word.value) if kind == "chain" else None
                if left is not None:
                    # The address was another capture's until this one freed and reused it: a node may mean either.
                    where = (list(segment.pool), (segment.address, segment.size), segment.device)
                    former = self._inherited(left, where, dead, out)
                    former.users.add(graph)
                    out.refs.append([word.node, word.name, word.parameter, word.offset, word.via, "pool", former.id])
            if block is not None:
                block.users.add(graph)
            out.refs.append(
                [word.node, word.name, word.parameter, word.offset, word.via, kind, None if block is None else block.id]
            )
        out.unowned = [{"kind": k, "name": names[n], "count": count} for (k, n), count in sorted(unowned.items())]
        return out

    @staticmethod
    def _wider(window: Window, word: Word, segment: SegmentView) -> Handed | None:
        """An earlier and larger allocation of the capture, where a later one began at the same address."""
        if segment.pool != window.pool or segment.pool == _DEFAULT:
            return None
        latest = window.latest(word.value)
        wider = window.widest.get(latest.address) if latest is not None else None
        return wider if wider is not None and latest is not None and wider.size > latest.size else None

    def _temporary(self, window: Window, handed: Handed, segment: SegmentView, temporaries: dict[int, Block]) -> Block:
        block = temporaries.get(id(handed))
        if block is None:
            where = (list(segment.pool), (segment.address, segment.size), segment.device)
            allocated = self._recorder.stack(frames.from_trace(handed.frames))
            freed = self._recorder.stack(frames.from_trace(handed.freed or []))
            about = Allocation(handed.address, handed.size, *where, allocated, window.capture.graph)
            block = temporaries[id(handed)] = self._recorder.blocks.refer_temporary(about, freed)
        return block

    def _tie(
        self,
        window: Window,
        word: Word,
        segment: SegmentView,
        temporaries: dict[int, Block],
        dead: dict[int, Block],
        out: Resolution,
    ) -> tuple[str, Block] | None:
        graph, address, blocks = window.capture.graph, word.value, self._recorder.blocks
        where = (list(segment.pool), (segment.address, segment.size), segment.device)
        own_pool = segment.pool == window.pool and segment.pool != _DEFAULT
        cell = segment.cell(address)
        handed = window.latest(address) if own_pool else None
        if handed is not None and (handed.freed is not None or cell is None or not cell.owned):
            return "chain", self._temporary(window, handed, segment, temporaries)
        if cell is not None and cell.owned:
            # Most words name a block that is known by now; describing one costs a stack.
            block = blocks.referred(segment.device, cell.address, where[0]) or blocks.refer(
                self._allocation(cell, where, graph if handed is not None else None)
            )
            if block.allocation.during == graph:
                return "chain", block
            return ("external" if block.allocation.during is None else "pool"), block
        return self._dangle(window, word, cell, where, dead, out)

    def _allocation(self, cell: Cell, where: tuple[list[int], tuple[int, int], int], during: int | None) -> Allocation:
        pool, place, device = where
        stack = self._recorder.stack(frames.from_trace(cell.frames))
        if during is None:
            origin = self._origin.get((device, cell.address))
            if origin is not None:
                during = origin[0]
                stack = origin[2] if stack is None else stack
        return Allocation(cell.address, cell.size, pool, place, device, stack, during)

    def _dangle(
        self,
        window: Window,
        word: Word,
        cell: Cell | None,
        where: tuple[list[int], tuple[int, int], int],
        dead: dict[int, Block],
        out: Resolution,
    ) -> tuple[str, Block] | None:
        """A word that points at memory nobody owns at the end of the capture."""
        pool, place, device = where
        blocks = self._recorder.blocks
        left = window.left_at(word.value)
        if left is not None:
            return "pool", self._inherited(left, where, dead, out)
        known = blocks.dead_at(device, word.value)
        freed_in_window = next((a for a in window.freed if known is not None and a == known.address), None)
        if known is not None and (not word.in_struct or freed_in_window is not None):
            return ("external" if known.allocation.during is None else "pool"), known
        handed = window.latest(word.value)
        if word.in_struct and handed is None and not self._freed_inside(window, cell):
            return None  # an unused slot of a by-value struct: free already before this capture
        key = handed.address if handed is not None else (cell.address if cell is not None else word.value)
        block = dead.get(key)
        if block is None:
            size = handed.size if handed is not None else (cell.size if cell is not None else 1)
            allocated = self._recorder.stack(frames.from_trace(handed.frames)) if handed is not None else None
            freed = handed.freed if handed is not None else window.freed.get(key)
            block = dead[key] = blocks.refer_dead(Allocation(key, size, pool, place, device, allocated, None))
            out.dangling.append((block, self._recorder.stack(frames.from_trace(freed or []))))
        return ("external" if block.allocation.during is None else "pool"), block

    def _inherited(
        self, left: Left, where: tuple[list[int], tuple[int, int], int], dead: dict[int, Block], out: Resolution
    ) -> Block:
        """The block of memory that an earlier segment handed over and this capture gave back."""
        block = dead.get(left.address)
        if block is None:
            pool, place, device = where
            blocks = self._recorder.blocks
            known = blocks.dead_at(device, left.address)
            about = Allocation(left.address, left.size, pool, place, device, left.stack, left.graph)
            block = dead[left.address] = blocks.refer_dead(about)
            if block is not known:
                out.dangling.append((block, self._recorder.stack(frames.from_trace(left.freed))))
        return block

    @staticmethod
    def _freed_inside(window: Window, cell: Cell | None) -> bool:
        return cell is not None and any(cell.address <= a < cell.address + cell.size for a in window.freed)

    def _memory_kind(self, address: int) -> str | None:
        if address not in self._kinds:
            if len(self._kinds) > 100_000:
                self._kinds.clear()
            self._kinds[address] = self._driver.memory_kind(address)
        return self._kinds[address]
