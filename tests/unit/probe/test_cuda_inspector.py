"""The CUDA inspector against a fake torch and driver: what is seen, in which order, and what is restored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.runtime.probe.config import ProbeConfig
from sgl_graph.runtime.probe.imports import PostImport
from sgl_graph.runtime.probe.inspectors import cuda_nodes
from sgl_graph.runtime.probe.inspectors.cuda import CudaInspector
from sgl_graph.runtime.probe.recorder import Recorder

from tests.fakes.fake_cuda import FakeTorch, Node, kernel, packed

Run = Callable[..., "Bench"]


class Bench:
    """A fake torch under the inspector."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any] | None = None, **torch: Any
    ) -> None:
        self.torch = FakeTorch(**torch)
        settings = dict(settings or {})
        if "map" in settings:
            (folder / "map.json").write_text(json.dumps(settings.pop("map")))
        config = ProbeConfig(folder=folder, receipts=folder / "receipts", run="r", launch="program", **settings)
        self.recorder = Recorder(config)
        monkeypatch.setattr(cuda_nodes, "plain_arguments", self.torch.driver.arguments)
        self.inspector = CudaInspector(self.recorder, self.torch, self.torch.driver)  # type: ignore[arg-type]
        self.inspector.install(PostImport())
        self.memory = self.torch.allocator

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        self.recorder.close("exit")
        path = self.recorder.config.receipts / f"{self.recorder.worker}.jsonl"
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert not [r for r in found if r["k"] == "problem"]
        return [r for r in found if kind in (None, r["k"])]

    def timeline(self) -> list[str]:
        """Replays and events in order, as words."""
        words = []
        for r in self.records():
            if r["k"] == "replays":
                words += [f"replay {r['cycle'][i % len(r['cycle'])]}" for i in range(r["count"])]
            elif r["k"] == "event":
                words.append(f"{r['e']} {r.get('block') if r['e'] == 'free' else r.get('over', r.get('blocks'))}")
            elif r["k"] == "graph":
                words.append(f"{r['e']} {r['graph']}")
        return words


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    made: list[Bench] = []

    def make(**torch: Any) -> Bench:
        made.append(Bench(tmp_path, monkeypatch, **torch))
        return made[-1]

    yield make
    for b in made:
        b.inspector.remove()


@pytest.mark.parametrize("own_hooks", [False, True, "bare", "more", "refused"])
@pytest.mark.parametrize("markers", [False, True])
def test_a_free_falls_between_the_replays_around_it(bench: Run, own_hooks: bool | str, markers: bool) -> None:
    b = bench(own_hooks=own_hooks, markers=markers)
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x, b.memory.malloc(512))])
    graph.replay()
    graph.replay()
    if not markers:
        time.sleep(0.002)
    b.memory.free(x, line=77)
    if not markers:
        time.sleep(0.002)
    graph.replay()
    if not markers:
        time.sleep(0.002)
    other = b.memory.malloc(512, line=88)
    assert other == x
    assert b.timeline() == ["replay 0", "replay 0", "free 0", "replay 0", "alloc [0]"]
    assert graph.ran == 3
    stacks = {s["id"]: s["frames"] for s in b.records("stack")}
    events = b.records("event")
    assert [stacks[e["stack"]][0][1] for e in events] == [77, 88]
    assert {r["e"] for r in b.records("recorder")} == {"on"}


def test_close_times_without_markers_are_a_tie(bench: Run) -> None:
    b = bench(markers=False)
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    b.memory.free(x)
    graph.replay()
    assert "tie" in [r["e"] for r in b.records("recorder")]


def test_references_are_told_apart(bench: Run) -> None:
    b = bench()
    weight = b.memory.malloc(512)
    b.torch.driver.kinds = {0x7EEE00000000: "device", 0x7DDD00000000: "pinned"}
    pool = b.torch.new_pool()
    kept: list[int] = []

    def first() -> list[Node]:
        kept.append(b.memory.malloc(512))
        return [kernel(weight, kept[0])]

    def second() -> list[Node]:
        temporary = b.memory.malloc(1024)
        b.memory.free(temporary)
        out = b.memory.malloc(2048)
        return [
            kernel(kept[0], temporary, out, name="mix"),
            packed(5, weight, 0x7EEE00000000),
            Node("memcpy", sides=[("src", 0x7DDD00000000), ("dst", out)]),
            Node("memset", sides=[("dst", out)]),
            Node("host"),
            Node("empty"),
        ]

    b.torch.capture(first, pool=pool)
    b.torch.capture(second, pool=pool)
    capture = b.records("capture")[1]
    kinds = [(r[1], r[2], r[3], r[4], r[5]) for r in capture["refs"]]
    assert kinds == [
        (0, 0, 0, "param", "pool"),
        (0, 1, 0, "param", "chain"),
        (0, 2, 0, "param", "chain"),
        (1, 0, 8, "param", "external"),
        (1, 0, 16, "param", "unowned"),
        (2, "src", 0, "memcpy", "pinned"),
        (2, "dst", 0, "memcpy", "chain"),
        (3, "dst", 0, "memset", "chain"),
    ]
    assert capture["unowned"] == [{"kind": "device", "name": "kernel", "count": 1}]
    assert capture["complete"] and capture["nodes"]["kernel"] == 2
    assert capture["pool"] == list(pool)


def test_a_block_freed_and_taken_inside_the_capture_is_external_and_dangling(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)

    def body() -> list[Node]:
        b.memory.pool = (0, 0)
        b.memory.free(x, line=5)
        return [kernel(x), packed(x, 1)]

    graph = b.torch.capture(body)
    graph.replay()
    assert b.timeline() == ["free 0", "replay 0"]
    assert {r[5] for r in b.records("capture")[0]["refs"]} == {"external"}


def test_a_stale_word_of_a_struct_is_listed_and_no_reference(bench: Run) -> None:
    b = bench()
    gone, x = b.memory.malloc(512), b.memory.malloc(512)
    b.memory.free(gone)
    b.torch.capture(lambda: [packed(x, gone, *[0] * 20)])
    capture = b.records("capture")[0]
    assert [r[3] for r in capture["refs"]] == [0]
    assert capture["unowned"] == [{"kind": "stale-word", "name": "kernel", "count": 1}]


def test_a_plain_parameter_to_free_memory_is_a_reference(bench: Run) -> None:
    b = bench()
    gone = b.memory.malloc(512)
    b.memory.free(gone)
    graph = b.torch.capture(lambda: [kernel(gone)])
    graph.replay()
    assert b.timeline() == ["free 0", "replay 0"]


def test_memory_of_the_segment_before_that_this_one_gives_back_is_that_segments(bench: Run) -> None:
    """Segments hand a tensor over that no node of the first one touches; the next bucket gets the same address."""
    b = bench()
    weight = b.memory.malloc(512)
    pool = b.torch.new_pool()
    held: list[int] = []

    def first() -> list[Node]:
        held.append(b.memory.malloc(512, line=3))
        return [kernel(weight)]

    def second() -> list[Node]:
        handed_over = held.pop()
        b.memory.free(handed_over, line=9)
        return [kernel(handed_over)]

    for _ in range(2):
        b.torch.capture(first, pool=pool)
        b.torch.capture(second, pool=pool)
    refs = [capture["refs"] for capture in b.records("capture")]
    assert refs[1][0][5] == refs[3][0][5] == "pool"
    blocks = {block["id"]: block for block in b.records("block")}
    one, two = blocks[refs[1][0][6]], blocks[refs[3][0][6]]
    assert (one["address"], one["generation"], one["during"]) == (two["address"], 1, 0)
    assert (two["generation"], two["during"]) == (2, 2)
    stacks = {stack["id"]: stack["frames"] for stack in b.records("stack")}
    assert stacks[two["allocated"]][0][1] == 3
    frees = [(e["block"], stacks[e["stack"]][0][1]) for e in b.records("event") if e["e"] == "free"]
    assert frees == [(one["id"], 9), (two["id"], 9)]


def test_a_small_array_of_addresses_is_used_whole(bench: Run) -> None:
    b = bench()
    gone, x = b.memory.malloc(512), b.memory.malloc(512)
    b.memory.free(gone)
    graph = b.torch.capture(lambda: [packed(x, gone)])
    graph.replay()
    assert b.timeline() == ["free 1", "replay 0"]


def test_an_unreadable_node_makes_the_capture_incomplete(bench: Run) -> None:
    b = bench()
    b.torch.capture(lambda: [kernel(b.memory.malloc(512), name="opaque"), Node("conditional")])
    capture = b.records("capture")[0]
    assert not capture["complete"]
    assert [u["type"] for u in capture["unread"]] == ["kernel", "conditional"]


def test_child_graphs_are_read(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    b.torch.driver.graphs[900] = [kernel(x)]
    b.torch.capture(lambda: [Node("graph", child=900)])
    assert [(r[4], r[5]) for r in b.records("capture")[0]["refs"]] == [("child", "external")]


def test_a_clone_of_a_captured_graph_is_that_graph(bench: Run) -> None:
    """Its temporaries lie in memory that nobody owns by then, and are no dangling references of the parent."""
    b = bench()
    x = b.memory.malloc(512)

    def body() -> list[Node]:
        t = b.memory.malloc(512)
        h = b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(x, t), kernel(t, h)]

    inner = b.torch.capture(body)
    b.torch.driver.graphs[900] = list(b.torch.driver.graphs[inner.raw])
    outer = b.torch.capture(lambda: [kernel(x), Node("graph", child=900)])
    outer.replay()
    b.memory.free(x)
    outer.replay()
    captures = b.records("capture")
    assert captures[1]["embeds"] == [[2, captures[0]["graph"]]]
    assert [r[5] for r in captures[1]["refs"]] == ["external"]
    assert captures[1]["nodes"] == {"kernel": 3, "graph": 1}
    path = b.recorder.config.receipts / f"{b.recorder.worker}.jsonl"
    result = lifetime_verdict([read_receipts(path)])
    assert (result.value, {f.code for f in result.findings}) == ("FAIL", {"freed-memory"})


def test_a_capture_takes_one_snapshot_of_the_segments(bench: Run) -> None:
    """However many temporaries it has: a snapshot of a large heap takes milliseconds."""
    b = bench()
    taken: list[object] = []
    snapshot = b.torch._C._cuda_memorySnapshot
    b.torch._C._cuda_memorySnapshot = lambda pool: taken.append(pool) or snapshot(pool)
    x = b.memory.malloc(512)

    def body() -> list[Node]:
        temporaries = [b.memory.malloc(512) for _ in range(10)]
        for address in temporaries:
            b.memory.free(address)
        return [kernel(x, address) for address in temporaries]

    b.torch.capture(body)
    assert len([pool for pool in taken if pool == (0, 0, False)]) == 1
    assert len(b.records("capture")[0]["refs"]) == 20


def test_a_changed_clone_is_a_graph_of_its_own(bench: Run) -> None:
    b = bench()
    x, y = b.memory.malloc(512), b.memory.malloc(512)
    b.torch.capture(lambda: [kernel(x, y)])
    b.torch.driver.graphs[900] = [kernel(y, x)]
    b.torch.capture(lambda: [Node("graph", child=900)])
    capture = b.records("capture")[1]
    assert "embeds" not in capture
    assert [r[4] for r in capture["refs"]] == ["child", "child"]


@pytest.mark.parametrize("how", ["environment", "backend", "switched"])
def test_memory_without_owners_makes_no_pass(bench: Run, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "environment":
        monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1")
    b = bench(backend="cudaMallocAsync" if how == "backend" else "native")
    x = b.memory.malloc(512)
    if how == "switched":
        b.torch._C._cuda_cudaCachingAllocator_enable(False)
    b.torch.capture(lambda: [kernel(x)]).replay()
    b.recorder.close("exit")
    result = lifetime_verdict([read_receipts(b.recorder.config.receipts / f"{b.recorder.worker}.jsonl")])
    assert result.value == "INCOMPLETE"
    assert "owner" in result.reason


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
            "file": "tests/unit/probe/test_cuda_inspector.py",
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
