"""Archives made without a server: the same files that a run writes, closed by the same code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.records.archive import MAP, PLAN
from sgl_graph.analyzer.records.ledger import LaunchOutcome, SetWindow
from sgl_graph.analyzer.records.outputs import ObservedBatches, OutputSet, request_output, set_digest
from sgl_graph.analyzer.records.plan import (
    ExpectedWorkers,
    Plan,
    PlannedDevice,
    PlannedLaunch,
    PlannedRequest,
    RequestSet,
    Requirements,
)
from sgl_graph.analyzer.records.receipts import write_receipts
from sgl_graph.cli.render.report import markdown
from sgl_graph.runtime.archive import RunArchive
from sgl_graph.runtime.evidence import IDENTITIES, OUTCOME, OUTPUTS_SUFFIX, SERVER_INFO, SOURCE
from sgl_graph.runtime.identity import tool_digest
from sgl_graph.runtime.run import Finished, close

TOKENS = {"one": [[5, 6, 7, 8]], "two": [[9, 10, 11], [12, 13, 14]]}
SECOND = 1_000_000_000
DIGEST = "ab" * 32


@dataclass
class Made:
    """What an archive is to hold."""

    workers: int = 2
    labels: Sequence[str] = ("target:decode",)
    #: Tokens that the ordinary launch answers otherwise, as (set, request, position).
    wrong: tuple[str, int, int] | None = None
    freed: bool = False
    replayed: Sequence[int] = (0, 1)
    footers: bool = True
    events: Sequence[Mapping[str, Any]] = field(default_factory=list)


def make(root: Path, made: Made | None = None) -> Finished:
    """Write and close an archive."""
    made = made or Made()
    root.parent.mkdir(parents=True, exist_ok=True)
    archive = RunArchive.create(root)
    sets = [
        RequestSet(
            name=name,
            labels=[f"target:decode@{len(rows)}"],
            requests=[PlannedRequest(input_ids=[i + 20, 3, 4], output_len=len(row)) for i, row in enumerate(rows)],
        )
        for name, rows in TOKENS.items()
    ]
    names = [s.name for s in sets]
    plan = Plan(
        run_id="0123456789ab",
        command=["python", "-m", "sglang.launch_server", "--model-path", "m"],
        checkout={"root": "/checkout", "layout": "repository", "commit": "c" * 40, "tree": "t" * 40, "dirty": False},
        device=PlannedDevice(kind="emulated", source="made", emulated=True),
        launches=[
            PlannedLaunch.model_validate({"name": name, "argv": ["python"], "env": {}, "sets": names})
            for name in ("eager", "ordinary", "instrumented")
        ],
        request_sets=sets,
        requirements=Requirements(labels=list(made.labels), provenance="derived", map_digest=DIGEST),
        workers=[ExpectedWorkers(role="scheduler", count=made.workers, source="made")],
        map_digest=DIGEST,
        tool_digest=tool_digest(),
    )
    plan_digest = archive.write_record(PLAN, plan)
    archive.write_json(MAP, _map())
    archive.write_json(SOURCE, {"sglang.launch_server": DIGEST})
    archive.write_json(IDENTITIES, {"tool": plan.tool_digest})
    for number, launch in enumerate(("eager", "ordinary", "instrumented")):
        _launch(archive, launch, (number + 1) * 100 * SECOND, made)
    archive.write_bytes("eager/receipts/e0.jsonl", write_receipts(_bodies("e0", made, captures=False)))
    for rank in range(made.workers):
        archive.write_bytes(f"receipts/w{rank}.jsonl", write_receipts(_bodies(f"w{rank}", made, rank=rank)))
    return close(archive, plan, markdown, identities={"tool": plan.tool_digest}, plan_digest=plan_digest, failure=None)


def _launch(archive: RunArchive, launch: str, start: int, made: Made) -> None:
    windows = []
    for position, (name, rows) in enumerate(TOKENS.items()):
        began = start + position * 10 * SECOND
        windows.append(SetWindow(set=name, began=began, ended=began + 5 * SECOND))
        requests = []
        for index, row in enumerate(rows):
            ids = list(row)
            if launch == "ordinary" and made.wrong is not None and made.wrong[:2] == (name, index):
                ids[made.wrong[2]] += 1
            requests.append(request_output(index, ids, [-0.25] * len(ids), [[(t, -0.25), (1, -2.0)] for t in ids]))
        answers = OutputSet(
            launch=launch,
            set=name,
            began=began,
            ended=began + 5 * SECOND,
            seconds=0.5,
            batches=ObservedBatches(decode=[len(rows)], prefill=[len(rows)], source="server log"),
            requests=requests,
            sha256=set_digest(requests),
        )
        archive.write_record(f"{launch}/{name}{OUTPUTS_SUFFIX}", answers)
    archive.write_bytes(f"{launch}/server.log", b"Decode batch, #running-req: 1\n")
    archive.write_json(f"{launch}/{SERVER_INFO}", {"attention_backend": "fake"})
    archive.write_record(
        f"{launch}/{OUTCOME}", LaunchOutcome(state="ran", seconds_to_health=1.0, captures=0, windows=windows)
    )


def _bodies(worker: str, made: Made, *, rank: int = 0, captures: bool = True) -> list[dict[str, Any]]:
    """Receipts of one worker: two labels, one of them in two segments, then what the made archive asks for."""
    bodies: list[dict[str, Any]] = [
        {
            "k": "hello",
            "schema": "sgl-graph.receipts/1",
            "run": "0123456789ab",
            "launch": "instrumented",
            "worker": worker,
        },
        {"k": "role", "role": "scheduler", "rank": {"tp": rank}},
        {"k": "source", "root": "/checkout", "version": "1", "modules": {"sglang.launch_server": DIGEST}},
    ]
    if not captures:
        return [
            *bodies,
            {"k": "footer", "captures": 0, "replays": 0, "inspections": 0, "problems": 0, "reason": "sealed"},
        ]
    bodies += [
        {"k": "stack", "id": 0, "frames": [["model.py", 7, "forward"]]},
        {"k": "stack", "id": 1, "frames": [["model.py", 9, "drop"]]},
        {
            "k": "block", "id": 0, "address": 4096, "size": 512, "pool": None, "segment": [4096, 8192], "device": 0,
            "generation": 0, "allocated": 0, "during": None,
        },
    ]  # fmt: skip
    labels = ["target:decode@1", "target:decode@2", "target:decode@2"]
    for graph, label in enumerate(labels):
        bodies.append(
            {
                "k": "capture", "graph": graph, "pool": 1, "label": label, "key": label,
                "site": {"file": "sglang/runner.py", "line": 3, "qualname": "sglang.runner:capture"}, "path": "p1",
                "stack": 0, "began": 2 * graph + 1, "ended": 2 * graph + 2, "nodes": {"kernel": 1}, "names": ["mul"],
                "refs": [[0, 0, 0, 0, "param", "external", 0]], "unowned": [], "unread": [], "complete": True,
                "keep_graph": False, "t": 5,
            }
        )  # fmt: skip
    order, count = 2 * len(labels), 0
    window = {0: 300 * SECOND, 1: 310 * SECOND}
    for which, cycle in ((0, [0]), (1, [1, 2])):
        if which not in made.replayed:
            continue
        if made.freed and which == 1:
            order += 1
            bodies.append({"k": "event", "o": order, "e": "free", "block": 0, "stack": 1, "t": window[1]})
        times = 4
        bodies.append(
            {
                "k": "replays", "o": order + 1, "to": order + times, "t0": window[which] + SECOND,
                "t1": window[which] + 2 * SECOND, "cycle": cycle, "count": times,
            }
        )  # fmt: skip
        order, count = order + times, count + times
    bodies += [dict(body) for body in made.events]
    if made.footers:
        bodies.append(
            {
                "k": "footer",
                "captures": len(labels),
                "replays": count,
                "inspections": len(labels),
                "problems": 0,
                "reason": "sealed",
            }
        )
    return bodies


def _map() -> dict[str, Any]:
    label = {"key": "k", "expression": "k", "variants": [None], "buckets": [1, 2]}
    path = {
        "id": "p1", "family": "decode", "worker": "scheduler", "runner": "target", "backend": "full", "sites": [],
        "name": "target:decode", "components": [], "reachable": "yes", "trigger": "startup", "nested_in": None,
        "inspectability": "lifetime-inspectable", "label": label,
    }  # fmt: skip
    return {
        "schema": "sgl-graph.path-map/1", "command": [], "env": {}, "config": [], "workers": [], "sites": [],
        "paths": [path], "gaps": [], "labels": ["target:decode"], "traffic": [], "starts": {"value": "yes"},
        "checkout": {"root": "", "layout": "repository", "digest": "d"}, "device": {"name": None, "source": "none"},
    }  # fmt: skip
