"""PyTorch's allocator history: switched on, fetched and emptied without a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from .cuda_atomic import unsplit
from .cuda_placement import Clock, mark, read_clock
from .cuda_segments import MemoryMap

#: No pool has this identifier, so a snapshot of it holds the events and no segment. Both numbers must stay small: torch up to
#: 2.11 drops a reference too many to each, which only the interpreter's cached small integers survive.
_NO_POOL = (7, 7)
_ENTRIES = 400_000
#: Actions that nothing here needs; leaving them out makes recording cheaper.
_SKIPPED = ["free_completed", "snapshot", "oom"]

Entry = dict[str, Any]
Counts = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Batch:
    """The events since the last batch.

    Attributes:
        entries: For each device its events as torch tells them, in order.
        lost: Why events are missing, one text a device that lost some.
        clock: Places their times, whatever was done to the clocks since the last batch.
    """

    entries: list[list[Entry]]
    lost: list[str]
    clock: Clock


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
        self._clock: Clock | None = None
        #: What a snapshot is asked for: segments of all pools, without events where this torch allows that.
        self._whole: Any = (0, 0, False)
        #: What a replay calls with its mark; None before recording began and when the metadata is somebody else's.
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
            self.set_marker = setter
            setter(mark(0))
        self._counts = self._counts_of([self._c._cuda_memoryStats(d) for d in self._devices()])
        self._clock = read_clock()

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
        self.set_marker = None

    def unmark(self) -> None:
        """Stop marking events: somebody else uses the metadata, or recording ends."""
        marker, self.set_marker = self.set_marker, None
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
        clock = read_clock()
        earlier, self._clock = self._clock, clock
        lost = [text for device, entries in enumerate(raw) if (text := self._missing(device, entries, before, after))]
        return Batch(raw, lost, clock.since(earlier))

    def segments(self, count: Callable[[], int]) -> tuple[MemoryMap, int]:
        """The segments, and what `count`, a C function, says at the same moment."""
        try:
            found, counted = unsplit([self._snapshot(), count], self._torch)
        except (TypeError, RuntimeError):
            if self._whole is None:
                raise
            self._whole = None
            return self.segments(count)
        return MemoryMap(found["segments"]), counted

    def switch_on(self, count: Callable[[], int]) -> tuple[MemoryMap, int]:
        """Record again after `fetch(switch_off=True)`; returns what `segments` does, of the same moment."""
        switch = partial(self._switch, *self._arguments()[self._signature])
        stats = [partial(self._c._cuda_memoryStats, device) for device in self._devices()]
        clock = read_clock()
        out = unsplit([switch, self._snapshot(), count, *stats], self._torch)
        self._counts = self._counts_of(out[3:])
        self._clock = clock
        self.recording = True
        return MemoryMap(out[1]["segments"]), out[2]

    def counted(self) -> int:
        """Allocations and frees of all devices so far, by the allocator's own counters."""
        return sum(a + f for a, f in self._counts_of([self._c._cuda_memoryStats(d) for d in self._devices()]).values())

    # Internals

    def _snapshot(self) -> Callable[[], Any]:
        return partial(self._c._cuda_memorySnapshot, self._whole)

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
        overflow = None
        if len(entries) >= _ENTRIES:
            overflow = f"device {device}: the history overflowed at {_ENTRIES} events"
        if low[0] < known[0] or low[1] < known[1]:  # the program reset the counters: take them up afresh
            self._counts[device] = high
            return overflow
        # Counters were read before the events, so every event counted then must be among those seen by now. What slipped
        # between reading and emptying shows at the next fetch, against counters that have moved on.
        seen = (known[0] + allocated, known[1] + freed)
        self._counts[device] = (max(seen[0], low[0]), max(seen[1], low[1]))
        if overflow is not None:
            return overflow
        missing = max(low[0] - seen[0], low[1] - seen[1])
        return f"device {device}: {missing} allocator events are missing" if missing > 0 else None
