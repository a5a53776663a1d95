"""What the allocator did while a capture was open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..recorder import Capture

Pool = tuple[int, int]
#: The pool of whatever is allocated outside private pools.
DEFAULT: Pool = (0, 0)


@dataclass(slots=True)
class Handed:
    """Memory handed out while a capture was open; `freed` holds the freeing frames once it was given back."""

    address: int
    size: int
    frames: list[dict[str, Any]]
    freed: list[dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """Memory that an earlier capture had left alive, and that was given back while this one was open."""

    address: int
    size: int
    graph: int
    stack: int | None
    freed: list[dict[str, Any]]


@dataclass(slots=True)
class Window:
    """An open capture and what the allocator did meanwhile on its device."""

    capture: Capture
    device: int
    pool: Pool | None
    #: Pools that owned memory when the capture began; consulted while its own is not known.
    others: frozenset[Pool] = frozenset()
    #: The stream that is captured; None for a graph that was made otherwise.
    stream: int | None = None
    #: torch.compile captures, and arranges by itself who has the memory of its pool when.
    arranged: bool = False
    handed: list[Handed] = field(default_factory=list)
    at: dict[int, Handed] = field(default_factory=dict)
    #: The largest allocation that began at an address: a word that names the address may mean it, whatever came there later.
    widest: dict[int, Handed] = field(default_factory=dict)
    freed: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)

    def hand(self, handed: Handed) -> None:
        """Memory was handed out."""
        self.handed.append(handed)
        self.at[handed.address] = handed
        widest = self.widest.get(handed.address)
        if widest is None or handed.size > widest.size:
            self.widest[handed.address] = handed

    def left_at(self, address: int) -> Left | None:
        """What an earlier capture had left alive at `address`, if it was given back meanwhile."""
        return next((left for left in reversed(self.left) if left.address <= address < left.address + left.size), None)

    def latest(self, address: int) -> Handed | None:
        """The last allocation of this window that held `address`."""
        for handed in reversed(self.handed):
            if handed.address <= address < handed.address + handed.size:
                return handed
        return None


def pool_id(pool: Any) -> Pool | None:
    """What a program gave as a pool; None for nothing, or for what torch would not take."""
    if pool is None:
        return None
    if hasattr(pool, "id"):
        pool = pool.id
    try:
        a, b = pool
        return int(a), int(b)
    except (TypeError, ValueError):
        return None
