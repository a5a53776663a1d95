"""The order of interpretation: rounds over what has to be interpreted again, callers before what they call.

What a caller passes and stores is mostly there before its callees are interpreted again, and a callee that is called while it
waits is interpreted at once, so that its caller goes on with what it returns now. Both spare interpretations, and fewer
of them see a program half known.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.heap import Activation


class Agenda:
    """Activations that wait, each once."""

    __slots__ = ("_finished", "_place", "_round", "_serial", "_waiting")

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int, Activation]] = []
        self._round = 0
        #: Where in its round the activation stood that was taken last.
        self._place: int | None = None
        self._serial = 0
        self._finished = 0

    def add(self, activation: Activation) -> None:
        """Have an activation wait, unless it does already."""
        if activation.queued:
            return
        activation.queued = True
        self._serial += 1
        place = -activation.order
        turn = self._round if self._place is None or place > self._place else self._round + 1
        heapq.heappush(self._waiting, (turn, place, self._serial, activation))

    def take(self) -> Activation | None:
        """The next one; None when none waits."""
        while self._waiting:
            self._round, self._place, _, activation = heapq.heappop(self._waiting)
            if activation.queued:  # else it was interpreted meanwhile, for one that called it
                activation.queued = False
                return activation
        self._place = None
        return None

    def finished(self, activation: Activation) -> None:
        """Note the end of a first interpretation: callees end before their callers."""
        self._finished += 1
        activation.order = self._finished
