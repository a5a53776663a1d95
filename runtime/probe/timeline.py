"""The order of everything that happens in a worker: replays wait in a queue until what preceded them is known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import count, islice

from .runs import Run, RunEncoder

#: A run of replays is written when nothing happened for this long, and in any case this often.
IDLE_SECONDS = 0.25
LONGEST_SECONDS = 2.0


class Timeline:
    """Numbers replays as they start and gives orders, the worker's one counter, to replays and other events.

    `log` and `logged` need no lock; all else is called under the recorder's.
    """

    def __init__(self, clock: Callable[[], int], write_run: Callable[[Run], None]) -> None:
        """Args: clock: nanoseconds. write_run: receives each finished run of replays."""
        self._clock = clock
        self._log: deque[tuple[int, int]] = deque()
        self._numbers = count(1)
        self.ordered = 0
        self._order = 0
        self._runs = RunEncoder(write_run)
        self._opened: int | None = None
        #: Graphs whose replays got an order since somebody last cleared this.
        self.recent: set[int] = set()

    def log(self, graph: int) -> int:
        """A replay starts; returns how many have. The hot path."""
        number = next(self._numbers)
        self._log.append((self._clock(), graph))
        return number

    @property
    def logged(self) -> int:
        """How many replays were logged, ordered or waiting."""
        return self.ordered + len(self._log)

    def pending_times(self) -> list[int]:
        """Times of the replays that wait."""
        return [t for t, _ in list(self._log)]

    def next_graphs(self, most: int) -> set[int]:
        """Graphs of the first `most` replays that wait."""
        return {graph for _, graph in list(islice(self._log, most))}

    def order_replays(self, upto: int) -> None:
        """Give the next orders to those among the first `upto` replays that wait."""
        log = self._log
        while self.ordered < upto and log:
            t, graph = log.popleft()
            self.ordered += 1
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
