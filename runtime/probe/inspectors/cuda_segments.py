"""A snapshot of the caching allocator: which segment and which block an address lies in."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .cuda_atomic import unsplit


@dataclass(frozen=True, slots=True)
class Cell:
    """A block of a segment as the snapshot shows it.

    Attributes:
        address: First byte.
        size: Bytes.
        owned: Its owner has not given it back. What was given back and waits for a stream is not owned, though nobody can get it yet.
        frames: Who allocated it.
    """

    address: int
    size: int
    owned: bool
    frames: list[dict[str, Any]]


@dataclass(slots=True)
class SegmentView:
    """A segment and its cells in order of address."""

    address: int
    size: int
    pool: tuple[int, int]
    device: int
    raw: list[dict[str, Any]]
    _starts: list[int] | None = None

    def cell(self, address: int) -> Cell | None:
        """The block that holds `address`."""
        if self._starts is None:
            at = self.address
            for block in self.raw:
                block.setdefault("address", at)
                at = block["address"] + block["size"]
            self._starts = [block["address"] for block in self.raw]
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        block = self.raw[index]
        if address >= block["address"] + block["size"]:
            return None
        return Cell(block["address"], block["size"], block["state"] == "active_allocated", block.get("frames") or [])

    def blocks(self) -> Iterator[tuple[int, int, str]]:
        """Address, size and state of each block."""
        at = self.address
        for block in self.raw:
            at = block.get("address", at)
            yield at, int(block["size"]), block["state"]
            at += block["size"]

    def anonymous(self) -> Iterator[tuple[int, int]]:
        """Address and size of each block that somebody owns and that shows no allocating stack."""
        at = self.address
        for block in self.raw:
            at = block.get("address", at)
            if block["state"] == "active_allocated" and not block.get("frames"):
                yield at, int(block["size"])
            at += block["size"]


class MemoryMap:
    """All segments at one moment."""

    def __init__(self, segments: list[dict[str, Any]]) -> None:
        """Args: segments: as `torch.cuda.memory_snapshot()` gives them."""
        views = [
            SegmentView(s["address"], s["total_size"], _pool(s.get("segment_pool_id")), int(s["device"]), s["blocks"])
            for s in segments
        ]
        self._views = sorted(views, key=lambda v: v.address)
        self._starts = [v.address for v in self._views]
        self._reach: list[int] = []  # how far any segment up to this one extends: segments may be laid over one another
        for view in self._views:
            self._reach.append(max(view.address + view.size, self._reach[-1] if self._reach else 0))
        self.lowest = self._starts[0] if views else 0
        self.highest = max((v.address + v.size for v in views), default=0)

    def segment(self, address: int) -> SegmentView | None:
        """The segment that holds `address`; of several, the one that begins last."""
        return next(self.holding(address), None)

    def holding(self, address: int) -> Iterator[SegmentView]:
        """All segments that hold `address`: one may be laid over blocks of another."""
        if not self.lowest <= address < self.highest:
            return
        index = bisect_right(self._starts, address) - 1
        while index >= 0 and self._reach[index] > address:
            view = self._views[index]
            if address < view.address + view.size:
                yield view
            index -= 1

    @property
    def views(self) -> list[SegmentView]:
        """All segments in order of address."""
        return self._views

    def free_cells(self, device: int, pool: tuple[int, int]) -> list[tuple[int, int]]:
        """Address and size of what nobody owns in a pool: neither there nor through a segment laid over it."""
        found: list[tuple[int, int]] = []
        for view in self._views:
            if view.device != device or view.pool != pool:
                continue
            end = view.address + view.size
            over = [o for o in self._views if o is not view and o.address < end and view.address < o.address + o.size]
            taken = sorted(block for other in over for block in other.blocks() if block[2] != "inactive")
            for address, size, state in view.blocks():
                if state == "inactive":
                    found += _without(address, address + size, taken)
        return found

    @property
    def pools(self) -> set[tuple[int, int]]:
        """Pools that own a segment."""
        return {view.pool for view in self._views}


def _without(start: int, end: int, taken: list[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    """Address and size of the parts of a range that lie in none of these blocks."""
    for address, size, _ in taken:
        if address < end and start < address + size:
            if start < address:
                yield start, address - start
            start = address + size
    if start < end:
        yield start, end - start


def _pool(raw: Any) -> tuple[int, int]:
    return (int(raw[0]), int(raw[1])) if raw else (0, 0)


def take(torch: Any) -> MemoryMap:
    """Snapshot the allocator, without its events where this torch allows that."""
    snapshot = torch._C._cuda_memorySnapshot
    try:
        found = unsplit([partial(snapshot, (0, 0, False))], torch)[0]
    except (TypeError, RuntimeError):
        found = unsplit([partial(snapshot, None)], torch)[0]
    return MemoryMap(found["segments"])
