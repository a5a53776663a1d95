"""The recorder's receipts: chain, order, runs, block identities."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.runtime.probe.blocks import Allocation
from sgl_graph.runtime.probe.config import ProbeConfig
from sgl_graph.runtime.probe.recorder import Recorder
from sgl_graph.runtime.probe.runs import LONGEST_CYCLE, Run, RunEncoder


class Clock:
    """Time that moves a microsecond a reading."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 1000
        return self.now


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    config = ProbeConfig(folder=tmp_path, receipts=tmp_path / "receipts", run="r1", launch="program", inspector="fake")
    recorder = Recorder(config, clock=Clock())
    recorder.hello()
    return recorder


def lines(recorder: Recorder) -> list[dict[str, Any]]:
    """All records, the chain verified on the way."""
    previous = "0" * 32
    records = []
    for number, line in enumerate((recorder.config.receipts / f"{recorder.worker}.jsonl").read_text().splitlines()):
        body, _, tail = line.rpartition(',"h":"')
        body += "}"
        assert hashlib.sha256((previous + body).encode()).hexdigest()[:32] == tail[:-2]
        previous = tail[:-2]
        records.append(json.loads(line))
        assert records[-1]["n"] == number
    return records


def captured(recorder: Recorder, *blocks: Any, **more: Any) -> int:
    capture = recorder.begin_capture()
    refs = [[0, 0, i, 0, "param", "external", block.id] for i, block in enumerate(blocks)]
    return recorder.end_capture(
        capture, pool=[0, 1], nodes={"kernel": 1}, names=["k"], refs=refs, unowned=[], unread=[], complete=True, **more
    )


def allocation(address: int = 4096, size: int = 512, **more: Any) -> Allocation:
    return Allocation(address, size, [0, 0], (0, 1 << 20), 0, **more)


def expand(runs: list[Run]) -> list[int]:
    return [run.cycle[i % len(run.cycle)] for run in runs for i in range(run.count)]


@pytest.mark.parametrize(
    ("sequence", "most"),
    [
        ([1] * 5000, 1),
        ([1, 2, 3, 4] * 2000, 1),
        ([1, 2, 1, 3] * 1000, 2),
        ([1, 1, 2] * 1000, 3),
        ([5] * 10 + [1, 2, 3] * 10 + [1, 2], 3),
        (list(range(1000)), 1000 // LONGEST_CYCLE + 1),
        ([1, 2, 3, 1, 2, 4] * 1000, 1),
        ([1, 1, 1, 1, 2] * 1000, 1),
        ([i * i % 7919 * 31 // 7 % 4 for i in range(20_000)], 20_000 // 200),
        ([], 0),
    ],
)
def test_runs_are_lossless_and_few(sequence: list[int], most: int) -> None:
    runs: list[Run] = []
    encoder = RunEncoder(runs.append)
    for order, graph in enumerate(sequence):
        encoder.add(order, order, graph)
    encoder.flush()
    assert expand(runs) == sequence
    assert len(runs) <= most
    assert [run.order for run in runs] == [sum(r.count for r in runs[:i]) for i in range(len(runs))]


def test_replays_are_ordered_before_and_after_a_free(recorder: Recorder) -> None:
    block = recorder.blocks.refer(allocation())
    graph = captured(recorder, block)
    for _ in range(3):
        recorder.replay(graph)
    recorder.freed(0, 4096, stack=recorder.stack([["a.py", 3, "f"]]))
    recorder.replay(graph)
    recorder.close("sealed")
    records = lines(recorder)
    assert [r["k"] for r in records] == [
        "hello",
        "block",
        "capture",
        "replays",
        "stack",
        "event",
        "replays",
        "footer",
    ] or [r["k"] for r in records] == ["hello", "block", "capture", "stack", "replays", "event", "replays", "footer"]
    runs = [r for r in records if r["k"] == "replays"]
    free = next(r for r in records if r["k"] == "event")
    assert [run["count"] for run in runs] == [3, 1]
    assert runs[0]["to"] < free["o"] < runs[1]["o"]
    assert records[-1] == records[-1] | {
        "captures": 1,
        "replays": 4,
        "inspections": 1,
        "problems": 0,
        "reason": "sealed",
    }


def test_orders_are_a_counter_without_gaps(recorder: Recorder) -> None:
    block = recorder.blocks.refer(allocation())
    graph = captured(recorder, block)
    for _ in range(7):
        recorder.replay(graph)
    recorder.graph_event(graph, "reset")
    recorder.close("exit")
    seen: list[int] = []
    for record in lines(recorder):
        if record["k"] == "capture":
            seen += [record["began"], record["ended"]]
        elif record["k"] == "replays":
            seen += range(record["o"], record["to"] + 1)
        elif "o" in record:
            seen.append(record["o"])
    assert seen == list(range(len(seen)))


def test_batched_events_fall_between_the_replays_they_happened_between(recorder: Recorder) -> None:
    block = recorder.blocks.refer(allocation())
    graph = captured(recorder, block)
    recorder.replay(graph)
    recorder.replay(graph)

    def drain() -> None:
        recorder.replay(graph)  # logged while the events are fetched: stays after them
        recorder.order_replays(1)
        recorder.freed(0, 4096)

    recorder.set_drain(drain)
    recorder.drain()
    recorder.set_drain(None)
    recorder.close("sealed")
    kinds = [(r["k"], r.get("count")) for r in lines(recorder) if r["k"] in ("replays", "event")]
    assert kinds == [("replays", 1), ("event", None), ("replays", 2)]


def test_the_same_address_handed_out_again_is_another_block(recorder: Recorder) -> None:
    first = recorder.blocks.refer(allocation())
    assert recorder.blocks.refer(allocation()) is first
    recorder.freed(0, 4096)
    second = recorder.blocks.refer(allocation())
    assert (second.id, second.generation) == (first.id + 1, 2)


def test_memory_laid_over_a_live_block_is_a_second_owner(recorder: Recorder) -> None:
    block = recorder.blocks.refer(allocation())
    recorder.allocated(0, 4096 - 512, 1024)
    recorder.close("exit")
    events = [r for r in lines(recorder) if r["k"] == "event"]
    assert [(e["e"], e["over"]) for e in events] == [("alloc", [block.id])]


def test_a_new_owner_is_reported_once_for_each_capture(recorder: Recorder) -> None:
    block = recorder.blocks.refer(allocation(size=4096))
    recorder.freed(0, 4096)
    for _ in range(50):
        recorder.allocated(0, 4096 + 1024, 512)
    recorder.allocated(0, 4096 + 1024, 512, during=9)
    recorder.allocated(0, 1 << 19, 512)
    recorder.close("exit")
    allocs = [r for r in lines(recorder) if r["k"] == "event" and r["e"] == "alloc"]
    assert [(a["over"], a["during"]) for a in allocs] == [([block.id], None), ([block.id], 9)]


def test_events_elsewhere_leave_no_trace(recorder: Recorder) -> None:
    recorder.blocks.refer(allocation())
    before = len(lines(recorder))
    for address in range(1 << 16, 1 << 18, 512):
        recorder.allocated(0, address, 512)
        recorder.freed(0, address)
    assert len(lines(recorder)) == before


def test_a_block_freed_inside_its_own_capture_is_not_watched_on(recorder: Recorder) -> None:
    recorder.blocks.refer(allocation(during=0))
    recorder.freed(0, 4096, watch=False)
    recorder.allocated(0, 4096, 512, during=1)
    recorder.close("exit")
    assert [r["e"] for r in lines(recorder) if r["k"] == "event"] == ["free"]


def test_memory_that_left_is_told_with_its_blocks(recorder: Recorder) -> None:
    live = recorder.blocks.refer(allocation(4096))
    dead = recorder.blocks.refer(allocation(8192))
    recorder.freed(0, 8192)
    recorder.segment_gone(0, 0, 1 << 20)
    recorder.pool_gone([0, 0])
    recorder.close("exit")
    events = [r for r in lines(recorder) if r["k"] == "event"]
    assert [(e["e"], e.get("blocks")) for e in events[1:]] == [
        ("segment-gone", [live.id, dead.id]),
        ("pool-gone", [live.id, dead.id]),
    ]


def test_a_dangling_block_is_freed_right_after_its_capture(recorder: Recorder) -> None:
    block = recorder.blocks.refer_dead(allocation())
    graph = captured(recorder, block, dangling=[(block, None)])
    recorder.replay(graph)
    recorder.close("exit")
    assert [r["k"] for r in lines(recorder)] == ["hello", "block", "capture", "event", "replays", "footer"]


def test_problems_are_bounded_and_counted(recorder: Recorder) -> None:
    for i in range(1000):
        recorder.problem("nodes", ValueError(str(i)))
    recorder.close("exit")
    records = lines(recorder)
    assert records[-1]["problems"] == 1000
    assert 1 <= sum(r["k"] == "problem" for r in records) < 100


def test_nothing_is_written_after_the_seal(recorder: Recorder) -> None:
    recorder.close("sealed")
    before = lines(recorder)
    recorder.replay(0)
    recorder.role("scheduler")
    recorder.problem("late", "x")
    recorder.close("exit")
    assert lines(recorder) == before


def test_a_worker_with_nothing_to_say_leaves_no_file(tmp_path: Path) -> None:
    recorder = Recorder(ProbeConfig(folder=tmp_path, receipts=tmp_path / "receipts", run="r", launch="l"))
    recorder.close("exit")
    assert not (tmp_path / "receipts").exists()


def test_a_torn_last_line_leaves_the_rest_readable(recorder: Recorder) -> None:
    captured(recorder, recorder.blocks.refer(allocation()))
    path = recorder.config.receipts / f"{recorder.worker}.jsonl"
    whole = lines(recorder)
    path.write_bytes(path.read_bytes()[:-5])
    kept = path.read_text().splitlines()[:-1]
    assert [json.loads(line) for line in kept] == whole[:-1]


def test_held_lines_keep_their_chain_and_reach_the_file_together(recorder: Recorder) -> None:
    path = recorder.config.receipts / f"{recorder.worker}.jsonl"
    before = path.stat().st_size
    with recorder.held():
        recorder.blocks.refer(allocation())
        recorder.role("scheduler")
        assert path.stat().st_size == before
    assert [r["k"] for r in lines(recorder)] == ["hello", "block", "role"]


def test_five_million_replays_stay_small(recorder: Recorder) -> None:
    graphs = [captured(recorder, recorder.blocks.refer(allocation(4096 * i))) for i in range(1, 5)]
    for _ in range(25):
        for _ in range(50_000):
            for graph in graphs:
                recorder.replay(graph)
        recorder.drain()
        assert recorder.replays_logged == recorder.replays_ordered
    recorder.freed(0, 4096 * 2)
    recorder.replay(graphs[1])
    recorder.close("exit")
    records = lines(recorder)
    runs = [r for r in records if r["k"] == "replays"]
    assert sum(r["count"] for r in runs) == records[-1]["replays"] == 5_000_001
    assert (recorder.config.receipts / f"{recorder.worker}.jsonl").stat().st_size < 20_000
    free = next(r for r in records if r["k"] == "event")
    assert runs[-2]["to"] < free["o"] < runs[-1]["o"]
