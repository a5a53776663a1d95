"""What is missing, damaged or open never ends as PASS."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import Damage, read_receipts

from tests.unit.lifetime.scene import Scene, external


def clean(worker: str = "worker", run: str = "run") -> Scene:
    """A sound worker."""
    scene = Scene(worker, run)
    graph, _ = external(scene)
    scene.replay(graph, times=3)
    return scene


def incomplete_capture(scene: Scene) -> None:
    scene.capture(
        scene.graph(),
        [(scene.block(4096), "external")],
        complete=False,
        unread=[{"node": 3, "type": "kernel", "why": "x"}],
    )


LACKS: dict[str, Callable[[Scene], object]] = {
    "unread node": incomplete_capture,
    "unknown graph": lambda scene: scene.replay(999),
    "unknown block": lambda scene: scene.capture(scene.graph(), [(999, "external")]),
    "no block": lambda scene: scene.bodies[3]["refs"].append([0, 0, 1, 0, "param", "external", None]),
    "problem": lambda scene: (scene.add("problem", where="drain", error="x"), scene.counts.update(problems=1)),
    "overflow": lambda scene: scene.recorder("overflow"),
    "gap": lambda scene: scene.recorder("gap"),
    "off by other": lambda scene: scene.recorder("off-by-other", detail="the server switched it"),
    "unknown recorder state": lambda scene: scene.recorder("paused"),
    "unknown event": lambda scene: scene.add("event", o=scene._next(), e="moved", blocks=[1]),
    "unknown graph event": lambda scene: scene.graph_event(2, "melted"),
    "order backwards": lambda scene: scene.add("event", o=0, e="free", block=1, t=1),
    "impossible run": lambda scene: scene.add("replays", o=50, to=51, cycle=[2], count=7),
    "second hello": lambda scene: scene.add("hello", worker="worker", schema="sgl-graph.receipts/1"),
    "after the footer": lambda scene: scene.footer(),
    "unknown kind": lambda scene: scene.add("weather"),
}


@pytest.mark.parametrize("lack", LACKS)
def test_missing_evidence_is_incomplete(lack: str) -> None:
    """Each alone turns a sound worker INCOMPLETE, with a reason."""
    scene = clean()
    LACKS[lack](scene)
    result = scene.footer().verdict()
    assert result.value == "INCOMPLETE"
    assert result.reason and result.workers[0].incomplete


def test_no_footer_is_incomplete() -> None:
    """A killed worker."""
    result = clean().verdict()
    assert result.value == "INCOMPLETE"
    assert "footer" in result.reason


@pytest.mark.parametrize("member", ["captures", "replays", "inspections", "problems"])
def test_footer_that_counts_more_is_incomplete(member: str) -> None:
    """Lines are missing."""
    assert clean().footer(**{member: 50}).verdict().value == "INCOMPLETE"


def test_tie_is_inconclusive() -> None:
    """An order that cannot be told is a hazard."""
    scene = clean()
    scene.recorder("tie", blocks=[1], graphs=[2], detail="same microsecond")
    result = scene.footer().verdict()
    assert result.value == "INCONCLUSIVE"
    assert [finding.code for finding in result.findings] == ["tie"]


def test_a_definite_fault_outlives_a_missing_footer() -> None:
    """What the verified lines prove, a later loss cannot undo."""
    scene = Scene()
    graph, block = external(scene)
    scene.free(block)
    scene.replay(graph)
    assert scene.verdict().value == "FAIL"


def test_a_fault_read_from_damaged_lines_is_not_definite() -> None:
    """Behind a broken chain nothing is proven, in either direction."""
    scene = Scene()
    graph, block = external(scene)
    scene.free(block)
    scene.replay(graph)
    content = scene.footer().content().replace(b"serve.py", b"SERVE.py")
    result = lifetime_verdict([read_receipts(content)])
    assert result.value == "INCOMPLETE"
    assert [finding.severity for finding in result.findings] == ["hazard"]


def test_nothing_captured_or_replayed_is_not_run() -> None:
    """The probe lived and had nothing to see."""
    assert Scene().footer().verdict().value == "NOT-RUN"
    scene = Scene()
    external(scene)
    assert scene.footer().verdict().value == "NOT-RUN"


def test_silent_probe_and_missing_workers_are_incomplete() -> None:
    """No receipts at all, or not those of every worker."""
    assert lifetime_verdict([]).value == "INCOMPLETE"
    receipts = read_receipts(clean().footer().content())
    assert lifetime_verdict([receipts], expected_workers=["worker"]).value == "PASS"
    result = lifetime_verdict([receipts], expected_workers=["worker", "other"])
    assert result.value == "INCOMPLETE"
    assert "other" in result.reason


def test_workers_of_different_runs_or_the_same_name_are_incomplete() -> None:
    """Receipts that do not belong together."""
    one = read_receipts(clean("a", "run").footer().content())
    assert lifetime_verdict([one, read_receipts(clean("b", "run").footer().content())]).value == "PASS"
    assert lifetime_verdict([one, read_receipts(clean("b", "other").footer().content())]).value == "INCOMPLETE"
    assert lifetime_verdict([one, one]).value == "INCOMPLETE"


def test_damage_is_located() -> None:
    """File and line, and reading goes on behind it."""
    lines = clean().footer().content().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"512", b"513")
    items = list(read_receipts(b"".join(lines), name="w.jsonl"))
    damages = [item for item in items if isinstance(item, Damage)]
    assert [(d.file, d.line) for d in damages] == [("w.jsonl", 3)]
    assert len(items) == len(lines) + 1


def test_file_name_and_writer_must_agree(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """Receipts that were swapped between workers."""
    content = clean("worker").footer().content()
    for name, expected in (("worker", "PASS"), ("other", "INCOMPLETE")):
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        assert lifetime_verdict([read_receipts(path)]).value == expected
