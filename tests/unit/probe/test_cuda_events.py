"""The CUDA inspector against a fake torch and driver: what happens to graphs, in which order, and what is restored."""

from __future__ import annotations

import time
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.fakes.fake_cuda import Node, kernel
from tests.unit.probe.bench import Bench, Run


def test_a_failed_capture_is_abandoned(bench: Run) -> None:
    b = bench()
    with pytest.raises(RuntimeError, match="invalidated"):
        b.torch.capture(lambda: [Node("invalid")])
    assert b.timeline() == ["abandoned 0"]
    assert not b.records("capture")


def test_reset_recapture_and_destruction_are_told(bench: Run) -> None:
    b = bench()
    graph = b.torch.capture(lambda: [kernel()])
    graph.reset()
    b.torch.capture(lambda: [kernel()], graph=graph)
    graph.replay()
    del graph
    assert b.timeline()[:2] == ["reset 0", "replay 1"]
    assert sorted(b.timeline()[2:]) == ["destroyed 0", "destroyed 1"]


def test_recording_switched_by_the_program_is_taken_up_without_a_loss(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    b.torch._C._cuda_record_memory_history(None, None, "python", 1, False, False, False, [])
    b.memory.free(x)
    graph.replay()
    assert b.timeline() == ["free 0", "replay 0"]
    assert [r["e"] for r in b.records("recorder")] == ["on", "on"]


def test_lost_events_are_a_gap(bench: Run) -> None:
    b = bench()
    b.memory.trace.clear()
    x = b.memory.malloc(512)
    b.memory.trace.clear()
    b.torch.capture(lambda: [kernel(x)])
    assert "gap" in [r["e"] for r in b.records("recorder")]


def test_events_between_reading_and_emptying_are_missed_by_the_next_fetch_only(bench: Run) -> None:
    b = bench()
    switch = b.inspector._watch.trace._switch  # type: ignore[union-attr]

    def slip(*arguments: Any) -> None:
        b.memory.malloc(512)  # another thread without the interpreter lock: after the snapshot, before the emptying
        switch(*arguments)

    b.inspector._watch.trace._switch = slip  # type: ignore[union-attr]
    b.recorder.drain()
    b.inspector._watch.trace._switch = switch  # type: ignore[union-attr]
    b.recorder.close("exit")
    assert [r["detail"] for r in b.records("recorder") if r["e"] == "gap"] == [
        "device 0: 1 allocator events are missing"
    ]


def test_counters_reset_by_the_program_are_no_gap(bench: Run) -> None:
    b = bench()
    b.memory.malloc(512)
    b.recorder.drain()
    b.memory.allocated = b.memory.freed = 0
    b.memory.malloc(512)
    b.recorder.drain()
    b.memory.malloc(512)
    b.recorder.drain()
    assert [r["e"] for r in b.records("recorder")] == ["on"]


def test_raw_launches_follow_instantiation_and_update(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graphs = [b.torch.capture(lambda: [kernel(x)], b.torch.cuda.CUDAGraph(True)) for _ in range(2)]
    module = ModuleType("cuda.bindings.runtime")
    calls: list[str] = []
    module.cudaGraphInstantiate = lambda graph, flags: (0, graph + 500)  # type: ignore[attr-defined]
    module.cudaGraphExecUpdate = lambda executable, graph: (0, None)  # type: ignore[attr-defined]
    module.cudaGraphLaunch = lambda executable, stream: calls.append("launched")  # type: ignore[attr-defined]
    before = module.cudaGraphLaunch
    b.inspector.launches.patch(module)
    _, executable = module.cudaGraphInstantiate(graphs[0].raw_cuda_graph(), 0)
    module.cudaGraphLaunch(executable, 0)
    module.cudaGraphExecUpdate(executable, graphs[1].raw_cuda_graph())
    module.cudaGraphLaunch(executable, 0)
    module.cudaGraphLaunch(graphs[0].raw_cuda_graph_exec(), 0)
    assert len(calls) == 3
    replays = [w for w in b.timeline() if w.startswith("replay")]
    assert replays == ["replay 0", "replay 1", "replay 0"]
    b.inspector.remove()
    assert module.cudaGraphLaunch is before


def test_a_graph_made_by_hand_is_inspected_when_instantiated(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    b.torch.driver.graphs[800] = [kernel(x)]
    module = SimpleNamespace(cudaGraphInstantiate=lambda g, f: (0, 801), cudaGraphLaunch=lambda e, s: (0,))
    b.inspector.launches.patch(module)  # type: ignore[arg-type]
    module.cudaGraphInstantiate(800, 0)
    b.memory.free(x)
    module.cudaGraphLaunch(801, 0)
    assert b.timeline() == ["instantiated 0", "free 0", "replay 0"]


def test_a_replay_inside_a_capture_runs_nothing(bench: Run) -> None:
    b = bench()
    inner = b.torch.capture(lambda: [kernel()])

    def body() -> list[Node]:
        inner.replay()
        return [kernel()]

    outer = b.torch.capture(body)
    assert b.timeline() == [] and outer.ran == 0


def test_everything_is_restored(bench: Run) -> None:
    b = bench()
    cls = b.torch.cuda.CUDAGraph
    assert hasattr(cls.replay, "__wrapped__")
    b.inspector.remove()
    assert not [n for n in vars(cls) if hasattr(vars(cls)[n], "__wrapped__")]
    assert not hasattr(b.torch._C._cuda_record_memory_history, "__wrapped__")
    assert not b.memory.recording and b.memory.mark == ""


def test_a_failing_probe_never_reaches_the_program(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench()
    monkeypatch.setattr(b.inspector, "ending", lambda graph: 1 / 0)
    monkeypatch.setattr(b.recorder, "replay", lambda graph: 1 / 0)
    graph = b.torch.capture(lambda: [kernel()])
    graph.replay()
    assert graph.ran == 1
    b.recorder.close("exit")
    text = (b.recorder.config.receipts / f"{b.recorder.worker}.jsonl").read_text()
    assert text.count('"k":"problem"') == 2


def test_poison_fills_free_memory_of_the_pool_and_spares_what_was_handed_over(bench: Run) -> None:
    b = bench(settings={"poison": True})
    pool = b.torch.new_pool()
    handed: list[int] = []

    def first() -> list[Node]:
        handed.append(b.memory.malloc(4096))
        return [kernel(handed[0])]

    s1 = b.torch.capture(first, pool=pool)
    b.memory.pool = pool
    b.memory.free(handed[0])
    b.memory.pool = (0, 0)
    s1.replay()
    assert b.torch.driver.filled
    assert all(address >= handed[0] + 4096 for address, _ in b.torch.driver.filled)
    [poison] = b.records("poison")
    assert poison["graph"] == 0 and poison["bytes"] == sum(size for _, size in b.torch.driver.filled)


def test_a_launch_that_counts_inspects_nothing(bench: Run) -> None:
    b = bench(settings={"count_only": True})
    graph = b.torch.capture(lambda: [kernel(b.memory.malloc(512))])
    graph.replay()
    assert not b.memory.recording
    capture = b.records("capture")[0]
    assert not capture["complete"] and capture["refs"] == []
    assert b.timeline() == ["replay 0"]


class Runner:
    """Captures under a key that the map knows how to read."""

    def capture(self, b: Bench, bs: int) -> Any:
        return b.torch.capture(lambda: [kernel()])


MAP = {
    "sites": [
        {
            "id": "s",
            "file": "tests/unit/probe/test_cuda_events.py",
            "line": 1,
            "qualname": "tests:Runner.capture",
            "role": "capture",
        }
    ],
    "paths": [{"id": "p", "sites": ["s"], "name": "target:decode", "label": {"expression": "bs"}}],
}


def test_captures_carry_the_labels_of_the_map(bench: Run) -> None:
    b = bench(settings={"map": MAP})
    runner = Runner()
    kept = [runner.capture(b, size) for size in (8, 4)]
    captures = b.records("capture")
    assert [c["label"] for c in captures] == ["target:decode@8", "target:decode@4"]
    assert [(c["key"], c["path"], c["site"]["id"]) for c in captures] == [(8, "p", "s"), (4, "p", "s")]
    assert len(kept) == 2


def test_a_key_captured_again_outdates_its_graph_and_segments_or_siblings_do_not(bench: Run) -> None:
    b = bench(settings={"map": MAP})
    runner, sibling = Runner(), Runner()
    kept = [runner.capture(b, 4), runner.capture(b, 4)]  # two segments
    kept += [sibling.capture(b, 4), runner.capture(b, 8)]
    kept.append(runner.capture(b, 4))
    recaptured = [r for r in b.records("graph") if r["e"] == "recaptured"]
    assert [(r["graph"], r["by"]) for r in recaptured] == [(1, 4)]


def test_a_tie_concerns_only_graphs_that_reference_the_block(bench: Run) -> None:
    b = bench(markers=False)
    x, z = b.memory.malloc(512), b.memory.malloc(512)
    reader = b.torch.capture(lambda: [kernel(x)])
    other = b.torch.capture(lambda: [kernel(z)])
    time.sleep(0.002)
    b.memory.free(x)
    other.replay()
    b.recorder.drain()
    assert reader.ran == 0
    assert "tie" not in [r["e"] for r in b.records("recorder")]


def test_a_raw_handle_that_is_handed_out_again_is_another_graph(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel()], b.torch.cuda.CUDAGraph(True))
    handle = graph.raw_cuda_graph()
    module = SimpleNamespace(cudaGraphInstantiate=lambda g, f: (0, 801), cudaGraphLaunch=lambda e, s: (0,))
    b.inspector.launches.patch(module)  # type: ignore[arg-type]
    del graph
    b.torch.driver.graphs[handle] = [kernel(x)]
    module.cudaGraphInstantiate(handle, 0)
    module.cudaGraphLaunch(801, 0)
    assert [w for w in b.timeline() if w.startswith("replay")] == ["replay 1"]
    assert len(b.records("capture")) == 2


def test_an_edited_graph_is_no_longer_what_was_captured(bench: Run) -> None:
    b = bench()
    x, y = b.memory.malloc(512), b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)], b.torch.cuda.CUDAGraph(True))
    raw = graph.raw_cuda_graph()
    module = SimpleNamespace(cudaGraphKernelNodeSetParams=lambda node, parameters: (0,))
    b.inspector.launches.patch(module)  # type: ignore[arg-type]
    graph.replay()
    module.cudaGraphKernelNodeSetParams(b.torch.driver.nodes(raw)[0], None)
    b.torch.driver.graphs[raw] = [kernel(y)]
    b.memory.free(y)
    graph.replay()
    assert b.verdict() == "INCOMPLETE"


def test_the_driver_is_not_asked_about_a_graph_that_is_gone(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handle is dead: the driver may end the process on it."""
    b = bench()
    gone = b.torch.capture(lambda: [kernel(b.memory.malloc(512))], b.torch.cuda.CUDAGraph(True))
    kept = b.torch.capture(lambda: [kernel(b.memory.malloc(512))], b.torch.cuda.CUDAGraph(True))
    dead, raw = gone.raw_cuda_graph(), kept.raw_cuda_graph()
    del gone
    asked: list[int] = []
    nodes = b.torch.driver.nodes
    monkeypatch.setattr(b.torch.driver, "nodes", lambda handle: (asked.append(handle), nodes(handle))[1])
    module = SimpleNamespace(cudaGraphKernelNodeSetParams=lambda node, parameters: (0,))
    b.inspector.launches.patch(module)  # type: ignore[arg-type]
    module.cudaGraphKernelNodeSetParams(nodes(raw)[0], None)
    assert raw in asked and dead not in asked


def test_a_graph_made_by_hand_is_read_again_after_an_edit(bench: Run) -> None:
    b = bench()
    x, y = b.memory.malloc(512), b.memory.malloc(512)
    made = iter([801, 802])
    module = SimpleNamespace(
        cudaGraphInstantiate=lambda graph, flags: (0, next(made)),
        cudaGraphLaunch=lambda executable, stream: (0,),
        cudaGraphAddKernelNode=lambda graph, needs, count, parameters: (0, 1),
        cudaGraphExecKernelNodeSetParams=lambda executable, node, parameters: (0,),
    )
    b.inspector.launches.patch(module)  # type: ignore[arg-type]
    b.torch.driver.graphs[800] = [kernel(x)]
    module.cudaGraphInstantiate(800, 0)
    module.cudaGraphAddKernelNode(800, None, 0, None)
    b.torch.driver.graphs[800] = [kernel(x), kernel(y)]
    module.cudaGraphInstantiate(800, 0)
    b.memory.free(y)
    module.cudaGraphLaunch(801, 0)
    assert b.timeline() == ["instantiated 0", "instantiated 1", "free 1", "replay 0"]
    assert b.verdict() == "PASS"
    assert [len(c["refs"]) for c in b.records("capture")] == [1, 2]
