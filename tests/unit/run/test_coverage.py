"""The coverage verdict: per worker, all segments, and only whole receipts prove absence."""

from __future__ import annotations

from typing import Any

import pytest
from sgl_graph.analyzer.reconcile.coverage import coverage_verdict, requirement_of, satisfies
from sgl_graph.analyzer.reconcile.observation import Window, observe
from sgl_graph.analyzer.records.ledger import CoverageVerdict, Identity, LaunchOutcome
from sgl_graph.analyzer.records.plan import ExpectedWorkers
from sgl_graph.analyzer.records.receipts import read_receipts, write_receipts

from .builders import RAN, plan, worker

DECODE = "target:decode"


def judge(seen: list[Any], labels: list[str] | None = None, source: str = "matches", **more: Any) -> CoverageVerdict:
    launches = more.pop("launches", RAN)
    made = plan(labels=[DECODE] if labels is None else labels, **more)
    identity = Identity.model_validate({"worker_source": source})
    return coverage_verdict(made, seen, launches, identity).verdict


def test_labels_never_lose_their_runner() -> None:
    assert requirement_of("target:decode/lora@4") == "target:decode/lora"
    assert satisfies("target:decode/lora@4", "target:decode/lora")
    assert not satisfies("draft:decode@4", "target:decode")
    assert not satisfies("target:decode/lora@4", "target:decode")
    assert satisfies("target:decode@4", "target:decode@4") and not satisfies("target:decode@2", "target:decode@4")


def test_pass_lists_what_was_replayed_and_what_was_only_captured() -> None:
    seen = worker(captured=["target:decode@1", "target:decode@2"], replayed=[0])
    verdict = judge([seen])
    assert (verdict.value, verdict.replayed, verdict.captured_not_replayed) == (
        "PASS", ["target:decode@1"], ["target:decode@2"],
    )  # fmt: skip


def test_all_segments_must_be_replayed() -> None:
    seen = worker(captured=["target:decode@1"] * 3, replayed=[0, 2])
    verdict = judge([seen])
    assert verdict.value == "FAIL"
    assert "2 of 3" in verdict.reason


def test_every_worker_of_the_role_must_replay() -> None:
    verdict = judge([worker("w0"), worker("w1", replayed=[])])
    assert verdict.value == "FAIL"
    assert "w1" in verdict.reason
    assert verdict.replayed == []
    assert judge([worker("w0"), worker("l", captured=[], replayed=[], role="launcher")]).value == "PASS"


def test_workers_that_replay_different_sizes_have_none_in_common() -> None:
    labels = ["target:decode@1", "target:decode@2"]
    assert judge([worker("w0", labels, [0]), worker("w1", labels, [1])]).value == "FAIL"


@pytest.mark.parametrize(
    "broken",
    [
        {"footer": None},
        {"problems": ["line 7 was changed"]},
        {"undecided": [0]},
        {"captured": ["target:decode@1", None], "replayed": [1]},
    ],
)
def test_receipts_that_are_not_whole_prove_no_absence(broken: dict[str, Any]) -> None:
    assert judge([worker(**{"replayed": [], **broken})]).value == "INCOMPLETE"


def test_a_pass_needs_whole_receipts_too() -> None:
    assert judge([worker(footer=None)]).value == "INCOMPLETE"
    assert judge([worker(problems=["x"])]).value == "INCOMPLETE"
    assert judge([]).value == "INCOMPLETE"
    two = [ExpectedWorkers(role="scheduler", count=2)]
    assert judge([worker()], workers=two).value == "INCOMPLETE"


def test_one_whole_worker_proves_a_failure_whatever_the_other_says() -> None:
    assert judge([worker("w0", replayed=[]), worker("w1", footer=None)]).value == "FAIL"


def test_nothing_required_is_inconclusive_and_no_launch_incomplete() -> None:
    assert judge([worker()], labels=[]).value == "INCONCLUSIVE"
    assert judge([worker()], skipped={"instrumented": "x"}).value == "INCOMPLETE"
    failed = {**RAN, "instrumented": LaunchOutcome(state="failed", reason="died")}
    assert judge([worker()], launches=failed).value == "INCOMPLETE"
    assert judge([worker(replayed=[])], launches=failed).value == "INCOMPLETE"


def test_labels_of_another_source_are_inconclusive_unless_declared() -> None:
    assert judge([worker()], source="differs").value == "INCONCLUSIVE"
    assert judge([worker(replayed=[])], source="differs").value == "INCONCLUSIVE"
    assert judge([worker()], source="differs", provenance="declared").value == "PASS"


def test_a_label_of_another_role_is_asked_of_that_role() -> None:
    encoder = worker("e", ["encoder:vit@64"], [0], role="encoder")
    roles = {"encoder:vit": "encoder"}
    assert judge([worker(), encoder], labels=["encoder:vit", DECODE], roles=roles).value == "PASS"


def receipts(*replays: dict[str, Any]) -> bytes:
    capture = {"k": "capture", "pool": 1, "label": "target:decode@1", "complete": True}
    bodies = [
        {"k": "hello", "schema": "sgl-graph.receipts/1", "worker": "w"},
        {"k": "role", "role": "scheduler"},
        {**capture, "graph": 0, "began": 1, "ended": 2},
        {**capture, "graph": 1, "began": 3, "ended": 4},
        *({"k": "replays", **body} for body in replays),
    ]
    count = sum(body["count"] for body in replays)
    return write_receipts([*bodies, {"k": "footer", "captures": 2, "replays": count, "inspections": 2, "problems": 0}])


def test_replays_count_inside_windows_only() -> None:
    windows = [Window("a", 100, 200), Window("b", 300, 400)]
    data = receipts(
        {"o": 5, "to": 9, "t0": 10, "t1": 20, "cycle": [0, 1], "count": 5},  # warm-up
        {"o": 10, "to": 14, "t0": 110, "t1": 120, "cycle": [0, 1], "count": 5},
        {"o": 15, "to": 16, "t0": 310, "t1": 320, "cycle": [0, 1], "count": 2},
        {"o": 17, "to": 18, "t0": 190, "t1": 310, "cycle": [0, 1], "count": 2},  # over the pause: no set's own
        {"o": 19, "to": 20, "t0": 500, "t1": 510, "cycle": [0, 1], "count": 2},  # after the traffic
    )
    seen = observe(read_receipts(data), windows)
    assert seen.problems == [] and seen.undecided == set()
    assert seen.in_windows == {0: 5, 1: 4}
    assert seen.labels_replayed() == {"target:decode@1": 4}
    assert seen.labels_replayed("b") == {"target:decode@1": 1}


def test_a_run_across_an_edge_or_without_time_is_undecided() -> None:
    windows = [Window("a", 100, 200)]
    across = observe(
        read_receipts(receipts({"o": 5, "to": 6, "t0": 190, "t1": 210, "cycle": [0], "count": 2})), windows
    )
    assert across.undecided == {0} and across.in_windows == {}
    timeless = observe(
        read_receipts(receipts({"o": 5, "to": 6, "t0": None, "t1": None, "cycle": [0], "count": 2})), windows
    )
    assert timeless.undecided == {0}


def test_a_footer_that_counts_otherwise_is_a_problem() -> None:
    data = receipts({"o": 5, "to": 6, "t0": 110, "t1": 120, "cycle": [0], "count": 2})
    lines = data.splitlines(keepends=True)
    seen = observe(read_receipts(b"".join(lines[:-2] + lines[-1:])), [Window("a", 100, 200)])
    assert not seen.whole
