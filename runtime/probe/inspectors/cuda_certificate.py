"""Certificates: proof that referenced blocks are still the same allocations, without following events.

While events are recorded, the allocator keeps the allocating stack with each block; while they are not, a new allocation gets
none. So after recording was switched off, a block that its owner has not given back and that still shows a stack was neither freed
nor handed out again since: one snapshot proves it for all blocks at once, whatever happened in between. And a block that shows no
stack and lies over memory which graphs let go of has an owner that nobody saw.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..blocks import Block, BlockTable
from .cuda_segments import MemoryMap, SegmentView


def certified(block: Block, memory: MemoryMap) -> bool:
    """Whether the snapshot proves that `block` is the allocation it was when recording ended."""
    pool = block.allocation.pool
    return any(
        _still_there(block, segment)
        for segment in memory.holding(block.address)
        if pool is None or list(segment.pool) == list(pool)
    )


def _still_there(block: Block, segment: SegmentView) -> bool:
    cell = segment.cell(block.address)
    return cell is not None and cell.address == block.address and cell.owned and bool(cell.frames)


def uncertified(blocks: list[Block], memory: MemoryMap) -> list[Block]:
    """The blocks that the snapshot does not vouch for."""
    return [block for block in blocks if not certified(block, memory)]


def unseen_owners(blocks: BlockTable, memory: MemoryMap) -> Iterator[tuple[int, int, int]]:
    """Device, address and size of memory that graphs let go of and somebody got while nothing was recorded."""
    for segment in memory.views:
        if blocks.left(segment.device, segment.address, segment.size):
            for address, size in segment.anonymous():
                if not blocks.is_live(segment.device, address) and blocks.left(segment.device, address, size):
                    yield segment.device, address, size
