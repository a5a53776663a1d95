"""One pass over one worker's receipts: what it captured, what it replayed inside the windows of the traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from sgl_graph.analyzer.records import receipts as r


@dataclass(frozen=True)
class Window:
    """A request set as the clock saw it: the server was idle at both ends."""

    set: str
    began: int
    ended: int


@dataclass(frozen=True)
class SeenCapture:
    """A captured graph, without its references."""

    graph: r.Id
    label: str | None
    path: str | None
    pool: r.Pool
    site: str | None
    complete: bool
    unread: int
    chain: int
    key: str = "unknown"


@dataclass
class WorkerObservation:
    """What one worker's receipts say, for coverage and drift."""

    id: str
    role: str = "unknown"
    rank: dict[str, Any] | None = None
    launch: str | None = None
    run: str | None = None
    root: str | None = None
    version: str | None = None
    modules: dict[str, str] = field(default_factory=dict)
    tool: str | None = None
    inspector: str | None = None
    captures: list[SeenCapture] = field(default_factory=list)
    replays: int = 0
    footer: str | None = None
    #: Why these receipts are not whole.
    problems: list[str] = field(default_factory=list)
    #: Replays per graph from the first window's begin to the last one's end, and in each set's own window.
    in_windows: dict[r.Id, int] = field(default_factory=dict)
    by_set: dict[str, dict[r.Id, int]] = field(default_factory=dict)
    #: Graphs with replays that lie across an end of the traffic or carry no time.
    undecided: set[r.Id] = field(default_factory=set)

    @property
    def shown(self) -> str:
        """For people: role and rank where they are known, and the id."""
        rank = " ".join(f"{name}{value}" for name, value in (self.rank or {}).items() if value is not None)
        return f"{self.role} {rank} ({self.id})" if rank else self.id

    @property
    def whole(self) -> bool:
        """Whether absence in these receipts proves absence."""
        return self.footer is not None and not self.problems

    def chains(self) -> list[tuple[str | None, list[SeenCapture]]]:
        """Consecutive captures into one pool under one label, in order."""
        groups: dict[int, list[SeenCapture]] = {}
        for capture in self.captures:
            groups.setdefault(capture.chain, []).append(capture)
        return [(group[0].label, group) for group in groups.values()]

    def labels_captured(self) -> set[str]:
        """Raw labels with at least one capture."""
        return {c.label for c in self.captures if c.label}

    def labels_replayed(self, set_name: str | None = None) -> dict[str, int]:
        """Raw labels replayed with all their segments inside the windows (or one set's), with counts."""
        counts = self.in_windows if set_name is None else self.by_set.get(set_name, {})
        found: dict[str, int] = {}
        for label, group in self.chains():
            if label is None:
                continue
            whole = min(counts.get(c.graph, 0) for c in group)
            if whole:
                found[label] = found.get(label, 0) + whole
        return found

    def labels_undecided(self) -> set[str]:
        """Raw labels of which some replay cannot be placed in or out of a window."""
        return {c.label for c in self.captures if c.label and c.graph in self.undecided}

    def unlabelled_replays(self) -> bool:
        """Whether a graph without a label was replayed inside a window."""
        named = {c.graph for c in self.captures if c.label}
        return any(graph not in named for graph in (*self.in_windows, *self.undecided))


class Observer:
    """Gathers an observation from the lines of a worker's receipts, fed one by one."""

    def __init__(self, receipts: r.WorkerReceipts, windows: Sequence[Window]) -> None:
        """Args: receipts: whose lines will be fed. windows: when the planned request sets ran in this launch."""
        self._worker = receipts.worker
        self._windows = sorted(windows, key=lambda window: window.began)
        self._seen = WorkerObservation(id=receipts.worker or receipts.name)
        self._captures = self._replays = 0
        self._closed = False
        #: Graphs that run as child graphs whenever a graph is replayed, each once.
        self._inside: dict[r.Id, tuple[r.Id, ...]] = {}
        apart = all(a.ended < b.began for a, b in pairwise(self._windows))
        #: The window that the last single replay lay in, and its counts; only where no two windows share a moment.
        self._last: Window | None = None
        self._cached = apart

    def feed(self, line: r.Line | r.Damage) -> None:
        """Take the next line; damage makes the observation not whole."""
        seen = self._seen
        if self._closed and not isinstance(line, r.Damage):
            seen.problems.append("lines after the footer")
            self._closed = False
        match line:
            case r.Replays():
                self._replays += line.count
                if line.count != 1 or self._inside or not self._counted(line):
                    _add_replays(seen, line, self._windows, self._inside)
            case r.Damage():
                seen.problems.append(str(line))
            case r.Hello():
                seen.run, seen.launch, seen.tool, seen.inspector = line.run, line.launch, line.tool, line.inspector
                if self._worker is not None and line.worker != self._worker:
                    seen.problems.append(f"the file of {self._worker} was written by {line.worker}")
            case r.Role():
                seen.role, seen.rank = line.role or seen.role, line.rank or seen.rank
            case r.Source():
                seen.root, seen.version = line.root or seen.root, line.version or seen.version
                seen.modules.update(line.modules)
            case r.Capture():
                self._captures += 1
                _add_capture(seen, line)
                if line.embeds:
                    inner = [graph for _, graph in line.embeds]
                    found = [member for graph in inner for member in (*self._inside.get(graph, ()), graph)]
                    self._inside[line.graph] = tuple(dict.fromkeys(found))
            case r.Problem():
                seen.problems.append(f"the probe failed in {line.where}: {line.error}")
            case r.Footer():
                self._closed = True
                seen.footer = line.reason or "unknown"
                if (line.captures, line.replays) != (self._captures, self._replays):
                    seen.problems.append("the footer counts other captures or replays than the lines hold")
            case _:
                pass

    def _counted(self, line: r.Replays) -> bool:
        """Count a single replay in the same window as the one before, which is the bulk of a long file."""
        t0, t1, window = line.t0, line.t1, self._last
        if t0 is None or t1 is None or len(line.cycle) != 1:
            return False
        if window is None or t0 < window.began or t1 > window.ended:
            if self._cached:
                self._last = next((w for w in self._windows if w.began <= t0 and t1 <= w.ended), None)
            return False
        (graph,) = line.cycle
        counts = self._seen.in_windows
        counts[graph] = counts.get(graph, 0) + 1
        counts = self._seen.by_set.setdefault(window.set, {})
        counts[graph] = counts.get(graph, 0) + 1
        return True

    def result(self) -> WorkerObservation:
        """What was gathered."""
        self._seen.replays = self._replays
        return self._seen


def observe(receipts: r.WorkerReceipts, windows: Sequence[Window]) -> WorkerObservation:
    """Read a worker's receipts once.

    Args:
        receipts: The stream; damage in it makes the observation not whole.
        windows: When the planned request sets ran in this launch.
    """
    observer = Observer(receipts, windows)
    for line in receipts:
        observer.feed(line)
    return observer.result()


def _add_capture(seen: WorkerObservation, line: r.Capture) -> None:
    before = seen.captures[-1] if seen.captures else None
    joined = before is not None and line.label is not None and before.label == line.label and before.pool == line.pool
    chain = before.chain if before and joined else (before.chain + 1 if before else 0)
    seen.captures.append(
        SeenCapture(
            graph=line.graph,
            label=line.label,
            path=line.path,
            pool=line.pool,
            site=f"{line.site.file}:{line.site.line}" if line.site and line.site.file else None,
            complete=line.complete,
            unread=len(line.unread),
            chain=chain,
            key=str(line.key),
        )
    )


def _add_replays(
    seen: WorkerObservation, line: r.Replays, windows: Sequence[Window], children: Mapping[r.Id, tuple[r.Id, ...]]
) -> None:
    if line.count < 1 or not line.cycle:
        seen.problems.append(f"line {line.n + 1}: a run of replays without replays")
        return
    run = [(graph, *children.get(graph, ())) for graph in line.cycle]
    if line.t0 is None or line.t1 is None:
        seen.undecided.update(graph for graphs in run for graph in graphs)
        return
    if not windows or line.t1 < windows[0].began or line.t0 > windows[-1].ended:
        return
    if line.t0 < windows[0].began or line.t1 > windows[-1].ended:
        seen.undecided.update(graph for graphs in run for graph in graphs)
        return
    # Between two sets nothing is sent, so whatever runs there is still the traffic's; only whose set it was stays open.
    inside = next((w for w in windows if w.began <= line.t0 and line.t1 <= w.ended), None)
    per_set = seen.by_set.setdefault(inside.set, {}) if inside else {}
    whole, rest = divmod(line.count, len(line.cycle))
    for at, graphs in enumerate(run):
        times = whole + (1 if at < rest else 0)
        for graph in graphs if times else ():
            seen.in_windows[graph] = seen.in_windows.get(graph, 0) + times
            per_set[graph] = per_set.get(graph, 0) + times
