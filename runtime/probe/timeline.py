"""The order of everything that happens in a worker: replays wait in a queue until what preceded them is known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from threading import get_ident
from typing import NamedTuple

from .runs import Run, RunEncoder

#: A run of replays is written when nothing happened for this long, and in any case this often.
IDLE_SECONDS = 0.25
LONGEST_SECONDS = 2.0


class Waiting(NamedTuple):
    """A replay that has no order yet: its number, when it started, its graph, and the thread that started it."""

    number: int
    t: int
    graph: int
    thread: int


class Timeline:
    """Numbers replays as they start and gives orders, the worker's one counter, to replays and other events.

    `log` and `logged` need no lock; all else is called under the recorder's.
    """

    def __init__(self, clock: Callable[[], int], write_run: Callable[[Run], None]) -> None:
        """Args: clock: nanoseconds. write_run: receives each finished run of replays."""
        self._clock = clock
        self._log: deque[tuple[int, int, int, int]] = deque()
        self._numbers = count(1)
        self.ordered = 0
        self._order = 0
        self._runs = RunEncoder(write_run)
        self._opened: int | None = None
        #: Graphs whose replays got an order since somebody last cleared this.
        self.recent: set[int] = set()
        #: The number of each thread's last replay among those that have an order; 0 for a thread known to have had none.
        self.latest: dict[int, int] = {}

    def log(self, graph: int) -> int:
        """A replay starts; returns how many have. The hot path."""
        number = next(self._numbers)
        self._log.append((number, self._clock(), graph, get_ident()))
        return number

    @property
    def logged(self) -> int:
        """How many replays were logged, ordered or waiting."""
        return self.ordered + len(self._log)

    def counter(self) -> Callable[[], int]:
        """A C function that counts the replays that wait, for a step that no other thread may enter."""
        return partial(len, self._log)

    def waiting(self) -> list[Waiting]:
        """The replays that wait, in order."""
        return [Waiting(*entry) for entry in list(self._log)]

    def order_replays(self, upto: int) -> None:
        """Give the next orders to those among the first `upto` replays that wait."""
        log = self._log
        while self.ordered < upto and log:
            number, t, graph, thread = log.popleft()
            self.ordered += 1
            self.latest[thread] = number
            if self._opened is None:
                self._opened = t
            self.recent.add(graph)
            self._runs.add(self._order, t, graph)
            self._order += 1

    def next(self) -> int:
        """The order of an event that is no replay."""
        self.flush()
        order = self._order
        self._order += 1
        return order

    def flush(self) -> None:
        """Write the open run."""
        self._runs.flush()
        self._opened = None

    def flush_stale(self) -> None:
        """Write the open run if replays paused or it grew old, so that a crash loses little."""
        run = self._runs.pending
        if run is not None:
            now = self._clock()
            old = self._opened is not None and now - self._opened > LONGEST_SECONDS * 1e9
            if old or now - run.t1 > IDLE_SECONDS * 1e9:
                self.flush()

    def stop(self) -> None:
        """Drop whatever is logged from now on: hooks may stay in place after the footer."""
        self._log = deque(maxlen=0)
