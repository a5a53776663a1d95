"""Certificates: proof that referenced blocks are still the same allocations, without following events.

While events are recorded, the allocator keeps the allocating stack with each block; while they are not, a new allocation gets
none. So after recording was switched off, a block that is alive and still shows a stack was neither freed nor handed out
again since: one snapshot proves it for all blocks at once, whatever happened in between.
"""

from __future__ import annotations

from ..blocks import Block
from .cuda_segments import MemoryMap


def certified(block: Block, memory: MemoryMap) -> bool:
    """Whether the snapshot proves that `block` is the allocation it was when recording ended."""
    segment = memory.segment(block.address)
    cell = None if segment is None else segment.cell(block.address)
    pool = block.allocation.pool
    return (
        segment is not None
        and (pool is None or list(segment.pool) == list(pool))
        and cell is not None
        and cell.address == block.address
        and cell.live
        and bool(cell.frames)
    )


def uncertified(blocks: list[Block], memory: MemoryMap) -> list[Block]:
    """The blocks that the snapshot does not vouch for."""
    return [block for block in blocks if not certified(block, memory)]
