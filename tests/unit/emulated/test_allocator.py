"""The caching allocator: reuse, splitting, merging, pools, unmapping, events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from emugraph.allocator import LARGE_SEGMENT, SMALL_SEGMENT, Allocator
from emugraph.memory import DeviceFault, Memory
from hypothesis import given
from hypothesis import strategies as st


def allocator() -> Allocator:
    """A fresh one."""
    return Allocator(Memory())


def test_freed_address_is_handed_out_again() -> None:
    """Best fit: the same size gets the same block."""
    it = allocator()
    first = it.allocate(300_000)
    it.free(first)
    assert it.allocate(300_000).address == first.address


def test_small_blocks_share_a_segment_and_merge() -> None:
    """Split on allocation, merged on free until the segment is whole."""
    it = allocator()
    blocks = [it.allocate(512) for _ in range(4)]
    assert len({b.segment for b in blocks}) == 1
    assert [b.address - blocks[0].address for b in blocks] == [0, 512, 1024, 1536]
    for index in (1, 3, 0, 2):
        it.free(blocks[index])
    (segment,) = it.segments()
    assert [(b.size, b.allocated) for b in segment.blocks()] == [(SMALL_SEGMENT, False)]


def test_best_fit_takes_the_smallest_hole() -> None:
    """Then the lowest address."""
    it = allocator()
    blocks = [it.allocate(size) for size in (2048, 512, 1024, 512)]
    it.free(blocks[0])
    it.free(blocks[2])
    assert it.allocate(1000).address == blocks[2].address


def test_middle_sizes_share_a_large_segment() -> None:
    """As on the real thing, scaled."""
    it = allocator()
    block = it.allocate(40_000)
    assert block.segment.size == LARGE_SEGMENT


def test_private_pools_do_not_mix() -> None:
    """Memory freed in a pool serves that pool only."""
    it = allocator()
    pool = it.new_pool_id(user=False)
    it.hold(pool)
    it.routes.append(pool)
    inside = it.allocate(300_000)
    it.free(inside)
    it.routes.remove(pool)
    assert it.allocate(300_000).address != inside.address
    it.routes.append(pool)
    assert it.allocate(300_000).address == inside.address


def test_empty_cache_unmaps_what_nobody_holds() -> None:
    """The default pool's idle segments; a private pool's only when it has no holder."""
    it = allocator()
    kept, dropped = it.allocate(300_000), it.allocate(400_000)
    pool = it.new_pool_id(user=True)
    it.hold(pool)
    it.routes.append(pool)
    private = it.allocate(500_000)
    it.routes.remove(pool)
    it.free(dropped)
    it.free(private)
    it.empty_cache()
    assert it.find(kept.address) is kept
    assert it.find(private.address) is not None
    with pytest.raises(DeviceFault):
        it.memory.bytes_at(dropped.address, 1)
    it.memory.lost = None
    it.release(pool)
    it.empty_cache()
    assert it.find(private.address) is None


def test_events_tell_who_did_it() -> None:
    """Alloc and free with addresses, sizes and the stack of the caller."""
    it = allocator()
    it.history.record(True)
    block = it.allocate(600)
    at, segment = block.address, block.segment.address
    it.free(block)
    assert [(event.action, event.address, event.size) for event in it.history.entries] == [
        ("segment_alloc", segment, SMALL_SEGMENT),
        ("alloc", at, 1024),
        ("free_requested", at, 1024),
        ("free_completed", at, 1024),
    ]
    assert it.history.entries[1].frames[0][2] == "test_events_tell_who_did_it"


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 400_000)), max_size=60))
def test_allocated_blocks_never_overlap_and_segments_stay_whole(story: list[tuple[bool, int]]) -> None:
    """Whatever the order of allocations and frees, blocks tile their segments and owners are disjoint."""
    it = allocator()
    held = []
    for take, size in story:
        if take or not held:
            held.append(it.allocate(size))
        else:
            it.free(held.pop(size % len(held)))
        for segment in it.segments():
            blocks = list(segment.blocks())
            assert blocks[0].address == segment.address
            assert sum(b.size for b in blocks) == segment.size
            assert all(a.address + a.size == b.address for a, b in pairwise(blocks))
        assert {id(b) for s in it.segments() for b in s.blocks() if b.allocated} == {id(b) for b in held}
