"""Takes certificates instead of following events while a program allocates faster than following it would be cheap."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..blocks import Block
from ..recorder import Recorder
from . import cuda_segments
from .cuda_certificate import uncertified
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
    that time, a `tie` says that those replays cannot be ordered against it, and events are followed again.
    """

    def __init__(
        self, recorder: Recorder, torch: Any, trace: AllocatorTrace, digest: Callable[[Batch | None], MemoryMap | None]
    ) -> None:
        """Args: recorder: told. torch: the module. trace: switched. digest: digests a last batch of events."""
        self._recorder = recorder
        self._torch = torch
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

        Only while graphs replay: before that, what is allocated needs its stack.
        """
        replays, self._replays = self._recorder.replays_logged - self._replays, self._recorder.replays_logged
        blocks = self._recorder.blocks.live()
        overloaded = self._pace.overloaded(now, events, seconds)
        if not (overloaded and self._certifiable and replays and blocks):
            return
        started = time.monotonic()
        anonymous = uncertified(blocks, cuda_segments.take(self._torch))
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
            self._settle(cuda_segments.take(self._torch))
        elif now - self._moved > _PAUSE:
            self.leave()
        elif now >= self._due:
            if self._pace.calm(now, self._trace.counted()) or self._settle(cuda_segments.take(self._torch)):
                self.leave()
            self._schedule(now)

    def leave(self) -> None:
        """Follow events again, with a last certificate at the same moment."""
        if not self.active:
            return
        self.active = False
        self._pace.reset()
        memory = self._trace.switch_on(self._recorder.replays_logged)
        self._recorder.account(certified_seconds=time.monotonic() - self._since)
        self._settle(memory)
        self._recorder.recorder_event("on", detail="events are followed again")

    def _schedule(self, started: float) -> None:
        now = time.monotonic()
        self._due = now + max(_SHORTEST, (now - started) / _SHARE)

    def _settle(self, memory: MemoryMap) -> list[Block]:
        """Order the replays so far; blocks without a certificate are freed behind them, and a tie says so."""
        recorder = self._recorder
        recorder.account(certificates=1)
        recorder.order_replays(recorder.replays_logged)
        lost = uncertified(recorder.blocks.live(), memory)
        recent = set(recorder.timeline.recent)
        recorder.timeline.recent.clear()
        for block in lost:
            graphs = sorted(recent & block.users)
            if graphs:
                detail = "freed between two certificates: replays since the last one cannot be ordered against it"
                recorder.recorder_event("tie", detail=detail, blocks=[block.id], graphs=graphs)
            recorder.freed(block.allocation.device, block.address)
        return lost
