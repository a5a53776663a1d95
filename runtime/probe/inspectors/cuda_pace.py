"""Decides when following every allocator event costs the program too much, and when it no longer would."""

from __future__ import annotations

#: Host time that following events may take, as a part of all time. A server's loop loses about twice what is estimated here, since
#: the draining thread holds the interpreter while the loop waits (docs/measurements/serving-cost.md).
BUDGET = 0.04
#: An overload shorter than this is followed all the same: one set of requests of a run lasts less.
PATIENCE = 1.5
#: The same once a program has shown that it can keep such a load up: then each further one is taken for lasting sooner.
PATIENCE_AGAIN = 0.5
#: What recording an event costs the allocating thread, measured with Python stacks 30 frames deep (docs/measurements/probe-cost.md).
RECORDING = 1.35e-6
_WINDOW = 0.25
_CALM = 0.5


class Pace:
    """Sums the cost of windows of a quarter of a second; pure arithmetic on what it is told."""

    def __init__(self) -> None:
        self._start: float | None = None
        self._cost = 0.0
        self._over_since: float | None = None
        self._rate: tuple[float, int] | None = None
        self._calm_since: float | None = None
        self._patience = PATIENCE

    def overloaded(self, now: float, events: int, seconds: float) -> bool:
        """Add a batch of `events` that took `seconds` to digest; says whether the overload has lasted.

        Args:
            now: Seconds of a steady clock.
            events: How many.
            seconds: The draining thread's time.
        """
        if self._start is None:
            self._start = now
            return False
        self._cost += seconds + events * RECORDING
        elapsed = now - self._start
        if elapsed >= _WINDOW:
            if self._cost / elapsed > BUDGET:
                self._over_since = self._start if self._over_since is None else self._over_since
            else:
                self._over_since = None
            self._start, self._cost = now, 0.0
        return self._over_since is not None and now - self._over_since >= self._patience

    def calm(self, now: float, counted: int) -> bool:
        """Says whether the program's event rate has been affordable for a while, given the allocator's own count.

        Args:
            now: Seconds of a steady clock.
            counted: Allocations and frees so far.
        """
        last, self._rate = self._rate, (now, counted)
        if last is None or now <= last[0]:
            return False
        load = max(0, counted - last[1]) * 3 * RECORDING / (now - last[0])
        if load > BUDGET / 2:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = last[0]
        return self._calm_since is not None and now - self._calm_since >= _CALM

    def reset(self) -> None:
        """Begin afresh, after a change of mode."""
        self.__init__()  # type: ignore[misc]
        self._patience = PATIENCE_AGAIN
