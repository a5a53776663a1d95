"""Where an allocator event belongs between the replays: by the marks that replays leave, else by time."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..timeline import Waiting

#: How far the clocks of events and replays were seen to be apart, at most: closer, either may have come first.
DISTANCE_NS = 20_000
#: And how far they are trusted to be apart: closer, an order is no proof that nothing went wrong.
SLACK_NS = 200_000
_MARK = "g"


class Place(NamedTuple):
    """How many replays came before an event.

    Attributes:
        after: Certainly so many.
        likely: At most so many, as far as the clocks were ever seen to be apart.
        before: Certainly no more.
        t: When the event happened, on the recorder's clock.
    """

    after: int
    likely: int
    before: int
    t: int


class Clock(NamedTuple):
    """Nanoseconds from the recorder's clock to the wall clock of events, and how far that may be off."""

    offset: int
    doubt: int

    def since(self, earlier: Clock | None) -> Clock:
        """The same for events that happened after `earlier` was read: the wall clock may have been set meanwhile."""
        if earlier is None:
            return self
        return Clock(self.offset, self.doubt + earlier.doubt + abs(self.offset - earlier.offset))


def read_clock() -> Clock:
    """Read both clocks; a process that is halted between the readings is in doubt by that time, and they are read again."""
    best: Clock | None = None
    for _ in range(3):
        start = time.monotonic_ns()
        wall = time.time_ns()
        half = (time.monotonic_ns() - start) // 2
        if best is None or half < best.doubt:
            best = Clock(wall - start - half, half)
        if half < SLACK_NS // 10:
            break
    assert best is not None
    return best


class Placement:
    """Places the events of one device of one batch between the replays.

    A replay sets its number as a mark that each later event of its thread carries (where torch can), so an event says by itself
    which was its thread's last replay: that thread's next one came after it. Replays of other threads, and events of threads
    that set no mark, are held against each other by time, and what is too close to call is left open.
    """

    def __init__(
        self,
        first: int,
        waiting: Callable[[], list[Waiting]],
        clock: Clock,
        latest: Mapping[int, int] | None = None,
    ) -> None:
        """Place events after the first replays.

        Args:
            first: Number of replays that were ordered before this batch.
            waiting: Gives the replays that follow those, on the recorder's clock.
            clock: Leads from the recorder's clock to the wall clock of the events.
            latest: Each thread's last replay among the first ones; None if replays set no marks.
        """
        self._first = self._known = first
        self._waiting = waiting
        self._clock = clock
        self._latest = latest
        self._list: list[Waiting] | None = None
        self._times: list[int] = []
        self._position: dict[int, int] = {}
        self._next: dict[int, int] = {}

    def place(self, entry: dict[str, Any]) -> Place:
        """Where an event belongs; events come in their order."""
        t = int(entry.get("time_us", 0)) * 1000 - self._clock.offset
        if self._list is None:
            self._look()
        doubt = self._clock.doubt
        low, likely, high = (
            self._first + bisect_left(self._times, t + far + sign * doubt)
            for far, sign in ((-SLACK_NS, -1), (DISTANCE_NS, 1), (SLACK_NS, 1))
        )
        number = None if self._latest is None else _number(entry.get("user_metadata"))
        if number is not None:
            own = self._position.get(number, 0)
            low, likely, high = max(low, own), max(likely, own), max(high, own)
            # The thread's next replay came after the event, and so did those behind it.
            after = self._next.get(number, self._first + len(self._times))
            low, likely, high = min(low, after), min(likely, after), min(high, after)
        self._known = max(self._known, low)
        return Place(self._known, max(self._known, likely), max(self._known, high), t)

    def _look(self) -> None:
        """Positions of the waiting replays, and for each mark that a thread may carry the position before its next replay."""
        self._list = self._waiting()
        times: list[int] = []
        last = 0
        carried = dict(self._latest or {})
        for at, replay in enumerate(self._list, self._first):
            last = max(last, replay.t)  # two threads may have logged in another order than they read the clock
            times.append(last)
            mine = carried.get(replay.thread)
            if mine is not None:
                self._next[mine] = at
            carried[replay.thread] = replay.number
            self._position[replay.number] = at + 1
        self._times = times


def mark(number: int) -> str:
    """The marker of the replay with this number (short: torch keeps it without an allocation)."""
    return f"{_MARK}{number}"


def _number(text: Any) -> int | None:
    return int(text[1:]) if text and text[0] == _MARK and text[1:].isdigit() else None
