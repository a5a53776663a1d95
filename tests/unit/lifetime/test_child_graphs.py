"""Child graphs: a graph that runs another captured graph uses that one's memory too."""

from __future__ import annotations

import pytest

from tests.unit.lifetime.scene import Scene, handed_over


def embedding(*, inner_pool: tuple[int, int] = (0, 2)) -> tuple[Scene, int, int, int, int]:
    """A graph with a freed temporary and an output is the child graph of another one."""
    scene = Scene()
    inner, outer = scene.graph(), scene.graph()
    x = scene.block(4096)
    pool = list(inner_pool)
    t, h = scene.block(0, during=inner, pool=pool), scene.block(512, during=inner, pool=pool)
    scene.free(t)
    scene.capture(inner, [(x, "external"), (t, "chain"), (h, "chain")], pool=pool)
    y = scene.block(8192, during=outer)
    scene.capture(outer, [], embeds=[[0, inner]])
    scene.bodies[-1]["refs"] = [[1, 0, 0, 0, "param", "pool", h], [1, 0, 1, 0, "param", "chain", y]]
    return scene, inner, outer, x, h


def test_a_child_graph_keeps_its_own_memory() -> None:
    """Its temporaries are its own, though the parent has another pool, and so is an output that nobody keeps."""
    scene, _, outer, _, h = embedding()
    scene.replay(outer, times=5)
    scene.free(h)
    scene.replay(outer, times=5)
    assert scene.footer().verdict().value == "PASS"


def test_a_child_graph_is_judged_whenever_its_parent_runs() -> None:
    scene, inner, outer, x, _ = embedding()
    line = scene.stack("serve.py", 7)
    scene.replay(outer)
    scene.free(x, line)
    scene.replay(outer)
    result = scene.footer().verdict()
    assert result.value == "FAIL"
    assert result.findings[0].label == f"graph {inner}"
    assert result.findings[0].freed_at == ["serve.py:7 f"]


def test_a_child_graph_of_a_child_graph_is_judged() -> None:
    scene, _, middle, x, _ = embedding()
    outer = scene.graph()
    scene.capture(outer, [], embeds=[[3, middle]], pool=[0, 3])
    scene.replay(outer)
    assert scene.content()
    scene.free(x)
    scene.replay(outer)
    assert scene.footer().verdict().value == "FAIL"


def test_a_dropped_child_graph_leaves_its_memory_unheld() -> None:
    """The clone in the parent goes on; the pool that served it has no holder."""
    scene, inner, outer, _, _ = embedding()
    scene.graph_event(inner, "destroyed")
    scene.replay(outer)
    assert scene.footer().verdict().value == "INCONCLUSIVE"


def test_an_output_of_a_child_graph_that_another_capture_took_is_a_hazard() -> None:
    scene, _, outer, _, h = embedding()
    scene.free(h)
    other = scene.graph()
    u = scene.block(512, during=other, pool=[0, 2])
    scene.capture(other, [(u, "chain")], pool=[0, 2])
    scene.replay(outer)
    result = scene.footer().verdict()
    assert (result.value, result.findings[0].code) == ("INCONCLUSIVE", "output-reused")


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("outer second third outer second", "PASS"),
        ("outer third second", "FAIL"),
        ("third outer second", "INCONCLUSIVE"),
    ],
)
def test_a_parent_that_runs_its_child_produces_what_the_child_hands_over(order: str, expected: str) -> None:
    scene, graphs = handed_over()
    outer = scene.graph()
    scene.capture(outer, [], embeds=[[0, graphs[0]]], pool=[0, 5])
    named = {"outer": outer, "second": graphs[1], "third": graphs[2]}
    for name in order.split():
        scene.replay(named[name])
    assert scene.footer().verdict().value == expected


@pytest.mark.parametrize(("nodes", "expected"), [((0, 2), "INCONCLUSIVE"), ((2, 3), "PASS"), ((0, 0), "INCONCLUSIVE")])
def test_a_child_graph_over_memory_in_use_is_a_hazard(nodes: tuple[int, int], expected: str) -> None:
    """One pool: the parent's output lies where the child keeps a temporary, and is used before the child runs."""
    scene = Scene()
    inner, outer = scene.graph(), scene.graph()
    t = scene.block(0, during=inner)
    scene.free(t)
    scene.capture(inner, [(t, "chain")])
    y = scene.block(0, during=outer)
    scene.capture(outer, [], embeds=[[1, inner]])
    scene.bodies[-1]["refs"] = [[node, 0, 0, 0, "param", "chain", y] for node in nodes]
    scene.replay(outer)
    assert scene.footer().verdict().value == expected


def test_an_unknown_child_graph_is_incomplete() -> None:
    scene = Scene()
    outer = scene.graph()
    scene.capture(outer, [], embeds=[[0, 99]])
    scene.replay(outer)
    assert scene.footer().verdict().value == "INCOMPLETE"


def test_nested_child_graphs_end_somewhere() -> None:
    """Each graph holds the one before it twice: receipts may say so without costing a power of two."""
    scene = Scene()
    graph = scene.graph()
    scene.capture(graph, [])
    for _ in range(60):
        outer = scene.graph()
        scene.capture(outer, [], embeds=[[0, graph], [1, graph]])
        graph = outer
    scene.replay(graph, times=100)
    assert scene.footer().verdict().value == "INCOMPLETE"


@pytest.mark.parametrize("alive", [True, False])
def test_a_child_graphs_output_read_before_the_child_runs(alive: bool) -> None:
    """What the parent reads first is what the last replay left: sound while it is owned, a hazard once it was given back."""
    scene = Scene()
    inner, outer = scene.graph(), scene.graph()
    h = scene.block(0, during=inner)
    scene.capture(inner, [(h, "chain")])
    scene.capture(outer, [], embeds=[[5, inner]])
    scene.bodies[-1]["refs"] = [[0, 0, 0, 0, "param", "pool", h]]
    if not alive:
        scene.free(h)
    scene.replay(inner)
    scene.replay(outer, times=3)
    assert scene.footer().verdict().value == ("PASS" if alive else "INCONCLUSIVE")
