"""The inspector tells a recorder what happened, puts back what it replaced, and changes nothing that is computed."""

from __future__ import annotations

import json
from pathlib import Path

import emugraph as torch
from emugraph import inspector, runtime
from emugraph.graphs import CUDAGraph
from emugraph.history import History
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import Capture, Event, read_receipts
from sgl_graph.runtime.probe.config import ProbeConfig
from sgl_graph.runtime.probe.recorder import Recorder

N = 1 << 16


def recorder(folder: Path, *, poison: bool = False, count_only: bool = False) -> Recorder:
    """A recorder that writes below `folder`."""
    config = ProbeConfig(
        folder,
        folder / "receipts",
        "run",
        "program",
        inspector="emugraph.inspector",
        poison=poison,
        count_only=count_only,
    )
    return Recorder(config)


def work() -> list[float]:
    """A small program: capture, replay, free, replay."""
    x = torch.full((N,), 3.0)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = (x * 2 + 1) * x
    out = []
    for value in (1.0, 2.5):
        x.fill_(value)
        g.replay()
        out.append(y[7].item())
    del x
    g.replay()
    return [*out, y[7].item()]


def test_tells_captures_replays_and_frees(tmp_path: Path) -> None:
    """References by kind; the freed input makes the verdict FAIL."""
    told = recorder(tmp_path)
    handle = inspector.install(told)
    try:
        work()
    finally:
        told.close("sealed")
        handle.remove()
    (path,) = (tmp_path / "receipts").glob("*.jsonl")
    lines = list(read_receipts(path))
    (capture,) = [line for line in lines if isinstance(line, Capture)]
    assert {ref.kind for ref in capture.refs} == {"external", "chain"}
    assert capture.names == ["mul", "add"]
    assert sum(isinstance(line, Event) and line.e == "free" for line in lines) >= 2
    result = lifetime_verdict([read_receipts(path)])
    assert result.value == "FAIL"
    assert result.workers[0].replays == 3


def test_changes_no_number(tmp_path: Path) -> None:
    """Outputs are bitwise equal with and without."""
    without = work()
    told = recorder(tmp_path)
    handle = inspector.install(told)
    try:
        assert work() == without
    finally:
        told.close("sealed")
        handle.remove()


def test_puts_back_what_it_replaced(tmp_path: Path) -> None:
    """Every hook is gone after `remove`."""
    places = [(CUDAGraph, n) for n in ("capture_begin", "capture_end", "replay", "reset")]
    places += [
        (History, "record"),
        (runtime, "graphLaunch"),
        (runtime, "graphExecUpdate"),
        (runtime, "graphInstantiate"),
    ]  # type: ignore[list-item]
    before = [getattr(owner, name) for owner, name in places]
    handle = inspector.install(recorder(tmp_path))
    assert all(getattr(owner, name) is not old for (owner, name), old in zip(places, before, strict=True))
    handle.remove()
    assert [getattr(owner, name) for owner, name in places] == before
    assert torch.device.allocator.history.listeners == []


class Runner:
    """Captures under a method whose frame holds the key."""

    def __init__(self) -> None:
        self.x = torch.full((8,), 3.0)
        self.graphs: dict[int, CUDAGraph] = {}

    def capture_one(self, size: int) -> None:
        """One bucket."""
        self.graphs[size] = CUDAGraph()
        with torch.cuda.graph(self.graphs[size]):
            self.y = self.x[:size] * 2


def test_labels_are_read_by_the_map(tmp_path: Path) -> None:
    """The map's expression over the capturing frame."""
    qualname = "test_inspector:Runner.capture_one"
    site = {"id": "s1", "file": "emulated/test_inspector.py", "line": 1, "qualname": qualname, "role": "capture"}
    path = {"id": "p1", "runner": "target", "family": "decode", "sites": ["s1"], "label": {"expression": "size"}}
    (tmp_path / "map.json").write_text(json.dumps({"sites": [site], "paths": [path]}), "utf-8")
    told = recorder(tmp_path)
    handle = inspector.install(told)
    try:
        runner = Runner()
        for size in (8, 4):
            runner.capture_one(size)
            runner.graphs[size].replay()
    finally:
        told.close("sealed")
        handle.remove()
    (file,) = (tmp_path / "receipts").glob("*.jsonl")
    captures = [line for line in read_receipts(file) if isinstance(line, Capture)]
    assert [(c.label, c.key, c.path) for c in captures] == [("target:decode@8", 8, "p1"), ("target:decode@4", 4, "p1")]


def test_poison_fills_idle_pool_memory(tmp_path: Path) -> None:
    """What the graph never writes and nothing registered lies over holds the pattern after a replay."""
    told = recorder(tmp_path, poison=True)
    handle = inspector.install(told)
    try:
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            never_written = torch.empty(N)
            y = never_written + 0
            del never_written
        g.replay()
        assert set(y.numpy().view("uint8")) == {0xA5}
    finally:
        told.close("sealed")
        handle.remove()


def test_counting_only_inspects_nothing(tmp_path: Path) -> None:
    """Captures and replays are seen; the lifetime verdict of such receipts is never PASS."""
    told = recorder(tmp_path, count_only=True)
    handle = inspector.install(told)
    try:
        work()
    finally:
        told.close("sealed")
        handle.remove()
    (file,) = (tmp_path / "receipts").glob("*.jsonl")
    result = lifetime_verdict([read_receipts(file)])
    assert (result.value, result.workers[0].captures, result.workers[0].replays) == ("INCOMPLETE", 1, 3)


def test_a_failing_recorder_does_not_reach_the_program(tmp_path: Path) -> None:
    """What breaks inside becomes a problem record, so the verdict is INCOMPLETE."""
    told = recorder(tmp_path)
    handle = inspector.install(told)

    def broken(*_: object, **__: object) -> None:
        raise ValueError("disk")

    told.end_capture = broken  # type: ignore[assignment, method-assign]
    try:
        x = torch.full((8,), 3.0)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = x + 1
        g.replay()
        assert y.tolist() == [4.0] * 8
    finally:
        told.close("sealed")
        handle.remove()
    (path,) = (tmp_path / "receipts").glob("*.jsonl")
    assert lifetime_verdict([read_receipts(path)]).value == "INCOMPLETE"
