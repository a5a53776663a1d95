"""One worker's receipts judged as they stream by: what happened to blocks, in order, against each replay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from sgl_graph.analyzer.reconcile.lifetime_codes import CODES
from sgl_graph.analyzer.reconcile.lifetime_rules import Judgement, dependencies, judge_blocks, judge_order
from sgl_graph.analyzer.reconcile.lifetime_state import BlockState, GraphState, Owner, WorkerState
from sgl_graph.analyzer.reconcile.lifetime_words import Words
from sgl_graph.analyzer.records.ledger import UNKNOWN, Finding, Outside
from sgl_graph.analyzer.records.receipts import (
    SCHEMA,
    Block,
    Capture,
    Damage,
    Event,
    Footer,
    GraphEvent,
    Hello,
    Id,
    Line,
    Problem,
    Recorder,
    Replays,
    Role,
    Stack,
    WorkerReceipts,
)
from sgl_graph.analyzer.records.verdicts import Verdict, WorkerLifetime

#: Distinct findings of a severity, and reasons, kept for one worker; beyond them the verdict stands and nothing is learned.
MOST_KEPT = 2000
#: After three rounds of a cycle nothing about the order of replays changes any more.
_ROUNDS = 3


class WorkerJudge:
    """Consumes the lines of one worker. Memory is bounded by captures and blocks, never by replays."""

    def __init__(self, receipts: WorkerReceipts) -> None:
        self.receipts = receipts
        self.worker = receipts.worker or receipts.name
        self.run: str | None = None
        self.role: str = UNKNOWN
        self.findings: list[Finding] = []
        self.incomplete: list[str] = []
        self.state = WorkerState()
        self.captures = self.inspections = self.problems = 0
        self.footer: Footer | None = None
        self._words = Words(self.state)
        self._outside: Counter[tuple[str, str, str]] = Counter()
        self._found: set[tuple[Any, ...]] = set()
        self._kept: Counter[str] = Counter()
        self._order = -1
        self._lines = 0
        self._damaged = False
        #: The capture whose dangling blocks are being listed, and the order that the next such event has.
        self._listing: tuple[Id, int] | None = None

    def read(self) -> WorkerJudge:
        """Read all lines; returns itself."""
        replay = self._one_replay
        handlers: dict[type, Callable[[Any], None]] = {
            Hello: self._hello,
            Role: self._role,
            Stack: self._stack,
            Block: self._block,
            Capture: self._capture,
            Event: self._event,
            Replays: self._replays,
            GraphEvent: self._graph_event,
            Recorder: self._recorder,
            Problem: self._problem,
            Footer: self._footer,
            Damage: self._damage,
        }
        for line in self.receipts:
            # The bulk of a long run: one replay of one graph, next in order.
            if (
                isinstance(line, Replays)
                and line.count == 1
                and len(line.cycle) == 1
                and line.o == line.to
                and line.o > self._order
                and self._lines
                and self.footer is None
            ):
                self._order = line.o
                self._listing = None
                replay(line.cycle[0])
                continue
            if not isinstance(line, Damage):
                self._place(line)
            handler = handlers.get(type(line))
            if handler is not None:
                handler(line)
        self._finish()
        return self

    def result(self) -> WorkerLifetime:
        """This worker alone."""
        return WorkerLifetime(
            worker=self.worker,
            value=self._value(),
            role=self.role,
            captures=self.captures,
            replays=self.state.replays,
            inspections=self.inspections,
            footer=UNKNOWN if self.footer is None else self.footer.reason or UNKNOWN,
            incomplete=tuple(self.incomplete),
        )

    def outside(self) -> Iterable[Outside]:
        """Memory that no caching allocator owns, by kind, label and kernel."""
        for (kind, label, kernel), count in sorted(self._outside.items()):
            yield Outside(kind=kind, label=label, kernel=kernel, count=count, worker=self.worker)

    def _value(self) -> Verdict:
        severities = {finding.severity for finding in self.findings}
        if "definite" in severities:
            return Verdict.FAIL
        if self.incomplete:
            return Verdict.INCOMPLETE
        if "hazard" in severities:
            return Verdict.INCONCLUSIVE
        if not self.captures or not self.state.replays:
            return Verdict.NOT_RUN
        return Verdict.PASS

    # Lines

    def _place(self, line: Line) -> None:
        """Hold a line against those before it: the first, the last, and the order of events."""
        if self._lines == 0 and not isinstance(line, Hello):
            self._lack("the first line is not `hello`")
        if self.footer is not None:
            self._lack("lines follow the footer")
        self._lines += 1
        order = getattr(line, "o", None)
        if isinstance(line, Capture):
            order = line.ended
        if order is not None:
            if order < self._order:
                self._lack(f"line {line.n}: order {order} comes after {self._order}")
            self._order = max(self._order, order)
        if not isinstance(line, (Event, Stack, Block)):
            self._listing = None

    def _damage(self, damage: Damage) -> None:
        self._damaged = True
        self._lack(str(damage))

    def _hello(self, line: Hello) -> None:
        if self._lines > 1:
            self._lack(f"line {line.n}: a second `hello`")
            return
        if line.schema != SCHEMA:
            self._lack(f"schema {line.schema!r} is not {SCHEMA}")
        if self.receipts.worker is not None and line.worker != self.receipts.worker:
            self._lack(f"the file is named {self.receipts.worker} and was written by {line.worker}")
        self.worker, self.run = line.worker, line.run

    def _role(self, line: Role) -> None:
        self.role = line.role or UNKNOWN

    def _stack(self, line: Stack) -> None:
        self.state.stacks[line.id] = line.frames

    def _block(self, line: Block) -> None:
        if line.id in self.state.blocks:
            self._lack(f"line {line.n}: block {line.id} is described twice")
            return
        self.state.blocks[line.id] = BlockState(line)

    def _capture(self, line: Capture) -> None:
        self.captures += 1
        if line.graph in self.state.graphs:
            self._lack(f"line {line.n}: graph {line.graph} is captured twice")
        self.inspections += line.complete
        title = self._words.title(line)
        if not line.complete or line.unread:
            why = f": {line.unread[0]}" if line.unread else ""
            self._lack(f"{title} was not wholly inspected, {len(line.unread)} nodes or segments unread{why}")
        for ref in line.refs:
            kernel = self._words.kernel(line, ref)
            if ref.block is None:
                if ref.kind == "pinned":
                    self._outside["pinned", line.label or UNKNOWN, kernel] += 1
                elif ref.kind != "unowned":
                    self._lack(f"{title}: a reference of {kernel} of kind {ref.kind} has no block")
            elif ref.block not in self.state.blocks:
                self._lack(f"{title}: {kernel} references block {ref.block}, which is not described")
        for unowned in line.unowned:
            self._outside[unowned.kind, line.label or UNKNOWN, unowned.name or UNKNOWN] += unowned.count
        for _, inner in line.embeds:
            if inner not in self.state.graphs or inner == line.graph:
                self._lack(f"{title}: a child graph is graph {inner}, which was never seen to be captured")
        self.state.capture(line)
        self._listing = (line.graph, line.ended + 1)

    def _event(self, line: Event) -> None:
        named = [*([line.block] if line.block is not None and line.e == "free" else []), *line.over, *line.blocks]
        blocks = [self.state.blocks[b] for b in named if b in self.state.blocks]
        if len(blocks) != len(named):
            self._lack(f"line {line.n}: an event names a block that is not described")
        for block in blocks:
            if line.e == "free":
                self._free(block, line)
            elif line.e == "alloc":
                owner = Owner(line.o, line.during, line.stack, line.block, line.address)
                if line.during is None and line.block in self.state.blocks:
                    owner.during = self.state.blocks[line.block].record.during
                if owner.during is None:
                    block.outside = owner
                else:
                    block.inside[owner.during] = owner
            elif line.e in ("segment-gone", "pool-gone"):
                if block.gone != "segment":
                    block.gone = line.e.removesuffix("-gone")
            else:
                self._lack(f"line {line.n}: unknown event {line.e!r}")
            self.state.touch(block)

    def _free(self, block: BlockState, line: Event) -> None:
        if block.freed is not None:
            self._lack(f"line {line.n}: block {line.block} is freed twice")
            return
        block.freed, block.freed_by, block.scratch = line.o, line.stack, line.scratch
        # What was dead when its capture ended is listed right behind the capture.
        if self._listing is not None and line.o == self._listing[1] and line.t is None:
            block.temporary = block.record.during == self._listing[0]
            self._listing = (self._listing[0], line.o + 1)
        else:
            self._listing = None

    def _replays(self, line: Replays) -> None:
        self._order = max(self._order, line.to)
        if line.count < 1 or not line.cycle or line.to - line.o + 1 != line.count:
            self._lack(f"line {line.n}: {line.count} replays in the orders {line.o} to {line.to}")
            return
        cycle, count, length = line.cycle, line.count, len(line.cycle)
        walked = min(count, _ROUNDS * length)
        for index in range(walked):
            self._one_replay(cycle[index % length])
        if count > walked:
            start = self.state.replays - walked
            for index in range(max(walked, count - length), count):
                graph = self.state.runs.get(cycle[index % length])
                if graph is not None:
                    self._ran(graph, start + index)
            self.state.replays += count - walked

    def _one_replay(self, graph_id: Id) -> None:
        state = self.state
        graph = state.runs.get(graph_id)
        if graph is None:
            self._lack(f"a graph that was never seen to be captured was replayed: {graph_id}")
        elif graph.embedded:
            self._with_children(graph)
        else:
            if graph.alert:
                self._check(graph)
            state.last[graph.capture.graph] = state.replays
        state.replays += 1

    def _with_children(self, graph: GraphState) -> None:
        """A graph and those that run inside it, each judged as if it were replayed itself."""
        state = self.state
        state.parents = frozenset((graph.id, *(inner.id for inner in graph.embedded if inner.embedded)))
        for inner in graph.embedded:
            if inner.alert:
                self._check(inner)
            state.last[inner.id] = state.replays
        state.parents = frozenset()
        if graph.alert:
            self._check(graph)
        self._ran(graph, state.replays)

    def _ran(self, graph: GraphState, index: int) -> None:
        """Note that a graph ran and, before its end, those inside it."""
        last = self.state.last
        for inner in graph.embedded:
            last[inner.id] = index
        last[graph.id] = index + 0.5 if graph.embedded else index

    def _check(self, graph: GraphState) -> None:
        if graph.unknown_contents is not None:
            self._lack(f"{self._words.title(graph.capture)} replayed with unknown contents: {graph.unknown_contents}")
        if graph.recaptured:
            self._found_one(Judgement("recaptured-graph", graph, None, culprit=graph.replaced_by))
        elif graph.reset and not self.state.pool_held(graph):
            self._found_one(Judgement("reset-graph", graph, None))
        if graph.dirty:
            for judgement in judge_blocks(self.state, graph):
                self._found_one(judgement)
            graph.dependencies = dependencies(self.state, graph)
            graph.dirty = False
            graph.alert = (
                bool(graph.dependencies) or graph.reset or graph.recaptured or graph.unknown_contents is not None
            )
        for judgement in judge_order(self.state, graph):
            self._found_one(judgement)

    def _graph_event(self, line: GraphEvent) -> None:
        graph = self.state.graphs.get(line.graph)
        if line.e == "abandoned":
            self.state.abandoned.add(line.graph)
        elif graph is None:
            self._lack(f"line {line.n}: `{line.e}` of graph {line.graph}, which was never seen to be captured")
        elif line.e in ("reset", "destroyed"):
            graph.reset = True
            for block_id in graph.refs:
                if block_id in self.state.blocks:
                    self.state.touch(self.state.blocks[block_id])
        elif line.e == "recaptured":
            graph.recaptured, graph.replaced_by = True, line.by
        elif line.e == "updated":
            self._updated(graph, line)
        elif line.e != "instantiated":
            self._lack(f"line {line.n}: unknown graph event {line.e!r}")
        if graph is not None:
            self.state.mark(graph.id)

    def _updated(self, graph: GraphState, line: GraphEvent) -> None:
        source = self.state.runs.get(line.by) if line.by is not None else None
        if source is None:
            graph.unknown_contents = "its executable was updated from a graph that was not inspected"
        else:
            self.state.runs[graph.id] = source

    def _recorder(self, line: Recorder) -> None:
        if line.e == "tie":
            involved: list[Id | None] = [*line.graphs] or [None]
            for graph in involved:
                self._found_tie(graph, line)
        elif line.e != "on":
            words = {
                "off-by-other": "somebody else switched the recording of allocator events",
                "overflow": "events were lost",
            }
            self._lack(f"line {line.n}: recorder {line.e}: {line.detail or words.get(line.e, 'events may be missing')}")

    def _problem(self, line: Problem) -> None:
        self.problems += 1
        self._lack(f"the probe failed in {line.where}: {line.error}")

    def _footer(self, line: Footer) -> None:
        self.footer = line

    # Conclusions

    def _finish(self) -> None:
        if self._lines == 0:
            self._lack("the file holds no receipts")
        elif self.footer is None:
            self._lack("no footer: the worker was killed, or its last lines are missing")
        else:
            counted = (self.captures, self.state.replays, self.inspections)
            stated = (self.footer.captures, self.footer.replays, self.footer.inspections)
            if counted != stated or self.footer.problems > self.problems:
                self._lack(f"the footer counts {stated} captures, replays and inspections, the lines {counted}")

    def _lack(self, why: str) -> None:
        if why not in self.incomplete and len(self.incomplete) < MOST_KEPT:
            self.incomplete.append(why)

    def _found_one(self, judgement: Judgement) -> None:
        key = (judgement.code, judgement.graph.id, judgement.block.record.id if judgement.block else None)
        severity = CODES[judgement.code].severity if not self._damaged else "hazard"
        if key in self._found or self._kept[severity] >= MOST_KEPT:
            return
        self._found.add(key)
        self._kept[severity] += 1
        self.findings.append(self._words.finding(judgement, worker=self.worker, certain=not self._damaged))

    def _found_tie(self, graph: Id | None, line: Recorder) -> None:
        key = ("tie", graph, tuple(line.blocks))
        if key not in self._found and self._kept["hazard"] < MOST_KEPT:
            self._found.add(key)
            self._kept["hazard"] += 1
            self.findings.append(self._words.tie(graph, line, worker=self.worker))
