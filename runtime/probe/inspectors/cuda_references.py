"""Ties the words of a graph to the blocks of memory that they name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import frames
from ..blocks import Allocation, Block
from ..recorder import Recorder
from .cuda_driver import Driver
from .cuda_nodes import Word
from .cuda_segments import Cell, MemoryMap, SegmentView
from .cuda_window import DEFAULT, Handed, Left, Window

#: What captures left alive: the graph, the size and the allocating stack, by device and address.
Origins = dict[tuple[int, int], tuple[int, int, int | None]]


@dataclass(slots=True)
class Resolution:
    """References of a capture as its record holds them."""

    refs: list[list[Any]] = field(default_factory=list)
    unowned: list[dict[str, Any]] = field(default_factory=list)
    dangling: list[tuple[Block, int | None]] = field(default_factory=list)
    #: Why the references are not all that the graph has, if so.
    why: str | None = None


class References:
    """Knows what each word of a capture means; works under the recorder's lock."""

    def __init__(self, recorder: Recorder, driver: Driver, origin: Origins) -> None:
        """Args: recorder: owns the blocks. driver: classifies memory. origin: what captures left alive, kept by the caller."""
        self._recorder = recorder
        self._driver = driver
        self._origin = origin
        self._kinds: dict[int, str | None] = {}

    def resolve(self, window: Window, words: list[Word], names: list[str], memory: MemoryMap) -> Resolution:
        """Tie the words of an open capture to blocks; events must have been digested with the same `memory`."""
        graph = window.capture.graph
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
                if found is None and word.via != "memcpy":
                    continue  # a number that is no address
                kind = "pinned" if found == "pinned" else "unowned"
                if kind == "unowned":
                    key = found or "host", word.name
                    unowned[key] = unowned.get(key, 0) + 1
            elif window.arranged and self._is_input(window, word, segment):
                key = "arranged", word.name
                unowned[key] = unowned.get(key, 0) + 1
                continue
            elif window.stream is None and (owner := self._others_own(word, segment)) is not None:
                out.why = f"it uses memory that graph {owner} keeps for itself"
                continue
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

    def _is_input(self, window: Window, word: Word, segment: SegmentView) -> bool:
        """Whether torch.compile copies an input to this place of its pool before each replay, whoever has it in between."""
        if (
            segment.pool != window.pool
            or window.latest(word.value) is not None
            or window.left_at(word.value) is not None
        ):
            return False
        cell = segment.cell(word.value)
        known = self._recorder.blocks.referred(segment.device, cell.address, list(segment.pool)) if cell else None
        return known is None or known.allocation.during is None

    def _others_own(self, word: Word, segment: SegmentView) -> int | None:
        """The captured graph whose temporaries a graph that was made by hand, such as an edited clone of it, names."""
        cell = segment.cell(word.value)
        if cell is not None and cell.owned:
            return None
        blocks = self._recorder.blocks.concerned(segment.device, word.value, 1)
        return next((b.allocation.during for b in blocks if b.allocation.during is not None), None)

    @staticmethod
    def _wider(window: Window, word: Word, segment: SegmentView) -> Handed | None:
        """An earlier and larger allocation of the capture, where a later one began at the same address."""
        if segment.pool != window.pool or segment.pool == DEFAULT:
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
        own_pool = segment.pool == window.pool and segment.pool != DEFAULT
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
