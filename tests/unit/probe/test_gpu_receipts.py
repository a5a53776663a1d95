"""Receipts that a real GPU wrote still get the verdicts of their programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts

_PLACE = Path(__file__).parents[3] / "fixtures" / "gpu_receipts"
_EXPECTED: dict[str, str] = json.loads((_PLACE / "expected.json").read_text())
#: Faults whose block is not freed by a line of the program: its order, or a certificate, tells.
_NO_LINE = {"long_churn_freed", "chain_out_of_order"}


@pytest.mark.parametrize("name", sorted(_EXPECTED))
def test_the_verdict_is_the_programs(name: str) -> None:
    receipts = [read_receipts(path) for path in sorted((_PLACE / name).glob("*.jsonl"))]
    assert receipts
    result = lifetime_verdict(receipts)
    expected = _EXPECTED[name]
    assert (result.value != "PASS") if expected == "!PASS" else (result.value == expected), result.reason
    if expected == "FAIL" and name not in _NO_LINE:
        definite = [finding for finding in result.findings if finding.severity == "definite"]
        assert any(f"{name}.py:" in str(finding.freed_at) for finding in definite), definite
    if name == "unowned":
        assert [entry.kind for entry in result.outside] == ["device"]


def test_every_program_left_a_verdict_and_every_kind_is_there() -> None:
    assert len(_EXPECTED) >= 60
    assert {"PASS", "FAIL", "NOT-RUN", "INCOMPLETE", "!PASS"} == set(_EXPECTED.values())
