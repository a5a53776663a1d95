"""Whose memory a capture uses: several captures at once, torch.compile's own, host memory, words that the driver writes."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest
from sgl_graph.runtime.probe.inspectors import cuda_trees
from sgl_graph.runtime.probe.inspectors.cuda_driver import Driver, DriverError
from sgl_graph.runtime.probe.inspectors.cuda_segments import MemoryMap
from sgl_graph.runtime.probe.recorder import Capture

from tests.fakes.fake_cuda import Node, kernel
from tests.unit.probe.bench import Bench, Run

TREES = "/env/torch/_inductor/cudagraph_trees.py"


def segment(address: int, pool: tuple[int, int]) -> dict[str, Any]:
    block = {"address": address, "size": 512, "state": "active_allocated"}
    return {"address": address, "total_size": 512, "segment_pool_id": pool, "device": 0, "blocks": [block]}


@pytest.mark.parametrize("together", [False, True])
def test_captures_at_the_same_time_find_their_own_pools(bench: Run, together: bool) -> None:
    b = bench()
    watch = b.inspector._watch
    assert watch is not None
    for graph, stream in ((0, 11), (1, 12)):
        watch.open(Capture(graph, 0), 0, None, stream)
    entries = [{"action": "alloc", "addr": a, "size": 512, "stream": s} for a, s in ((2048, 12), (1024, 11))]
    memory = MemoryMap([segment(1024, (5, 0)), segment(2048, (6, 0))])
    for batch in [entries] if together else [entries[:1], entries[1:]]:
        watch._find_pools([batch], memory)
    assert [watch.pool_of(graph) for graph in (0, 1)] == [(5, 0), (6, 0)]


def test_a_pool_that_was_mistaken_makes_no_fault(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench()
    x = b.memory.malloc(512)

    def body() -> list[Node]:
        t = b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(x, t)]

    monkeypatch.setattr(type(b.inspector._watch), "pool_of", lambda self, graph: (9, 9))
    b.torch.capture(body).replay()
    assert b.verdict() == "INCOMPLETE"


def compiled(b: Bench, body: Any, pool: tuple[int, int]) -> Any:
    """Capture as torch.compile does."""
    scope: dict[str, Any] = {"capture": lambda: b.torch.capture(body, pool=pool)}
    exec(compile("def record():\n    return capture()", TREES, "exec"), scope)  # noqa: S102
    return scope["record"]()


def in_pool(b: Bench, pool: tuple[int, int]) -> int:
    """Memory that the trees take from their pool outside captures."""
    b.memory.pool, b.memory.file = pool, TREES
    address = b.memory.malloc(512)
    b.memory.pool, b.memory.file = (0, 0), "/srv/program.py"
    return address


@pytest.mark.parametrize("by_trees", [True, False])
def test_torch_compile_copies_inputs_to_places_that_nobody_owns(bench: Run, by_trees: bool) -> None:
    b = bench()
    pool, weight = b.torch.new_pool(), b.memory.malloc(512)
    given = in_pool(b, pool)

    def body() -> list[Node]:
        out = b.memory.malloc(512)
        b.memory.free(given)  # the compiled function lets go of its input after the last use
        return [kernel(given, weight, out)]

    graph = compiled(b, body, pool) if by_trees else b.torch.capture(body, pool=pool)
    graph.replay()
    other = in_pool(b, pool)  # another branch's input
    graph.replay()
    assert other
    if by_trees:
        assert b.records("capture")[0]["unowned"][0]["kind"] == "arranged"
    assert b.verdict() == ("PASS" if by_trees else "FAIL")


def test_memory_outside_the_trees_pool_is_judged_as_ever(bench: Run) -> None:
    b = bench()
    weight = b.memory.malloc(512)
    graph = compiled(b, lambda: [kernel(weight, b.memory.malloc(512))], b.torch.new_pool())
    graph.replay()
    b.memory.free(weight)
    graph.replay()
    assert b.verdict() == "FAIL"


def test_outputs_of_compiled_functions_are_read_by_nobody_once_let_go(bench: Run) -> None:
    """The graph of another shape has the memory; torch lets go of its output before the first graph runs again."""
    b = bench()
    pool, outputs = b.torch.new_pool(), [0, 0]

    def body(at: int) -> Any:
        def inner() -> list[Node]:
            outputs[at] = b.memory.malloc(512)
            return [kernel(outputs[at])]

        return inner

    first = compiled(b, body(0), pool)
    first.replay()
    b.memory.free(outputs[0])
    compiled(b, body(1), pool).replay()
    assert outputs[0] == outputs[1]
    b.memory.free(outputs[1])
    first.replay()
    assert b.verdict() == "PASS"


def test_stacks_of_the_trees() -> None:
    assert cuda_trees.arranged([{"filename": "/srv/a.py"}, {"filename": "C:\\torch\\_inductor\\cudagraph_trees.py"}])
    assert not cuda_trees.arranged([{"filename": "/srv/a.py"}, {}])
    assert not cuda_trees.captures(None)


def test_host_memory_that_is_not_locked_is_listed(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    copy = Node("memcpy", sides=[("src", 0x7ABC00000000), ("dst", x)])
    b.torch.capture(lambda: [copy, kernel(x, 0x7ABC00000000)]).replay()
    assert b.records("capture")[0]["unowned"] == [{"kind": "host", "name": "memcpy", "count": 1}]


def test_a_word_that_the_driver_writes_is_a_reference(bench: Run) -> None:
    b = bench()
    flag = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [Node("batch-mem-op", sides=[("0", flag)])])
    graph.replay()
    b.memory.free(flag)
    graph.replay()
    assert b.verdict() == "FAIL"


@pytest.mark.parametrize("kind", [2, 4, 3, 8, 77])
def test_operations_on_words_are_read_from_the_node(kind: int) -> None:
    operations = (ctypes.c_uint64 * 12)()
    operations[0], operations[1], operations[2] = 6, 0xDEAD, 0xDEAD  # a barrier has no address
    operations[6], operations[7], operations[8] = kind, 0x7F1234, 0x7F5678

    def read(node: Any, out: Any) -> int:
        struct = out._obj
        struct.count, struct.operations = 2, ctypes.addressof(operations)
        return 0

    driver = Driver(SimpleNamespace(cuGraphBatchMemOpNodeGetParams=read))  # type: ignore[arg-type]
    if kind == 77:
        with pytest.raises(DriverError, match="77"):
            driver.operations(1)
    else:
        assert driver.operations(1) == {2: [0x7F1234], 4: [0x7F1234], 3: [], 8: [0x7F5678]}[kind]


def test_free_memory_of_the_trees_is_not_overwritten(bench: Run) -> None:
    """An input lies there when the replay begins."""
    b = bench(settings={"poison": True})
    pool = b.torch.new_pool()
    given = in_pool(b, pool)

    def body() -> list[Node]:
        out = b.memory.malloc(512)
        b.memory.free(given)
        return [kernel(given, out)]

    compiled(b, body, pool).replay()
    assert b.torch.driver.filled == []
    b.torch.capture(lambda: [kernel(b.memory.malloc(512))]).replay()
    assert b.torch.driver.filled != []
