"""Small makers of plans, answers and observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.reconcile.observation import SeenCapture, WorkerObservation
from sgl_graph.analyzer.records.ledger import LaunchOutcome
from sgl_graph.analyzer.records.outputs import ObservedBatches, OutputSet, request_output, set_digest
from sgl_graph.analyzer.records.plan import (
    ExpectedWorkers,
    Plan,
    PlannedDevice,
    PlannedRequest,
    RequestSet,
    Requirements,
    Tolerance,
)

RAN = {name: LaunchOutcome(state="ran") for name in ("eager", "eager-repeat", "ordinary", "instrumented")}


def request_set(name: str, count: int = 1, length: int = 3, **more: Any) -> RequestSet:
    requests = [PlannedRequest(input_ids=[i + 10], output_len=length) for i in range(count)]
    return RequestSet(name=name, requests=requests, **more)


def plan(
    *sets: RequestSet,
    labels: Sequence[str] = (),
    provenance: str = "derived",
    workers: Sequence[ExpectedWorkers] = (),
    tolerance: Tolerance | None = None,
    **more: Any,
) -> Plan:
    requirements = Requirements.model_validate(
        {"labels": list(labels), "provenance": provenance, "roles": more.pop("roles", {})}
    )
    return Plan(
        run_id="r",
        command=["python"],
        device=PlannedDevice(kind="emulated", source="test", emulated=True),
        launches=[],
        request_sets=list(sets),
        requirements=requirements,
        workers=list(workers),
        tolerance=tolerance or Tolerance(),
        tool_digest="t",
        **more,
    )


def answers(
    launch: str,
    name: str,
    *rows: Sequence[int],
    logprobs: Mapping[int, Sequence[Any]] | None = None,
    decode: Sequence[int] = (),
) -> OutputSet:
    requests = [
        request_output(i, list(row), list((logprobs or {}).get(i, [-0.5] * len(row))), [[(row[0], -0.5)]] * len(row))
        for i, row in enumerate(rows)
    ]
    return OutputSet(
        launch=launch,
        set=name,
        began=0,
        ended=10,
        seconds=0.5,
        batches=ObservedBatches(decode=list(decode), source="server log" if decode else "unknown"),
        requests=requests,
        sha256=set_digest(requests),
    )


def worker(
    name: str = "w0",
    captured: Sequence[str | None] = ("target:decode@1",),
    replayed: Sequence[int] = (0,),
    *,
    role: str = "scheduler",
    footer: str | None = "sealed",
    problems: Sequence[str] = (),
    undecided: Sequence[int] = (),
    complete: bool = True,
) -> WorkerObservation:
    """Graph i has label captured[i]; equal neighbours are segments of one chain."""
    seen = WorkerObservation(id=name, role=role, footer=footer, problems=list(problems))
    chain = -1
    for graph, label in enumerate(captured):
        if graph == 0 or label is None or captured[graph - 1] != label:
            chain += 1
        seen.captures.append(
            SeenCapture(
                graph=graph, label=label, path=None, pool=1, site="f.py:1", complete=complete, unread=0, chain=chain
            )
        )
    seen.in_windows = dict.fromkeys(replayed, 1)
    seen.undecided = set(undecided)
    seen.replays = len(replayed)
    return seen


def map_view(*paths: tuple[str, list[str | None], list[int] | None]) -> MapView:
    """A map with these paths: name, variants, sizes."""
    found = [
        {"id": name, "name": name, "reachable": "yes", "label": {"variants": variants, "buckets": buckets}}
        for name, variants, buckets in paths
    ]
    return MapView({"paths": found, "labels": []})
