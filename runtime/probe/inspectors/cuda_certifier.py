"""Takes certificates instead of following events while a program allocates faster than following it would be cheap."""

from __future__ import annotations

import time
from collections.abc import Callable

from ..blocks import Block
from ..recorder import Recorder
from .cuda_certificate import uncertified, unseen_owners
from .cuda_pace import Pace
from .cuda_segments import MemoryMap
from .cuda_trace import AllocatorTrace, Batch

#: A pause of replays as long as this ends the certificates: what happens in a pause, such as an update of weights, is followed.
_PAUSE = 0.25
#: A certificate may take this part of the time between two of them, and two lie at least so far apart.
_SHARE = 0.015
_SHORTEST = 0.5


class Certifier:
    """Switches between following every event and certificates (`cuda_certificate`); works under the recorder's lock.

    A block that loses its certificate was freed since the last one: its `free` is written with no stack after the replays of
    that time, a `tie` says that those replays cannot be ordered against it, and events are followed again. The same holds of an
    owner of memory that graphs let go of, whom nobody saw get it.
    """

    def __init__(
        self, recorder: Recorder, trace: AllocatorTrace, digest: Callable[[Batch | None], MemoryMap | None]
    ) -> None:
        """Args: recorder: told. trace: switched. digest: digests a last batch of events."""
        self._recorder = recorder
        self._trace = trace
        self._digest = digest
        self._pace = Pace()
        self._due = 0.0
        self._replays = 0
        self._moved = 0.0
        self._since = 0.0
        self._certifiable = True
        self.active = False

    def consider(self, now: float, events: int, seconds: float) -> None:
        """After a batch of events: stop following them if that costs too much and every block can be certified.

        Only while graphs replay: before that, what is allocated needs its stack. And not while somebody owns memory of a graph's
        temporaries: when such an owner lets go is told by events alone.
        """
        replays, self._replays = self._recorder.replays_logged - self._replays, self._recorder.replays_logged
        blocks = self._recorder.blocks.live()
        overloaded = self._pace.overloaded(now, events, seconds)
        if not (overloaded and self._certifiable and replays and blocks) or self._recorder.blocks.intruders:
            return
        started = time.monotonic()
        anonymous = uncertified(blocks, self._segments()[0])
        if anonymous:
            self._certifiable = False  # something was allocated where no Python stack could be taken
            detail = f"events are followed whatever that costs: {len(anonymous)} blocks show no allocating stack"
            self._recorder.recorder_event("on", detail=detail)
            return
        self._schedule(started)
        self._digest(self._trace.fetch(switch_off=True))
        self.active = True
        self._moved = self._since = now
        self._recorder.timeline.recent.clear()
        self._pace.reset()
        detail = (
            f"certificates: the program allocates too fast to follow; {len(blocks)} blocks are certified by snapshots"
        )
        self._recorder.recorder_event("on", detail=detail)

    def look(self) -> None:
        """Take a certificate when one is due; follow events again when one fails, the pace allows it or the end has come."""
        now = time.monotonic()
        replays = self._recorder.replays_logged
        if replays != self._replays:
            self._replays, self._moved = replays, now
        if self._recorder.closing:
            self._recorder.account(certified_seconds=now - self._since)
            self._since = now
            self._settle(*self._segments())
        elif now - self._moved > _PAUSE:
            self.leave()
        elif now >= self._due:
            if self._pace.calm(now, self._trace.counted()) or self._settle(*self._segments()):
                self.leave()
            self._schedule(now)

    def leave(self) -> None:
        """Follow events again, with a last certificate at the same moment."""
        if not self.active:
            return
        self.active = False
        self._pace.reset()
        memory, waiting = self._trace.switch_on(self._recorder.timeline.counter())
        self._recorder.account(certified_seconds=time.monotonic() - self._since)
        self._settle(memory, waiting)
        self._recorder.recorder_event("on", detail="events are followed again")

    def _schedule(self, started: float) -> None:
        now = time.monotonic()
        self._due = now + max(_SHORTEST, (now - started) / _SHARE)

    def _segments(self) -> tuple[MemoryMap, int]:
        return self._trace.segments(self._recorder.timeline.counter())

    def _settle(self, memory: MemoryMap, waiting: int) -> bool:
        """Order the replays until the snapshot; what it does not vouch for ended, or began, behind them, and a tie says so.

        Args:
            memory: The snapshot.
            waiting: How many replays waited for their order at that moment. Later ones wait for the next certificate.

        Returns:
            Whether anything was lost.
        """
        recorder = self._recorder
        recorder.account(certificates=1)
        recorder.order_replays(recorder.replays_ordered + waiting)
        lost = uncertified(recorder.blocks.live(), memory)
        recent = set(recorder.timeline.recent)
        recorder.timeline.recent.clear()
        for block in lost:
            # A graph's own capture may let go of its blocks: no order makes that a fault of that graph.
            own = block.allocation.during
            self._tie("freed", [block], recent if own is None else recent - {own})
            recorder.freed(block.allocation.device, block.address)
        found = False
        for device, address, size in unseen_owners(recorder.blocks, memory):
            self._tie("handed out", recorder.blocks.left(device, address, size), recent)
            recorder.allocated(device, address, size)
            found = True
        return bool(lost) or found

    def _tie(self, what: str, blocks: list[Block], recent: set[int]) -> None:
        graphs = sorted({user for block in blocks for user in block.users if user in recent})
        if graphs:
            detail = f"{what} between two certificates: replays since the last one cannot be ordered against it"
            self._recorder.recorder_event("tie", detail=detail, blocks=[b.id for b in blocks], graphs=graphs)
