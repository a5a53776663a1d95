"""Run-length encoding of the sequence of replays: repeats of a cycle of graphs become one record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

#: A sequence that never repeats is cut into literal records of this many replays.
LONGEST_CYCLE = 256
#: A shorter run is no record of its own: what looks like a cycle at first may be chance.
_WORTH = 16


@dataclass(slots=True)
class Run:
    """`cycle` repeated and cut at `count` replays, which have the orders `order` to `order + count - 1`."""

    order: int
    t0: int
    t1: int
    cycle: list[int]
    count: int


class RunEncoder:
    """Groups consecutive replays into runs, greedily and online, in constant time a replay.

    Until a cycle was seen twice, a replay that does not fit lengthens it by what was seen since; after that such a replay
    ends the run. `flush` ends it at any time, for the caller knows what else happens between replays.
    """

    def __init__(self, emit: Callable[[Run], None]) -> None:
        """Args: emit: receives each finished run, in order."""
        self._emit = emit
        self._run: Run | None = None

    def add(self, order: int, t: int, graph: int) -> None:
        """Append the replay of `graph` at time `t`; `order` must follow the last one directly unless flushed."""
        run = self._run
        if run is None:
            self._run = Run(order, t, t, [graph], 1)
            return
        length = len(run.cycle)
        if run.cycle[run.count % length] == graph:
            run.count += 1
            run.t1 = t
        elif run.count < max(2 * length, _WORTH) and run.count < LONGEST_CYCLE:
            run.cycle += [run.cycle[i % length] for i in range(length, run.count)]
            run.cycle.append(graph)
            run.count += 1
            run.t1 = t
        else:
            self._emit(run)
            self._run = Run(order, t, t, [graph], 1)

    @property
    def pending(self) -> Run | None:
        """The run that is still open."""
        return self._run

    def flush(self) -> None:
        """Emit the open run, if any."""
        run, self._run = self._run, None
        if run is not None:
            self._emit(run)
