"""The inspector tells a recorder what happened, puts back what it replaced, and changes nothing that is computed."""

from __future__ import annotations

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


def recorder(folder: Path) -> Recorder:
    """A recorder that writes below `folder`."""
    return Recorder(ProbeConfig(folder, folder / "receipts", "run", "program", inspector="emugraph.inspector"))


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
