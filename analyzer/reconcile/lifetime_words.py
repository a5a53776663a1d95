"""Findings put into words: label, kernel, parameter, block, and the lines that allocated, freed and own it."""

from __future__ import annotations

from sgl_graph.analyzer.reconcile.lifetime_codes import CODES
from sgl_graph.analyzer.reconcile.lifetime_rules import Judgement
from sgl_graph.analyzer.reconcile.lifetime_state import BlockState, WorkerState
from sgl_graph.analyzer.records.ledger import UNKNOWN, Finding
from sgl_graph.analyzer.records.receipts import Capture, Id, Recorder, Ref

#: Frames inside the framework do not name the line that a reader can change.
_FRAMEWORK = ("/torch/", "\\torch\\")


class Words:
    """Turns judgements about one worker into findings."""

    def __init__(self, state: WorkerState) -> None:
        self._state = state

    def title(self, capture: Capture) -> str:
        """What a reader calls a graph: its label, else where it was captured."""
        return self._graph(capture) if capture.label is None else f"graph {capture.label}"

    def kernel(self, capture: Capture, ref: Ref) -> str:
        """Name of the node that holds a reference."""
        if isinstance(ref.name, int) and 0 <= ref.name < len(capture.names):
            return capture.names[ref.name]
        return UNKNOWN

    def finding(self, judgement: Judgement, *, worker: str, certain: bool) -> Finding:
        """The finding; what rests on damaged receipts is never definite."""
        code = CODES[judgement.code]
        capture, block = judgement.graph.capture, judgement.block
        ref = judgement.graph.refs.get(block.record.id) if block is not None else None
        kernel = self.kernel(capture, ref) if ref is not None else UNKNOWN
        freed = self._places(block.freed_by) if block is not None and block.freed is not None else UNKNOWN
        owner = self._owner(judgement)
        return Finding(
            code=judgement.code,
            severity=code.severity if certain else "hazard",
            label=capture.label or self._graph(capture),
            worker=worker,
            kernel=kernel,
            parameter=_parameter(ref),
            block=self._block(block),
            allocated_at=self._places(block.record.allocated) if block is not None else UNKNOWN,
            freed_at=freed,
            owner_now=owner,
            replay_index=self._state.replays,
            text=self._text(judgement, kernel, ref, freed, owner)
            + ("" if certain else " (read from damaged receipts)"),
            next_step=code.remedy,
        )

    def tie(self, graph: Id | None, line: Recorder, *, worker: str) -> Finding:
        """A tie between an allocator event and a replay."""
        code = CODES["tie"]
        known = self._state.graphs.get(graph) if graph is not None else None
        block = self._state.blocks.get(line.blocks[0]) if line.blocks else None
        return Finding(
            code="tie",
            severity=code.severity,
            label=(known.capture.label or self._graph(known.capture)) if known is not None else UNKNOWN,
            worker=worker,
            block=self._block(block),
            replay_index=self._state.replays,
            text=code.title + (f": {line.detail}" if line.detail else ""),
            next_step=code.remedy,
        )

    def _text(self, judgement: Judgement, kernel: str, ref: Ref | None, freed: object, owner: object) -> str:
        parts = [f"{self.title(judgement.graph.capture)}: {CODES[judgement.code].title}"]
        if ref is not None:
            parts.append(f"kernel {kernel}, parameter {_parameter(ref)}")
        if isinstance(freed, list):
            parts.append(f"freed at {freed[0]}")
        if isinstance(owner, list):
            parts.append(f"owned now by {owner[0]}")
        culprit = self._state.graphs.get(judgement.culprit) if judgement.culprit is not None else None
        if culprit is not None:
            parts.append(f"the other graph is {self.title(culprit.capture)}")
        return "; ".join(parts)

    def _owner(self, judgement: Judgement) -> str | list[str]:
        taker, owner = judgement.culprit, judgement.owner
        if owner is None and (
            judgement.code == "handover-unproduced" or judgement.block is None or not judgement.block.dead
        ):
            return UNKNOWN
        if owner is not None:
            places = self._places(owner.stack)
            if isinstance(places, list):
                return places
            block = self._state.blocks.get(owner.block) if owner.block is not None else None
            if block is not None:
                return self._places(block.record.allocated)
            taker = owner.during if taker is None else taker
        known = self._state.graphs.get(taker) if taker is not None else None
        return self.title(known.capture) if known is not None else UNKNOWN

    def _places(self, stack: Id | None) -> str | list[str]:
        frames = self._state.stacks.get(stack, []) if stack is not None else []
        outer = [f for f in frames if not any(part in f[0] for part in _FRAMEWORK)]
        return [f"{file}:{line} {function}" for file, line, function in outer or frames] or UNKNOWN

    def _graph(self, capture: Capture) -> str:
        if capture.site is not None and capture.site.file is not None:
            return f"graph {capture.graph} captured at {capture.site.file}:{capture.site.line}"
        places = self._places(capture.stack)
        return (
            f"graph {capture.graph} captured at {places[0]}" if isinstance(places, list) else f"graph {capture.graph}"
        )

    def _block(self, block: BlockState | None) -> str:
        if block is None:
            return UNKNOWN
        record = block.record
        pool = "" if record.pool is None else f", pool {_pool(record.pool)}"
        generation = "" if record.generation is None else f", generation {record.generation}"
        return f"{record.address:#x}+{record.size}{pool}{generation}"


def _pool(pool: object) -> str:
    return ":".join(str(part) for part in pool) if isinstance(pool, tuple) else str(pool)


def _parameter(ref: Ref | None) -> str | int:
    if ref is None or ref.parameter is None:
        return UNKNOWN
    return ref.parameter if not ref.offset else f"{ref.parameter}+{ref.offset}"
