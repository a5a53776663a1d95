"""The blocks that graphs reference: one identity per allocation, and which allocator events concern them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

Pool = Any
Segment = tuple[int, int]
#: Owners of temporaries' memory outside captures that are followed to their end; later ones are reported without.
MOST_INTRUDERS = 1000


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory that an allocator handed out, as known when a graph is seen to reference it.

    Attributes:
        address: First byte.
        size: Bytes handed out.
        pool: The allocator's pool, as JSON: `[0, 0]` or `"default"` for the default pool, whatever names a private one.
        segment: Address and size of the segment it lies in, or None.
        device: Ordinal of the device.
        stack: Identifier of the allocating stack, or None when unknown.
        during: Graph inside whose capture it was allocated, or None.
    """

    address: int
    size: int
    pool: Pool
    segment: Segment | None
    device: int
    stack: int | None = None
    during: int | None = None


@dataclass(slots=True)
class Block:
    """One referenced allocation; `freed` once its owner gave it back."""

    id: int
    allocation: Allocation
    generation: int
    freed: bool = False
    gone: bool = False
    overlapped_during: set[int | None] = field(default_factory=set)
    #: Graphs that reference it, as far as the inspector told.
    users: set[int] = field(default_factory=set)
    #: Not referenced itself: it holds memory of a graph's temporaries outside captures.
    intruder: bool = False

    @property
    def address(self) -> int:
        """First byte."""
        return self.allocation.address

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.allocation.address + self.allocation.size


class BlockTable:
    """Referenced blocks by device and address. Only what a graph references is kept, so memory is bounded by the graphs.

    The table decides which allocator events matter and hands those to `emit(kind, members)`, where kind is `free`,
    `alloc`, `segment-gone` or `pool-gone` as in docs/receipts.md.
    """

    def __init__(self, emit: Callable[[str, dict[str, Any]], None], announce: Callable[[Block], None]) -> None:
        """Args: emit: receives events. announce: receives each new block before any event or capture names it."""
        self._emit = emit
        self._announce = announce
        self._next = 0
        self._live: dict[tuple[int, int], Block] = {}
        self._starts: dict[int, list[int]] = {}
        self._dead: dict[int, list[tuple[int, int, Block]]] = {}
        self._longest_dead = 0
        self._generations: dict[tuple[int, str, int], int] = {}
        self._temporaries: dict[int, list[Block]] = {}
        self._temporary_spans: dict[int, list[tuple[int, int]]] = {}
        self._intruders = 0

    # Registration

    def refer(self, allocation: Allocation) -> Block:
        """The block of an allocation that is alive now: the registered one, else a new one of a higher generation.

        The caller must have reported every earlier free and allocation (`freed`, `allocated`).
        """
        block = self.referred(allocation.device, allocation.address, allocation.pool)
        if block is not None:
            return block
        key = (allocation.device, allocation.address)
        known = key in self._live
        block = self._new(allocation)
        self._live[key] = block
        if not known:  # else another allocator laid its own block over the same address: the later one is followed
            insort(self._starts.setdefault(allocation.device, []), allocation.address)
        return block

    def referred(self, device: int, address: int, pool: Pool) -> Block | None:
        """The registered live block of a pool that begins at `address`: what `refer` would return without a new one."""
        block = self._live.get((device, address))
        return block if block is not None and block.allocation.pool == pool else None

    def refer_dead(self, allocation: Allocation) -> Block:
        """The block of an allocation that was freed before it was seen to be referenced (already dangling).

        A new block is announced as allocated; the caller reports its `free` event by `report_dead` once the capture is written.
        """
        block = self.dead_at(allocation.device, allocation.address, allocation.size)
        if block is None or not _same_allocation(block.allocation, allocation):
            block = self._new(allocation)
            self._bury(block)
        return block

    def refer_temporary(self, allocation: Allocation, freed_by: int | None) -> Block:
        """The block of memory that was handed out and given back inside the capture under way.

        Later captures of the pool may have the memory; an owner outside captures is reported, for replays write over it.
        """
        block = self._new(allocation)
        block.freed = True
        self._temporaries.setdefault(allocation.device, []).append(block)
        spans = self._temporary_spans.setdefault(allocation.device, [])
        self._temporary_spans[allocation.device] = _with_span(spans, block.address, block.end)
        self._emit("free", {"block": block.id, "stack": freed_by, "t": None})
        return block

    def _new(self, allocation: Allocation) -> Block:
        key = (allocation.device, repr((allocation.pool, allocation.segment)), allocation.address)
        generation = self._generations[key] = self._generations.get(key, 0) + 1
        block = Block(self._next, allocation, generation)
        self._next += 1
        self._announce(block)
        return block

    def embed(self, graph: int, inside: frozenset[int]) -> None:
        """`graph` runs other graphs as its children: what they use, it uses."""
        if not inside:
            return
        dead = (entry[2] for entries in self._dead.values() for entry in entries)
        temporary = (block for blocks in self._temporaries.values() for block in blocks)
        for block in (*self._live.values(), *dead, *temporary):
            if block.users & inside:
                block.users.add(graph)

    # Queries

    def live_at(self, device: int, address: int) -> Block | None:
        """The registered live block that holds `address`."""
        starts = self._starts.get(device, [])
        index = bisect_right(starts, address) - 1
        if index < 0:
            return None
        block = self._live[device, starts[index]]
        return block if address < block.end else None

    def dead_at(self, device: int, address: int, size: int = 1) -> Block | None:
        """The most recently freed registered block that overlaps the range."""
        found = self._overlapping_dead(device, address, size)
        return max(found, key=lambda block: block.id, default=None)

    def live(self) -> list[Block]:
        """Blocks that graphs reference and whose owner has not given them back."""
        return [block for block in self._live.values() if not block.intruder]

    def is_live(self, device: int, address: int) -> bool:
        """Whether a registered live block begins at `address`."""
        return (device, address) in self._live

    @property
    def intruders(self) -> int:
        """How many owners of memory of graphs' temporaries are alive."""
        return sum(block.intruder for block in self._live.values()) if self._intruders else 0

    def left(self, device: int, address: int, size: int) -> list[Block]:
        """The registered blocks in the range that were given back and of which nobody outside captures was seen to be the owner."""
        found = [b for b in self._overlapping_dead(device, address, size) if None not in b.overlapped_during]
        if self._touches_temporaries(device, address, size):
            found += self._overlapping_temporaries(device, address, size)
        return found

    def concerned(self, device: int, address: int, size: int) -> list[Block]:
        """All registered blocks in the range, alive or given back."""
        return [
            *self._overlapping_live(device, address, size),
            *self._overlapping_dead(device, address, size),
            *self._overlapping_temporaries(device, address, size),
        ]

    def touches(self, device: int, address: int, size: int) -> bool:
        """Whether the range overlaps any registered block, alive or dead."""
        return bool(
            self._overlapping_live(device, address, size)
            or self._overlapping_dead(device, address, size)
            or self._touches_temporaries(device, address, size)
        )

    def unregistered(self, device: int, start: int, end: int) -> list[tuple[int, int]]:
        """The parts of a range that no registered block overlaps."""
        parts: list[tuple[int, int]] = []
        taken = (
            *self._overlapping_live(device, start, end - start),
            *self._overlapping_dead(device, start, end - start),
        )
        for block in sorted(taken, key=lambda b: b.address):
            if block.address > start:
                parts.append((start, block.address))
            start = max(start, block.end)
        return [*parts, (start, end)] if start < end else parts

    def __len__(self) -> int:
        """How many blocks are watched, alive or dead."""
        return len(self._live) + sum(len(blocks) for blocks in self._dead.values())

    # Events, in the order in which they happened

    def freed(
        self,
        device: int,
        address: int,
        stack: int | None,
        t: int | None,
        *,
        watch: bool = True,
        scratch: bool = False,
    ) -> Block | None:
        """The allocation at `address` was given back.

        Args:
            device: Ordinal of the device.
            address: Its first byte.
            stack: Who freed it.
            t: When.
            watch: Whether a later owner of the memory matters; false inside the capture that allocated it.
            scratch: Whether it held nothing that anybody reads later.
        """
        block = self._live.pop((device, address), None)
        if block is None:
            return None
        starts = self._starts[device]
        del starts[bisect_left(starts, address)]
        block.freed = True
        if watch and not block.intruder:
            self._bury(block)
        self._emit("free", {"block": block.id, "stack": stack, "t": t, **({"scratch": True} if scratch else {})})
        return block

    def allocated(
        self, device: int, address: int, size: int, stack: int | None, t: int | None, during: int | None = None
    ) -> None:
        """Memory was handed out: whatever registered block it overlaps has a new owner, or a second one."""
        over = [
            block
            for block in (
                *self._overlapping_live(device, address, size),
                *self._overlapping_dead(device, address, size),
            )
            if during not in block.overlapped_during
        ]
        if during is None and self._intrude(device, address, size, stack, t):
            return
        if over:
            for block in over:
                block.overlapped_during.add(during)
            owner = {"address": address, "size": size, "during": during}
            self._emit("alloc", {"block": None, "over": [b.id for b in over], "stack": stack, "t": t, **owner})

    def _intrude(self, device: int, address: int, size: int, stack: int | None, t: int | None) -> bool:
        """Somebody outside captures got memory that graphs let go of: register who, so that its end is seen too."""
        dead = self._overlapping_dead(device, address, size)
        over = [b for b in dead if b.allocation.during is not None]
        if self._touches_temporaries(device, address, size):
            over += self._overlapping_temporaries(device, address, size)
        over = [b for b in over if not b.gone]
        if not over or self._intruders >= MOST_INTRUDERS or (device, address) in self._live:
            return False
        self._intruders += 1
        over += [b for b in dead if b not in over]
        over += self._overlapping_live(device, address, size)
        owner = self._new(Allocation(address, size, None, None, device, stack, None))
        owner.intruder = True
        owner.users = set().union(*(b.users for b in over))
        self._live[device, address] = owner
        insort(self._starts.setdefault(device, []), address)
        members = {
            "over": [b.id for b in over],
            "stack": stack,
            "t": t,
            "address": address,
            "size": size,
            "during": None,
        }
        self._emit("alloc", {"block": owner.id, **members})
        return True

    def segment_gone(self, device: int, address: int, size: int) -> None:
        """A segment, or a mapped part of one, went back to the driver."""
        blocks = [*self._overlapping_live(device, address, size), *self._overlapping_dead(device, address, size)]
        if self._touches_temporaries(device, address, size):
            here = self._overlapping_temporaries(device, address, size)
            blocks += here
            left = [b for b in self._temporaries[device] if b not in here]
            self._temporaries[device] = left
            spans: list[tuple[int, int]] = []
            for block in left:
                spans = _with_span(spans, block.address, block.end)
            self._temporary_spans[device] = spans
        for block in blocks:
            block.gone = True
        if blocks:
            self._emit("segment-gone", {"segment": [address, size], "blocks": sorted(b.id for b in blocks)})

    def pool_gone(self, pool: Pool) -> None:
        """A private pool was released."""
        dead = (entry[2] for entries in self._dead.values() for entry in entries)
        blocks = [b for b in (*self._live.values(), *dead) if b.allocation.pool == pool]
        if blocks:
            self._emit("pool-gone", {"pool": pool, "blocks": sorted(b.id for b in blocks)})

    # Internals

    def _bury(self, block: Block) -> None:
        block.freed = True
        self._longest_dead = max(self._longest_dead, block.allocation.size)
        insort(self._dead.setdefault(block.allocation.device, []), (block.address, block.id, block))

    def _overlapping_dead(self, device: int, address: int, size: int) -> list[Block]:
        entries = self._dead.get(device)
        if not entries:
            return []
        low = bisect_left(entries, (address - self._longest_dead, -1))
        high = bisect_left(entries, (address + size, -1))
        return [entry[2] for entry in entries[low:high] if entry[2].end > address]

    def _overlapping_temporaries(self, device: int, address: int, size: int) -> list[Block]:
        return [b for b in self._temporaries.get(device, []) if b.address < address + size and b.end > address]

    def _touches_temporaries(self, device: int, address: int, size: int) -> bool:
        spans = self._temporary_spans.get(device)
        if not spans:
            return False
        index = bisect_left(spans, (address + size, -1)) - 1
        return index >= 0 and spans[index][1] > address

    def _overlapping_live(self, device: int, address: int, size: int) -> list[Block]:
        starts = self._starts.get(device)
        if not starts:
            return []
        found: list[Block] = []
        index = bisect_right(starts, address) - 1
        if index >= 0:
            block = self._live[device, starts[index]]
            if block.end > address:
                found.append(block)
        index += 1
        while index < len(starts) and starts[index] < address + size:
            found.append(self._live[device, starts[index]])
            index += 1
        return found

    def report_dead(self, blocks: Iterable[Block], stacks: dict[int, int | None], t: int | None) -> None:
        """Write the `free` events of blocks that were dangling when first referenced; `stacks` maps block ids."""
        for block in blocks:
            self._emit("free", {"block": block.id, "stack": stacks.get(block.id), "t": t})


def _same_allocation(known: Allocation, described: Allocation) -> bool:
    """Whether a dead block may be the allocation described: its address may have been handed out again since."""
    if known.address != described.address:
        return False
    return described.stack is None or (known.stack, known.during) == (described.stack, described.during)


def _with_span(spans: list[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Disjoint sorted spans with one more, merged with all that it touches."""
    low = bisect_left(spans, (start, -1))
    if low and spans[low - 1][1] >= start:
        low -= 1
    high = low
    while high < len(spans) and spans[high][0] <= end:
        start, end, high = min(start, spans[high][0]), max(end, spans[high][1]), high + 1
    return [*spans[:low], (start, end), *spans[high:]]
