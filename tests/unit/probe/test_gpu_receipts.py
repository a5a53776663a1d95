"""Receipts that a real GPU wrote still get the verdicts of their programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import Capture, read_receipts

_PLACE = Path(__file__).parents[3] / "fixtures" / "gpu_receipts"
_EXPECTED: dict[str, str] = json.loads((_PLACE / "expected.json").read_text())
#: Faults whose block is not freed by a line of the program: its order, a certificate, the end of a thread or of a capture tells.
_NO_LINE = {
    "long_churn_freed",
    "chain_out_of_order",
    "captured_in_thread",
    "thread_local_freed",
    "weights_swapped_in_churn",
    "driver_capture_temporary",
}

#: Memory that is listed and not judged.
_OUTSIDE = {
    "unowned": "device",
    "shared_with_process": "device",
    "pinned_source_freed": "pinned",
    "pageable_source": "host",
    "compiled_branches_clean": "arranged",
}


@pytest.mark.parametrize("name", sorted(_EXPECTED))
def test_the_verdict_is_the_programs(name: str) -> None:
    receipts = [read_receipts(path) for path in sorted((_PLACE / name).glob("*.jsonl"))]
    assert receipts
    result = lifetime_verdict(receipts)
    expected = _EXPECTED[name]
    assert result.value == expected, result.reason
    if expected == "FAIL" and name not in _NO_LINE:
        definite = [finding for finding in result.findings if finding.severity == "definite"]
        assert any(f"{name}.py:" in str(finding.freed_at) for finding in definite), definite
    if name in _OUTSIDE:
        assert {entry.kind for entry in result.outside} == {_OUTSIDE[name]}


def test_every_program_left_a_verdict_and_every_kind_is_there() -> None:
    assert len(_EXPECTED) >= 170
    assert {"PASS", "FAIL", "NOT-RUN", "INCOMPLETE", "INCONCLUSIVE"} == set(_EXPECTED.values())


@pytest.mark.parametrize("name", ["child_graph", "child_graph_built", "child_graph_twice"])
def test_child_graphs_were_recognised(name: str) -> None:
    """Each child is named as the captured graph that it clones, and none of its words is left to the parent."""
    lines = [line for path in (_PLACE / name).glob("*.jsonl") for line in read_receipts(path)]
    captures = [line for line in lines if isinstance(line, Capture)]
    assert sum(len(capture.embeds) for capture in captures) == (1 if name == "child_graph" else 2)
    assert not any(ref.via == "child" for capture in captures for ref in capture.refs)
