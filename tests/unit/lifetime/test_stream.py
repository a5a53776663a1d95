"""Receipts are a stream: memory does not grow with replays, and one pass serves several judgements."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from sgl_graph.analyzer.reconcile import lifetime_worker
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.reconcile.lifetime_codes import CODES
from sgl_graph.analyzer.records.receipts import Damage, Replays, read_receipts

from tests.unit.lifetime.scene import Scene, external


def long_file(path: Path, replays: int) -> Path:
    """A worker whose every replay is a record of its own."""
    scene = Scene(path.stem)
    graph, _ = external(scene)
    for _ in range(replays):
        scene.replay(graph)
    path.write_bytes(scene.footer().content())
    return path


def peak(path: Path) -> int:
    """Bytes that judging takes beyond what was there."""
    tracemalloc.start()
    try:
        assert lifetime_verdict([read_receipts(path)]).value == "PASS"
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_replays(tmp_path: Path) -> None:
    """Twenty times the records, the same peak."""
    few, many = long_file(tmp_path / "few.jsonl", 1_000), long_file(tmp_path / "many.jsonl", 20_000)
    assert peak(many) < peak(few) * 1.2


def test_one_pass_feeds_a_tap_and_the_verdict(tmp_path: Path) -> None:
    """The tap sees each line once, in order, and the verdict is the same."""
    path = long_file(tmp_path / "w.jsonl", 50)
    lines: list[object] = []
    tapped = read_receipts(path).tapped(lines.append)
    assert lifetime_verdict([tapped]) == lifetime_verdict([read_receipts(path)])
    assert sum(isinstance(line, Replays) for line in lines) == 50
    assert [type(line) for line in lines] == [type(line) for line in read_receipts(path)]


def test_a_file_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    """Not an exception: the verdict is INCOMPLETE and says why."""
    (damage,) = list(read_receipts(tmp_path / "absent.jsonl"))
    assert isinstance(damage, Damage) and damage.fatal
    result = lifetime_verdict([read_receipts(tmp_path / "absent.jsonl")])
    assert result.value == "INCOMPLETE"
    assert "absent.jsonl" in result.reason


def test_every_code_says_what_to_do() -> None:
    """A finding without a remedy is of no use."""
    for name, code in CODES.items():
        assert code.title and code.meaning.endswith(".") and code.remedy.endswith("."), name


def test_hazards_leave_room_for_what_is_definite(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many hazards were met before, a definite finding is kept and decides."""
    monkeypatch.setattr(lifetime_worker, "MOST_KEPT", 5)
    scene = Scene()
    graph, block = external(scene)
    for number in range(9):
        scene.recorder("tie", graphs=[graph], blocks=[block + 100 + number])
    scene.replay(graph)
    scene.free(block)
    scene.replay(graph)
    result = scene.footer().verdict()
    assert (result.value, result.findings[0].code, len(result.findings)) == ("FAIL", "freed-memory", 6)
