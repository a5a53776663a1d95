"""PyTorch's allocator history: switched on, fetched and emptied without a loss, its events placed between replays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .cuda_atomic import unsplit
from .cuda_segments import MemoryMap

#: No pool has this identifier, so a snapshot of it holds the events and no segment. Both numbers must stay small: torch up to
#: 2.11 drops a reference too many to each, which only the interpreter's cached small integers survive.
_NO_POOL = (7, 7)
_ENTRIES = 400_000
#: Actions that nothing here needs; leaving them out makes recording cheaper.
_SKIPPED = ["free_completed", "snapshot", "oom"]
_MARK = "g"
#: Without markers: how far the clocks of events and replays may be apart (measured: under 20 microseconds).
SLACK_NS = 200_000

Entry = dict[str, Any]
Counts = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Batch:
    """The events since the last batch.

    Attributes:
        entries: For each device its events as torch tells them, in order.
        lost: Why events are missing, one text a device that lost some.
    """

    entries: list[list[Entry]]
    lost: list[str]


class AllocatorTrace:
    """Owns the recording of the caching allocator's events in this process."""

    def __init__(self, torch: Any, *, stacks: bool = True) -> None:
        """Args: torch: the module. stacks: gather Python stacks with the events."""
        self._torch = torch
        self._c = c = torch._C
        self._switch = c._cuda_record_memory_history  # the original, whoever wraps it later
        self._stacks = stacks
        self._signature = 0
        self._counts: Counts = {}
        self._marker: Callable[[str], None] | None = None
        #: What a replay calls with its mark; None while nothing is recorded or the metadata is somebody else's.
        self.set_marker: Callable[[str], None] | None = None
        self.recording = False

    def start(self) -> None:
        """Switch recording on; the history kept so far is dropped.

        Raises:
            TypeError: This torch takes none of the known argument lists.
        """
        signatures = len(self._arguments())
        for self._signature in range(signatures):
            try:
                self._switch(*self._arguments()[self._signature])
                break
            except TypeError:
                if self._signature == signatures - 1:
                    raise
        self.recording = True
        setter = getattr(self._c, "_cuda_setMemoryMetadata", None)
        if setter is not None and not self._c._cuda_getMemoryMetadata():
            self._marker = self.set_marker = setter
            setter(mark(0))
        self._counts = self._counts_of([self._c._cuda_memoryStats(d) for d in self._devices()])

    def stop(self) -> None:
        """Switch recording off, which forgets the history, and take the marker back."""
        self.recording = False
        self.unmark()
        self._switch(*self._off())

    def resume(self) -> str | None:
        """Take recording up again after somebody switched it; says what was lost since the last fetch, if anything."""
        before = self._counts
        self._switch(*self._arguments()[self._signature])
        self._counts = self._counts_of([self._c._cuda_memoryStats(d) for d in self._devices()])
        missed = sum(
            max(0, a[0] - before[d][0]) + max(0, a[1] - before[d][1]) for d, a in self._counts.items() if d in before
        )
        return f"{missed} allocator events happened while recording was off" if missed else None

    def yield_marker(self) -> None:
        """Leave the metadata to somebody else."""
        self._marker = self.set_marker = None

    def unmark(self) -> None:
        """Stop marking events: somebody else uses the metadata, or recording ends."""
        marker, self._marker, self.set_marker = self._marker, None, None
        if marker is not None:
            marker("")

    def fetch(self, *, switch_off: bool = False) -> Batch:
        """All events since the last fetch, removed from the history.

        Args:
            switch_off: End recording in the same step; `switch_on` takes it up again.
        """
        before, raw, after = self._take(switch_off)
        if switch_off:
            self.recording = False
            self.set_marker = None
        lost = [text for device, entries in enumerate(raw) if (text := self._missing(device, entries, before, after))]
        return Batch(raw, lost)

    def switch_on(self, number: int) -> MemoryMap:
        """Record again after `fetch(switch_off=True)`; returns the segments of the same moment.

        Args:
            number: Replays that started so far.
        """
        snapshot = partial(self._c._cuda_memorySnapshot, (0, 0, False))
        switch = partial(self._switch, *self._arguments()[self._signature])
        stats = [partial(self._c._cuda_memoryStats, device) for device in self._devices()]
        out = unsplit([switch, snapshot, *stats], self._torch)
        self._counts = self._counts_of(out[2:])
        self.recording = True
        self.set_marker = self._marker
        if self._marker is not None:
            self._marker(mark(number))
        return MemoryMap(out[1]["segments"])

    def counted(self) -> int:
        """Allocations and frees of all devices so far, by the allocator's own counters."""
        return sum(a + f for a, f in self._counts_of([self._c._cuda_memoryStats(d) for d in self._devices()]).values())

    # Internals

    def _devices(self) -> range:
        return range(int(self._c._cuda_getDeviceCount()))

    def _arguments(self) -> list[tuple[Any, ...]]:
        """Arguments that switch recording on with an empty history, newest torch first."""
        head = ("all", "all" if self._stacks else None, "python", _ENTRIES)
        return [
            (*head, True, False, False, _SKIPPED),
            (*head, True, False, False),
            (*head, True, False),
            (*head, True),
            head,
        ]

    def _off(self) -> tuple[Any, ...]:
        """Arguments that switch recording off, for the signature that this torch takes."""
        return (None, None, "python", 1, *self._arguments()[self._signature][4:])

    def _take(self, switch_off: bool) -> tuple[Counts, list[list[Entry]], Counts]:
        """Counters, events, emptying and counters again, in one step."""
        stats = [partial(self._c._cuda_memoryStats, device) for device in self._devices()]
        arguments = self._arguments()[self._signature]
        off = partial(self._switch, *self._off())
        on = partial(self._switch, *arguments)
        # Old releases of torch empty the history only when they switch off.
        clear = [off] if switch_off else [off, on] if len(arguments) == 4 else [on]
        snapshot = partial(self._c._cuda_memorySnapshot, _NO_POOL)
        out = unsplit([*stats, snapshot, *clear, *stats], self._torch)
        n = len(stats)
        return self._counts_of(out[:n]), out[n]["device_traces"], self._counts_of(out[len(out) - n :])

    @staticmethod
    def _counts_of(stats: list[Any]) -> Counts:
        counts = {}
        for device, s in enumerate(stats):
            entry = s.get("allocation", {}).get("all")
            if entry:
                counts[device] = (int(entry["allocated"]), int(entry["freed"]))
        return counts

    def _missing(self, device: int, entries: list[Entry], before: Counts, after: Counts) -> str | None:
        """Hold the events against the allocator's own counters; says what is missing."""
        known, low, high = self._counts.get(device, (0, 0)), before.get(device), after.get(device)
        if low is None or high is None:
            return None
        allocated = freed = 0
        for e in entries:
            action = e["action"]
            if action == "alloc":
                allocated += 1
            elif action == "free_requested":
                freed += 1
        if low[0] < known[0] or low[1] < known[1]:  # the program reset the counters: take them up afresh
            self._counts[device] = high
            return None
        # Counters were read before the events, so every event counted then must be among those seen by now. What slipped
        # between reading and emptying shows at the next fetch, against counters that have moved on.
        seen = (known[0] + allocated, known[1] + freed)
        self._counts[device] = (max(seen[0], low[0]), max(seen[1], low[1]))
        if len(entries) >= _ENTRIES:
            return f"device {device}: the history overflowed at {_ENTRIES} events"
        missing = max(low[0] - seen[0], low[1] - seen[1])
        return f"device {device}: {missing} allocator events are missing" if missing > 0 else None


class Placement:
    """Places the events of one device of one batch between the replays.

    A replay sets its number as a marker that each later event carries (where torch can), so an event says by itself how
    many replays had started. Else, and for threads or devices whose marker is another's, the event's time is held
    against the replays' times, and what is too close to call is left open.
    """

    def __init__(self, first: int, times: Callable[[], list[int]], offset: int, marked: bool) -> None:
        """Place events after the first replays.

        Args:
            first: Number of replays that were ordered before this batch.
            times: Gives the times of the replays numbered `first + 1` and on, on the recorder's clock.
            offset: Nanoseconds from the recorder's clock to the wall clock of the events.
            marked: Whether replays set markers.
        """
        self._first = self._known = first
        self._times = times
        self._offset = offset
        self._marked = marked
        self._list: list[int] | None = None

    def place(self, entry: Entry) -> tuple[int, int, int]:
        """Replays that had certainly started, replays that may have started, and the time on the recorder's clock."""
        t = int(entry.get("time_us", 0)) * 1000 - self._offset
        mark = entry.get("user_metadata")
        if self._marked and mark and mark[0] == _MARK and mark[1:].isdigit():
            number = int(mark[1:])
            if number >= self._first - 1:  # one less: the replay was logged, its marker not yet set
                self._known = max(self._known, number)
                return self._known, self._known, t
        if self._list is None:
            self._list = self._times()
        after = max(self._known, self._first + bisect_left(self._list, t - SLACK_NS))
        before = max(after, self._first + bisect_left(self._list, t + SLACK_NS))
        self._known = after
        return after, before, t


def mark(number: int) -> str:
    """The marker of the replay with this number (short: torch keeps it without an allocation)."""
    return f"{_MARK}{number}"
