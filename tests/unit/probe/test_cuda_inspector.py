"""The CUDA inspector against a fake torch and driver: what a capture refers to, and what is tied to which block."""

from __future__ import annotations

import time

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts

from tests.fakes.fake_cuda import Node, kernel, packed
from tests.unit.probe.bench import Run


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


@pytest.mark.parametrize("inside", [False, True])
def test_memory_that_waits_for_a_stream_is_freed(bench: Run, inside: bool) -> None:
    """Its owner gave it back before, or inside, the capture that still names it; nobody else can get it yet."""
    b = bench()
    x = b.memory.malloc(512)
    if not inside:
        b.memory.free(x, line=77, waits=True)

    def body() -> list[Node]:
        if inside:
            b.memory.free(x, line=77, waits=True)
        return [kernel(x)]

    b.torch.capture(body).replay()
    assert b.verdict() == "FAIL"


def test_a_larger_allocation_before_at_the_same_address_counts_as_well(bench: Run) -> None:
    """A word that names an address of a capture's memory may mean whatever lay there; the larger one reaches further."""
    b = bench()
    pool = b.torch.new_pool()

    def body() -> list[Node]:
        large = b.memory.malloc(1024)
        b.memory.free(large)
        small = b.memory.malloc(512)
        assert small == large
        return [kernel(large), kernel(small)]

    graph = b.torch.capture(body, pool=pool)
    assert graph.pool() == pool
    b.memory.pool = pool
    b.memory.malloc(512)  # what is left of the larger one
    b.memory.pool = (0, 0)
    graph.replay()
    assert b.verdict() == "INCONCLUSIVE"


def test_an_owner_of_a_dropped_output_is_followed_to_its_end(bench: Run) -> None:
    b = bench()
    pool, kept = b.torch.new_pool(), []

    def body() -> list[Node]:
        kept.append(b.memory.malloc(512))
        return [kernel(kept[0])]

    graph = b.torch.capture(body, pool=pool)
    b.memory.free(kept[0])
    b.memory.pool = pool
    y = b.memory.malloc(512)
    b.memory.pool = (0, 0)
    assert y == kept[0]
    b.recorder.drain()
    b.memory.free(y)
    graph.replay()
    assert b.verdict() == "PASS"
