"""Memory that was allocated outside every capture."""

from __future__ import annotations

from tests.unit.lifetime.scene import Scene, external


def codes(scene: Scene) -> list[str]:
    """Codes of the findings."""
    return [finding.code for finding in scene.footer().verdict().findings]


def test_owned_memory_is_clean() -> None:
    """PASS counts captures, replays and inspections."""
    scene = Scene()
    graph, _ = external(scene)
    scene.replay(graph, times=7)
    result = scene.footer().verdict()
    assert result.value == "PASS"
    assert result.reason == "clean: 1 captures, 7 replays, 1 inspections per worker"


def test_freed_memory_fails_and_names_who_freed_it() -> None:
    """A freed block is a definite finding with both stacks, the kernel and the parameter."""
    scene = Scene()
    graph, block = external(scene)
    scene.replay(graph, times=5)
    scene.free(block, scene.stack("update.py", 42, "reload"))
    scene.replay(graph)
    result = scene.footer().verdict()
    assert result.value == "FAIL"
    (finding,) = result.findings
    assert (finding.code, finding.severity) == ("freed-memory", "definite")
    assert finding.freed_at == ["update.py:42 reload"]
    assert finding.allocated_at == ["serve.py:3 f"]
    assert (finding.kernel, finding.parameter, finding.replay_index) == ("kernel", 0, 5)
    assert finding.owner_now == "unknown"


def test_reused_memory_names_the_owner() -> None:
    """Handed out again: the new owner's line is named."""
    scene = Scene()
    graph, block = external(scene)
    scene.free(block)
    scene.alloc(block, stack=scene.stack("kv.py", 9, "grow"))
    scene.replay(graph)
    (finding,) = scene.footer().verdict().findings
    assert finding.code == "reused-memory"
    assert finding.owner_now == ["kv.py:9 grow"]


def test_freed_after_the_last_replay_is_clean() -> None:
    """Only a replay that comes after the free touches dead memory."""
    scene = Scene()
    graph, block = external(scene)
    scene.replay(graph)
    scene.free(block)
    assert scene.footer().verdict().value == "PASS"


def test_freed_while_the_capture_was_open_fails() -> None:
    """The block is dead before the capture record stands in the file."""
    scene = Scene()
    block = scene.block(0)
    graph = scene.graph()
    scene.free(block)
    scene.capture(graph, [(block, "external")])
    scene.replay(graph)
    assert codes(scene) == ["freed-memory"]


def test_unmapped_segment_fails() -> None:
    """Memory that went back to the driver, freed or not."""
    scene = Scene()
    graph, block = external(scene)
    scene.gone("segment", block)
    scene.replay(graph)
    assert codes(scene) == ["unmapped-memory"]


def test_dead_pool_fails_only_with_its_memory() -> None:
    """A pool object may go while a tensor in it lives on; once that is freed, it is dead."""
    for freed, expected in ((False, "PASS"), (True, "FAIL")):
        scene = Scene()
        block = scene.block(0, pool=[1, 0])
        graph = scene.capture(scene.graph(), [(block, "external")])
        if freed:
            scene.free(block)
        scene.gone("pool", block)
        scene.replay(graph)
        assert scene.footer().verdict().value == expected


def test_second_owner_of_live_memory_is_inconclusive() -> None:
    """Two owners at once: pointers cannot say whose contents count."""
    scene = Scene()
    graph, block = external(scene)
    scene.alloc(block)
    scene.replay(graph)
    result = scene.footer().verdict()
    assert result.value == "INCONCLUSIVE"
    assert [finding.code for finding in result.findings] == ["overlapping-owners"]


def test_one_finding_for_a_block_that_many_kernels_use() -> None:
    """Replayed a hundred times: one finding, at the first."""
    scene = Scene()
    block = scene.block(0)
    graph = scene.capture(scene.graph(), [(block, "external")] * 4)
    scene.free(block)
    scene.replay(graph, times=100)
    assert codes(scene) == ["freed-memory"]


def test_recaptured_graph_fails_when_the_old_one_replays() -> None:
    """Memory alive or not: the key belongs to another graph."""
    scene = Scene()
    old, block = external(scene)
    new = scene.capture(scene.graph(), [(block, "external")])
    scene.graph_event(old, "recaptured", by=new)
    scene.replay(new)
    assert scene.footer().verdict().value == "PASS"
    scene.bodies.pop()
    scene.replay(old)
    assert codes(scene) == ["recaptured-graph"]


def test_update_makes_the_other_graphs_memory_count() -> None:
    """After an update the executable reads what the other graph reads."""
    scene = Scene()
    first, a = external(scene)
    b = scene.block(4096)
    second = scene.graph()
    temporary = scene.block(8192, pool=[0, 2], during=second)
    scene.free(temporary)
    scene.capture(second, [(b, "external"), (temporary, "chain")], pool=[0, 2])
    scene.graph_event(first, "updated", by=second)
    scene.free(a)
    scene.replay(first)
    assert scene.footer().verdict().value == "PASS"
    scene.bodies.pop()
    scene.free(b)
    scene.replay(first)
    assert codes(scene) == ["freed-memory"]


def test_update_from_an_unknown_graph_is_incomplete() -> None:
    """What the executable holds now was never inspected."""
    scene = Scene()
    graph, _ = external(scene)
    scene.graph_event(graph, "updated")
    scene.replay(graph)
    assert scene.footer().verdict().value == "INCOMPLETE"


def test_reset_graph_is_a_hazard_unless_its_pool_is_held() -> None:
    """A raw executable may outlive its graph; another graph of the pool keeps the memory."""
    for shared, expected in ((False, "INCONCLUSIVE"), (True, "PASS")):
        scene = Scene()
        graph, block = external(scene)
        if shared:
            scene.capture(scene.graph(), [(block, "external")])
        scene.graph_event(graph, "reset")
        scene.replay(graph)
        assert scene.footer().verdict().value == expected


def test_memory_of_no_allocator_is_listed_and_moves_nothing() -> None:
    """Unowned and page-locked memory stands beside the verdict, with kind, kernel and count."""
    scene = Scene()
    block = scene.block(0)
    graph = scene.graph()
    scene.capture(
        graph, [(block, "external")], label="decode@1", unowned=[{"kind": "ipc", "name": "all_reduce", "count": 3}]
    )
    scene.bodies[-1]["refs"].append([0, 0, 1, 0, "memcpy", "pinned", None])
    scene.replay(graph)
    result = scene.footer().verdict()
    assert result.value == "PASS"
    listed = [(o.kind, o.label, o.kernel, o.count) for o in result.outside]
    assert listed == [("ipc", "decode@1", "all_reduce", 3), ("pinned", "decode@1", "kernel", 1)]
