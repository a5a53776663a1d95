"""A report tells one fault once, however many graphs, kernels and workers it shows in."""

from __future__ import annotations

from typing import Any

import pytest
from sgl_graph.analyzer.records.ledger import Finding
from sgl_graph.cli.render.causes import by_cause
from sgl_graph.cli.render.report import cause_lines

POOL = ["pool.py:39 defragment", "manager.py:5 load"]


def finding(label: str = "decode@1", worker: str = "w0", **fields: Any) -> Finding:
    return Finding(
        **{"code": "freed-memory", "severity": "definite", "freed_at": POOL, **fields}, label=label, worker=worker
    )


def test_findings_of_one_freeing_line_are_one_cause() -> None:
    found = [
        finding(kernel="a"),
        finding("decode@2", code="reused-memory", freed_at=["pool.py:39 defragment", "other.py:1 x"]),
        finding("decode@2", "w1"),
        finding("decode@4", freed_at=["pool.py:40 defragment"]),
    ]
    causes = by_cause(found)
    assert [len(cause.findings) for cause in causes] == [3, 1]
    assert cause_lines(causes[0])[-1] == (
        "  and 2 more freed there: 2 graphs in all (decode@1, decode@2); 2 workers (w0, w1)"
    )
    assert "  kernel: a" in cause_lines(causes[0])
    assert "more" not in "\n".join(cause_lines(causes[1]))


@pytest.mark.parametrize(
    "fields",
    [{"severity": "hazard"}, {"freed_at": "unknown"}, {"freed_at": ["x.py:1 f"]}],
    ids=["severity", "no", "line"],
)
def test_what_differs_in_more_than_the_place_it_showed_in_is_told_apart(fields: dict[str, Any]) -> None:
    assert len(by_cause([finding(), finding(**fields)])) == 2


def test_findings_without_memory_are_told_by_kind() -> None:
    plain = {"freed_at": "unknown", "worker": "unknown"}
    found = [finding(f"decode@{n}", code="answers-differ", **plain) for n in range(20)] + [
        finding(code="no-footer", **plain)
    ]
    causes = by_cause(found)
    assert [len(cause.findings) for cause in causes] == [20, 1]
    [told] = [line for line in cause_lines(causes[0]) if line.startswith("  and")]
    assert told.startswith("  and 19 more like it: 20 graphs in all (decode@0, ") and told.endswith(" ...)")
