"""The recorder: what an inspector tells it becomes the receipts of one worker (the interface: docs/inspectors.md).

Standard library only, no device; every call is safe from any thread.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .blocks import Allocation, Block, BlockTable, Pool
from .config import ProbeConfig
from .problems import Problems
from .runs import Run
from .timeline import Timeline
from .writer import ReceiptWriter

SCHEMA = "sgl-graph.receipts/1"
#: A queue of pending replays longer than this is drained by the replaying thread itself.
LONGEST_QUEUE = 200_000

Frame = Sequence[Any]


@dataclass(slots=True)
class Capture:
    """A capture under way: its graph identifier and the order at which it began."""

    graph: int
    began: int


class Recorder:
    """Turns an inspector's calls into the receipts of this worker (docs/inspectors.md)."""

    #: For inspectors that are no part of this package and cannot import it by name.
    Allocation = Allocation

    def __init__(
        self, config: ProbeConfig, *, inspector: str | None = None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """Args: config: the run. inspector: its name as written in `hello`. clock: nanoseconds, comparable on the host."""
        self.config = config
        self.inspector = inspector or config.inspector
        self.lock = threading.RLock()
        self._clock = clock
        self._drain_source: Callable[[], None] | None = None
        self._facts: dict[str, Any] = {}
        self._reset()

    def _reset(self) -> None:
        self.worker = f"{os.getpid()}-{self._clock():x}"
        self.sealed = False
        #: The last drain is under way: whatever can still be settled has to be.
        self.closing = False
        self._writer: ReceiptWriter | None = None
        self.timeline = Timeline(self._clock, self._write_run)
        self._draining = False
        self._graphs = 0
        self._captures = 0
        self._inspections = 0
        self._problems = Problems()
        self._stacks: dict[tuple[tuple[Any, ...], ...], int] = {}
        self.blocks = BlockTable(self._block_event, self._announce_block)
        self._watched: dict[str, float] = {}

    # Start and facts

    def hello(self, **facts: Any) -> None:
        """Open the receipt file with its first line, unless open; facts given before it opened are kept."""
        with self.lock:
            self._facts.update(facts)
            if self._writer is None and not self.sealed:
                self._open()

    def _open(self) -> ReceiptWriter:
        writer = self._writer = ReceiptWriter(self.config.receipts / f"{self.worker}.jsonl")
        members: dict[str, Any] = {
            "schema": SCHEMA,
            "run": self.config.run,
            "launch": self.config.launch,
            "worker": self.worker,
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "argv": list(getattr(sys, "orig_argv", sys.argv)),
            "t": self._clock(),
            "wall": time.time(),
            "python": sys.version.split()[0],
            "torch": None,
            "cuda": None,
            "driver": None,
            "devices": None,
            "inspector": self.inspector,
            "hooks": {"capture": None, "replay": None, "launch": None},
            "tool": self.config.tool,
        }
        writer.write("hello", **(members | self._facts))
        return writer

    def _write(self, kind: str, **members: Any) -> None:
        if not self.sealed:
            (self._writer or self._open()).write(kind, **members)

    def role(self, role: str, rank: dict[str, int | None] | None = None) -> None:
        """What this process is in the server."""
        with self.lock:
            self._write("role", role=role, rank=rank or {})

    def source(self, root: str | None, version: str | None, modules: dict[str, str]) -> None:
        """Digests of source files as imported here."""
        with self.lock:
            self._write("source", root=root, version=version, modules=modules)

    def problem(self, where: str, error: BaseException | str) -> None:
        """The probe failed at `where`; never raises."""
        try:
            with self.lock:
                text = self._problems.add(where, error)
                if text is not None:
                    self._write("problem", where=where, error=text)
        except Exception:  # a full disk must not reach the host program
            pass

    def account(self, **spent: float) -> None:
        """Add to what the footer says of the work of watching: counts, and seconds of the probe's own thread."""
        with self.lock:
            for name, amount in spent.items():
                self._watched[name] = self._watched.get(name, 0) + amount

    def stack(self, frames: Iterable[Frame]) -> int | None:
        """Identifier of a stack, innermost frame first; None for an empty one."""
        key = tuple(tuple(frame) for frame in frames)
        if not key:
            return None
        with self.lock:
            known = self._stacks.get(key)
            if known is None:
                known = self._stacks[key] = len(self._stacks)
                self._write("stack", id=known, frames=[list(frame) for frame in key])
            return known

    # Order

    def replay(self, graph: int) -> int:
        """A launch of `graph` starts; returns how many started so far. The hot path: one append."""
        timeline = self.timeline
        number = timeline.log(graph)
        if number - timeline.ordered > LONGEST_QUEUE and not self.sealed:
            self.drain()
        return number

    @property
    def replays_logged(self) -> int:
        """How many replays were logged so far, ordered or pending."""
        return self.timeline.logged

    @property
    def replays_ordered(self) -> int:
        """How many replays have their order."""
        return self.timeline.ordered

    def order_replays(self, upto: int) -> None:
        """Give the next orders to the pending replays among the first `upto` of this worker."""
        with self.lock:
            self.timeline.order_replays(upto)

    def _next(self) -> int:
        """The order of an event that is not a replay, and that happens now unless events are being drained.

        Events that were not fetched yet come first: else a replay could be ordered before a free that preceded it.
        """
        if not self._draining:
            if self._drain_source is not None:
                self.drain()
            else:
                self.order_replays(self.replays_logged)
        return self.timeline.next()

    def _write_run(self, run: Run) -> None:
        last = run.order + run.count - 1
        self._write("replays", o=run.order, to=last, t0=run.t0, t1=run.t1, cycle=run.cycle, count=run.count)

    def drain(self, source: Callable[[], None] | None = None) -> None:
        """Fetch the inspector's events (by `source` this once), order what is known and write what waited long enough."""
        with self.lock:
            if self.sealed or self._draining:
                return
            self._draining = True
            before = self.replays_logged
            fetch = source or self._drain_source
            try:
                if fetch is not None:
                    fetch()
            except Exception as error:
                self.problem("drain", error)
            finally:
                self._draining = False
            self.order_replays(before)
            self.timeline.flush_stale()

    def set_drain(self, source: Callable[[], None] | None) -> None:
        """Register what fetches the inspector's events (batched style)."""
        self._drain_source = source

    # Captures

    def begin_capture(self) -> Capture:
        """A capture begins on this thread."""
        with self.lock:
            self.drain()
            capture = Capture(self._graphs, self._next())
            self._graphs += 1
            return capture

    def end_capture(
        self,
        capture: Capture,
        *,
        pool: Pool,
        label: str | None = None,
        key: Any = None,
        site: dict[str, Any] | None = None,
        path: str | None = None,
        stack: int | None = None,
        nodes: dict[str, int],
        names: list[str],
        refs: list[list[Any]],
        unowned: list[dict[str, Any]],
        unread: list[dict[str, Any]],
        complete: bool,
        keep_graph: bool | None = None,
        dangling: Iterable[tuple[Block, int | None]] = (),
        **more: Any,
    ) -> int:
        """Write the capture; returns its graph identifier.

        Args:
            capture: What `begin_capture` gave.
            dangling: Blocks from `refer_dead` that no event has freed yet, with the freeing stack; their `free` follows the capture.
            more: Additional members of the record.
        """
        with self.lock:
            ended = self._next()
            self._captures += 1
            self._inspections += 1 if complete else 0
            self._write(
                "capture",
                o=ended,
                graph=capture.graph,
                pool=pool,
                label=label,
                key=key,
                site=site,
                path=path,
                stack=stack,
                began=capture.began,
                ended=ended,
                nodes=nodes,
                names=names,
                refs=refs,
                unowned=unowned,
                unread=unread,
                complete=complete,
                keep_graph=keep_graph,
                t=self._clock(),
                **more,
            )
            for block, freed_by in dangling:
                self.blocks.report_dead([block], {block.id: freed_by}, None)
            return capture.graph

    @contextmanager
    def held(self) -> Iterator[None]:
        """Write the records of this block in one piece at its end; the lock is held meanwhile."""
        with self.lock:
            writer = self._writer
            if writer is not None:
                writer.hold()
            try:
                yield
            finally:
                if writer is not None and not self.sealed:
                    writer.release()

    def abandon_capture(self, capture: Capture, reason: str | None = None) -> None:
        """A capture failed in the host program: its graph never replays, so nothing rests on it."""
        with self.lock:
            self._write("graph", o=self._next(), graph=capture.graph, e="abandoned", detail=reason)

    def graph_event(self, graph: int, event: str, by: int | None = None, **more: Any) -> None:
        """A captured graph was reset, destroyed, updated, instantiated or recaptured."""
        with self.lock:
            members = more if by is None else {"by": by, **more}
            self._write("graph", o=self._next(), graph=graph, e=event, **members)

    # Allocator events

    def freed(
        self, device: int, address: int, *, stack: int | None = None, t: int | None = None, **how: bool
    ) -> Block | None:
        """The allocation at `address` was given back (`how` as for `BlockTable.freed`); returns the block that ended, if any."""
        with self.lock:
            return self.blocks.freed(device, address, stack, t, **how)

    def allocated(
        self,
        device: int,
        address: int,
        size: int,
        *,
        stack: int | None = None,
        t: int | None = None,
        during: int | None = None,
    ) -> None:
        """Memory was handed out at `address`."""
        with self.lock:
            self.blocks.allocated(device, address, size, stack, t, during)

    def segment_gone(self, device: int, address: int, size: int) -> None:
        """Memory went back to the driver."""
        with self.lock:
            self.blocks.segment_gone(device, address, size)

    def pool_gone(self, pool: Pool) -> None:
        """A private pool was released."""
        with self.lock:
            self.blocks.pool_gone(pool)

    def _block_event(self, event: str, members: dict[str, Any]) -> None:
        self._write("event", o=self._next(), e=event, **members)

    def _announce_block(self, block: Block) -> None:
        a = block.allocation
        self._write(
            "block",
            id=block.id,
            address=a.address,
            size=a.size,
            pool=a.pool,
            segment=None if a.segment is None else list(a.segment),
            device=a.device,
            generation=block.generation,
            allocated=a.stack,
            during=a.during,
        )

    # Recorder state

    def recorder_event(
        self, event: str, *, detail: str | None = None, stack: int | None = None, **members: Any
    ) -> None:
        """The source of events was switched, overflowed, lost events or left an order open."""
        with self.lock:
            self._write("recorder", o=self._next(), e=event, detail=detail, stack=stack, **members)

    def poison(self, graph: int, pool: Pool, size: int, blocks: int) -> None:
        """Free memory of a graph's pool was overwritten before its replay."""
        with self.lock:
            self._write("poison", o=self._next(), graph=graph, pool=pool, bytes=size, blocks=blocks)

    # End

    def close(self, reason: str) -> None:
        """Drain, write the footer and stop recording; later calls do nothing. A worker that wrote nothing leaves no file."""
        with self.lock:
            if self.sealed:
                return
            self.closing = True
            self.drain()
            self.drain()  # what the first one may have missed shows in the second; replays behind it have no evidence and no order
            self.timeline.flush()
            if self._writer is not None:
                self._write(
                    "footer",
                    captures=self._captures,
                    replays=self.replays_ordered,
                    inspections=self._inspections,
                    problems=self._problems.count,
                    reason=reason,
                    watched={name: round(amount, 3) for name, amount in self._watched.items()},
                )
                self._writer.close()
            self.sealed = True
            self.timeline.stop()

    def forked(self) -> None:
        """Start afresh in a forked child: another worker, another file, nothing shared with the parent's chain."""
        writer = self._writer
        self.lock = threading.RLock()
        self._drain_source = None
        self._reset()
        if writer is not None:
            writer.abandon()
