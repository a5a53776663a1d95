"""Memory inside graph pools: temporaries, outputs, and what captures hand to each other."""

from __future__ import annotations

import pytest

from tests.unit.lifetime.scene import POOL, Scene, handed_over


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ((0, 1, 2), "PASS"),
        ((0, 1, 2, 0, 1, 2), "PASS"),
        ((0, 2, 1), "FAIL"),
        ((2, 1, 0), "FAIL"),
        ((1, 0, 2), "INCONCLUSIVE"),
        ((1, 2, 0), "INCONCLUSIVE"),
        ((2, 0, 1), "INCONCLUSIVE"),
        ((0, 1, 1), "PASS"),
        ((0, 1, 2, 1), "FAIL"),
    ],
)
@pytest.mark.parametrize("label", [None, "prefill@8"])
def test_a_chain_is_sound_in_order_only(order: tuple[int, ...], expected: str, label: str | None) -> None:
    """With a label for the whole chain and without any."""
    scene, graphs = handed_over((label, label, label))
    for index in order:
        scene.replay(graphs[index])
    assert scene.footer().verdict().value == expected


def test_another_label_does_not_hand_over() -> None:
    """Freed memory of another label's chain is outside memory: nobody owns it."""
    scene, graphs = handed_over(("prefill@8", "decode@1", "decode@2"))
    for graph in graphs:
        scene.replay(graph)
    assert scene.footer().verdict().value == "FAIL"


def test_handover_taken_by_the_host_program_is_inconclusive_or_worse() -> None:
    """Memory of a freed hand-over that somebody outside captures owns now is never sound."""
    scene, graphs = handed_over()
    scene.alloc(2)
    for graph in graphs:
        scene.replay(graph)
    assert scene.footer().verdict().value != "PASS"


def output(freed: bool, taken: bool, reset: bool) -> Scene:
    """Two captures of one pool; the second may lie over the output of the first."""
    scene = Scene()
    g1, g2 = scene.graph(), scene.graph()
    y1 = scene.block(0, during=g1)
    scene.capture(g1, [(y1, "chain")])
    if freed:
        scene.free(y1)
    y2 = scene.block(0 if taken else 512, during=g2)
    scene.capture(g2, [(y2, "chain")])
    if reset:
        scene.graph_event(g2, "reset")
    scene.replay(g1)
    return scene.footer()


def test_output_freed_and_taken_by_another_capture_is_a_hazard() -> None:
    """Whether anybody still reads what the other capture keeps there is not in the pointers."""
    result = output(True, True, False).verdict()
    assert result.value == "INCONCLUSIVE"
    assert [finding.code for finding in result.findings] == ["output-reused"]


@pytest.mark.parametrize(("freed", "taken", "reset"), [(False, False, False), (True, False, False), (True, True, True)])
def test_outputs_that_nobody_else_has_are_clean(freed: bool, taken: bool, reset: bool) -> None:
    """Kept; or freed and idle in the pool; or taken by a graph that is gone."""
    assert output(freed, taken, reset).verdict().value == "PASS"


def test_temporaries_are_shared_by_graphs_of_a_pool() -> None:
    """Freed inside the capture and reused by the next: what buckets of a server do."""
    scene = Scene()
    g1, g2 = scene.graph(), scene.graph()
    t1 = scene.block(0, during=g1)
    scene.free(t1)
    scene.capture(g1, [(t1, "chain")])
    y2 = scene.block(0, during=g2)
    scene.capture(g2, [(y2, "chain")])
    scene.replay(g1, g2, times=3)
    scene.replay(g2, g1)
    assert scene.footer().verdict().value == "PASS"


def test_dangling_list_behind_a_capture_counts_as_inside() -> None:
    """A recorder may write the free of a temporary right behind its capture, without a time."""
    scene = Scene()
    g1, g2 = scene.graph(), scene.graph()
    t1 = scene.block(0, during=g1)
    scene.capture(g1, [(t1, "chain")])
    scene.add("event", o=scene._next(), e="free", block=t1, stack=None, t=None)
    y2 = scene.block(0, during=g2)
    scene.capture(g2, [(y2, "chain")])
    scene.replay(g1, g2)
    assert scene.footer().verdict().value == "PASS"


def temporaries_taken(*, returned: bool, same_pool: bool) -> Scene:
    """The host program gets memory of a graph's temporaries."""
    scene = Scene()
    graph = scene.graph()
    temporary = scene.block(0, during=graph)
    scene.free(temporary)
    scene.capture(graph, [(temporary, "chain")])
    owner = scene.block(0, pool=POOL if same_pool else [9, 0])
    scene.alloc(temporary, block=owner)
    if returned:
        scene.free(owner)
    scene.replay(graph)
    return scene.footer()


def test_host_program_owns_temporaries() -> None:
    """Definite when the pool itself handed them out, open when a second allocator did, clean when given back."""
    assert temporaries_taken(returned=False, same_pool=True).verdict().value == "FAIL"
    assert temporaries_taken(returned=False, same_pool=False).verdict().value == "INCONCLUSIVE"
    assert temporaries_taken(returned=True, same_pool=True).verdict().value == "PASS"


def older(order: tuple[str, ...]) -> Scene:
    """A live hand-over that lies over temporaries of an older graph."""
    scene = Scene()
    names = {"older": scene.graph(), "producer": scene.graph(), "consumer": scene.graph()}
    temporary = scene.block(0, during=names["older"])
    scene.free(temporary)
    scene.capture(names["older"], [(temporary, "chain")])
    h = scene.block(0, during=names["producer"])
    scene.capture(names["producer"], [(h, "chain")])
    scene.capture(names["consumer"], [(h, "pool")])
    for name in order:
        scene.replay(names[name])
    return scene.footer()


def test_an_older_graph_between_producer_and_consumer_is_a_hazard() -> None:
    """The block is owned, and its contents are not what the producer left."""
    assert older(("older", "producer", "consumer")).verdict().value == "PASS"
    result = older(("producer", "older", "consumer")).verdict()
    assert result.value == "INCONCLUSIVE"
    assert [finding.code for finding in result.findings] == ["handover-order"]


def test_a_live_block_of_a_graph_that_never_replays_is_clean() -> None:
    """A workspace that the first capture allocated serves the others, whether or not that graph ever runs."""
    assert older(("consumer", "consumer")).verdict().value == "PASS"


def test_a_pool_that_died_under_a_graph_fails() -> None:
    """Its own memory too."""
    scene = Scene()
    graph = scene.graph()
    own = scene.block(0, during=graph)
    scene.capture(graph, [(own, "chain")])
    scene.gone("pool", own)
    scene.replay(graph)
    assert scene.footer().verdict().value == "FAIL"


def test_memory_that_changed_hands_inside_a_capture_is_never_definite() -> None:
    """A word that may mean the former block or the capture's own: sound in order, open otherwise."""
    for order, expected in (((0, 1, 0, 1), "PASS"), ((0, 1, 1), "INCONCLUSIVE")):
        scene = Scene()
        s1, s2 = scene.graph(), scene.graph()
        h = scene.block(0, during=s1)
        scene.capture(s1, [(h, "chain")])
        scene.free(h)
        u = scene.block(0, during=s2)
        scene.capture(s2, [(u, "chain")])
        scene.bodies[-1]["refs"].append([0, 0, 0, 0, "param", "pool", h])
        for index in order:
            scene.replay((s1, s2)[index])
        assert scene.footer().verdict().value == expected


def test_a_block_that_its_own_capture_reused_is_never_whole() -> None:
    """Freed and overlaid inside the capture that allocated it, and still referenced by another one."""
    scene = Scene()
    s1, s2 = scene.graph(), scene.graph()
    b = scene.block(0, during=s1)
    scene.free(b)
    t = scene.block(0, during=s1)
    scene.capture(s1, [(b, "chain"), (t, "chain")])
    scene.capture(s2, [(b, "pool")])
    scene.replay(s1, s2)
    result = scene.footer().verdict()
    assert result.value == "FAIL"
    assert [finding.code for finding in result.findings] == ["handover-overwritten"]


def test_a_large_pool_is_judged_without_keeping_pairs() -> None:
    """Forty graphs that overlay a thousand temporaries each: what overlaps is looked up, not stored."""
    scene = Scene()
    graphs = []
    for number in range(40):
        graph = scene.graph()
        blocks = [scene.block(512 * index, 512 * (1 + index % 3), during=graph) for index in range(1000)]
        for block in blocks:
            scene.free(block)
        graphs.append(scene.capture(graph, [(block, "chain") for block in blocks], label=f"decode@{number}"))
    scene.replay(*graphs, times=3)
    assert scene.footer().verdict().value == "PASS"


@pytest.mark.parametrize(
    ("copied", "kept", "known", "value"),
    [
        (True, False, True, "PASS"),
        (True, True, True, "INCONCLUSIVE"),
        (True, False, False, "INCONCLUSIVE"),
        (False, False, True, "INCONCLUSIVE"),
    ],
)
def test_outputs_dropped_bucket_after_bucket(copied: bool, kept: bool, known: bool, value: str) -> None:
    """Sound is a graph that copies its output itself, over memory that the next bucket gave back as well."""
    scene = Scene()
    g8, g4 = scene.graph(), scene.graph()
    buffer, y8 = scene.block(4096), scene.block(0, during=g8)
    scene.capture(g8, [(y8, "chain")], label="prefill@8")
    copy = [[1, 0, "src", 0, "memcpy", "chain", y8], [1, 0, "dst", 0, "memcpy", "external", buffer]]
    scene.bodies[-1]["refs"] += copy if copied else [[1, 0, "src", 0, "memcpy", "external", buffer]]
    scene.free(y8)
    scene.alloc(y8, during=g4, at=256)
    if known:
        y4 = scene.block(256, during=g4)
        scene.capture(g4, [(y4, "chain")], label="prefill@4")
        if not kept:
            scene.free(y4)
    else:
        scene.capture(g4, [], label="prefill@4")
    scene.replay(g8, g4, times=2)
    assert scene.footer().verdict().value == value


@pytest.mark.parametrize(
    ("parameter", "via", "value"),
    [("src", "memcpy", "PASS"), ("dst", "memcpy", "INCONCLUSIVE"), (0, "param", "INCONCLUSIVE")],
)
def test_only_the_last_use_counts_as_the_copy_that_reads_an_output(parameter: str | int, via: str, value: str) -> None:
    """A copy from the block that is followed by another use is not the end of it."""
    scene = Scene()
    g8, g4 = scene.graph(), scene.graph()
    y8 = scene.block(0, during=g8)
    scene.capture(g8, [(y8, "chain")], label="prefill@8")
    scene.bodies[-1]["refs"] += [[1, 0, "src", 0, "memcpy", "chain", y8], [2, 0, parameter, 0, via, "chain", y8]]
    scene.free(y8)
    y4 = scene.block(0, during=g4)
    scene.capture(g4, [(y4, "chain")], label="prefill@4")
    scene.free(y4)
    scene.replay(g8)
    assert scene.footer().verdict().value == value


def test_a_doubtful_word_of_another_label_proves_nothing() -> None:
    """An output of one bucket dropped while the next is captured, whose temporaries take the memory: no dangling reference."""
    scene = Scene()
    g8, g4 = scene.graph(), scene.graph()
    y8 = scene.block(0, during=g8)
    scene.capture(g8, [(y8, "chain")], label="decode@8")
    scene.free(y8)
    t4 = scene.block(0, during=g4)
    scene.free(t4)
    scene.capture(g4, [(t4, "chain")], label="decode@4")
    scene.bodies[-1]["refs"].append([0, 0, 0, 0, "param", "pool", y8])
    scene.replay(g4, times=5)
    assert scene.footer().verdict().value == "PASS"
    scene.bodies.pop()
    scene.replay(g8)
    result = scene.footer().verdict()
    assert [finding.code for finding in result.findings] == ["output-reused"]


@pytest.mark.parametrize(
    ("scratch", "taker_lives", "expected"),
    [(True, False, "PASS"), (True, True, "INCONCLUSIVE"), (False, False, "INCONCLUSIVE")],
)
def test_a_workspace_ends_with_its_matmul(scratch: bool, taker_lives: bool, expected: str) -> None:
    """Its memory may serve another capture; while that one's block is owned, writing there is a hazard all the same."""
    scene = Scene()
    first, second = scene.graph(), scene.graph()
    w = scene.block(0, during=first)
    scene.capture(first, [(w, "chain")])
    scene.add("event", o=scene._next(), e="free", block=w, stack=None, t=5, **({"scratch": True} if scratch else {}))
    v = scene.block(0, during=second)
    scene.capture(second, [(v, "chain")])
    if not taker_lives:
        scene.free(v)
    scene.replay(first, second, times=3)
    assert scene.footer().verdict().value == expected
