"""What must hold for any receipts: no wrong PASS, and nothing that is not evidence moves the verdict."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import WorkerReceipts, read_receipts

from tests.property.lifetime.model import Story, stories, tell

relaxed = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def receipts(story: Story, worker: str = "worker") -> WorkerReceipts:
    """A worker that lived a story."""
    return read_receipts(tell(story, worker).scene.content())


@relaxed
@given(stories)
def test_no_wrong_pass(story: Story) -> None:
    """Whenever a replay of the model reads foreign contents or dead outside memory, the verdict is not PASS."""
    model = tell(story)
    result = model.scene.verdict()
    assert result.value in ("PASS", "FAIL", "INCONCLUSIVE", "NOT-RUN")
    if model.dead_outside:
        assert result.value == "FAIL"
    if model.foreign_reads:
        assert result.value in ("FAIL", "INCONCLUSIVE")


@relaxed
@given(stories)
def test_definite_findings_are_real(story: Story) -> None:
    """FAIL needs dead outside memory, or a read that met what another capture wrote, or a freed hand-over."""
    model = tell(story)
    if model.scene.verdict().value == "FAIL":
        assert model.dead_outside or model.foreign_reads


@relaxed
@given(stories)
def test_run_length_compression_moves_nothing(story: Story) -> None:
    """Expanded to one record a replay: the same verdict, findings and counts."""
    compressed, expanded = tell(story).scene.verdict(), tell(story, expanded=True).scene.verdict()
    assert compressed == expanded


@relaxed
@given(st.lists(stories, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_workers_in_any_order(told: list[Story], shuffle: random.Random) -> None:
    """Permuting workers gives the same result."""
    workers = [receipts(story, f"w{number}") for number, story in enumerate(told)]
    expected = lifetime_verdict(workers)
    shuffle.shuffle(workers)
    assert lifetime_verdict(workers) == expected


@relaxed
@given(stories, stories)
def test_another_worker_never_mends(story: Story, other: Story) -> None:
    """FAIL stays FAIL, and nothing that was not PASS becomes it, but where nothing had been replayed."""
    alone = lifetime_verdict([receipts(story, "a")]).value
    both = lifetime_verdict([receipts(story, "a"), receipts(other, "b")]).value
    if alone == "FAIL":
        assert both == "FAIL"
    if alone not in ("PASS", "NOT-RUN"):
        assert both != "PASS"


@relaxed
@given(stories, st.data())
def test_dropped_or_doubled_or_swapped_lines_never_pass(story: Story, data: st.DataObject) -> None:
    """The chain and the footer show it."""
    lines = tell(story).scene.content().splitlines(keepends=True)
    index = data.draw(st.integers(0, len(lines) - 1))
    how = data.draw(st.sampled_from(["drop", "double", "swap", "cut"]))
    if how == "drop":
        damaged = lines[:index] + lines[index + 1 :]
    elif how == "double":
        damaged = [*lines[: index + 1], *lines[index:]]
    elif how == "swap":
        other = (index + 1) % len(lines)
        damaged = list(lines)
        damaged[index], damaged[other] = damaged[other], damaged[index]
    else:
        damaged = [*lines[:index], lines[index][: data.draw(st.integers(0, len(lines[index]) - 1))]]
    assert lifetime_verdict([read_receipts(b"".join(damaged))]).value in ("FAIL", "INCOMPLETE")


@relaxed
@given(stories, st.data())
def test_a_changed_byte_never_passes(story: Story, data: st.DataObject) -> None:
    """Anywhere in the file, to any other value; and no exception reaches the caller."""
    content = bytearray(tell(story).scene.content())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    assert lifetime_verdict([read_receipts(bytes(content))]).value in ("FAIL", "INCOMPLETE")
