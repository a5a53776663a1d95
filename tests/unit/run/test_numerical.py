"""The numerical verdict by its table: difference, control, repetition, missing and damaged answers."""

from __future__ import annotations

from typing import Any

import pytest
from sgl_graph.analyzer.reconcile.agreement import agreement
from sgl_graph.analyzer.reconcile.numerical import NumericalResult, numerical_verdict
from sgl_graph.analyzer.records.ledger import Agreement, LaunchOutcome
from sgl_graph.analyzer.records.outputs import OutputSet
from sgl_graph.analyzer.records.plan import Plan, Tolerance

from .builders import RAN, answers, plan, request_set

A, B = [1, 2, 3], [1, 9, 3]


def judge(
    made: Plan, given: dict[str, dict[str, OutputSet]], captured: int | None = 0, **launches: Any
) -> NumericalResult:
    return numerical_verdict(made, given, {**RAN, **launches}, eager_captured=captured)


def given(eager: list[int], ordinary: list[int], **more: OutputSet) -> dict[str, dict[str, OutputSet]]:
    found = {
        "eager": {"s": answers("eager", "s", eager, decode=[1])},
        "ordinary": {"s": answers("ordinary", "s", ordinary)},
    }
    for name, one in more.items():
        found.setdefault(name.replace("_", "-"), {})[one.set] = one
    return found


def control_plan(**more: Any) -> Plan:
    return plan(request_set("s"), request_set("s~control", 4, purpose="control", of="s"), control=True, **more)


def test_equal_answers_pass_and_say_how_many() -> None:
    verdict = judge(plan(request_set("s")), given(A, A)).verdict
    assert (verdict.value, verdict.reason) == ("PASS", "3 tokens of 1 requests agree")
    assert verdict.control.status == "not run"


def test_a_difference_fails_and_names_request_position_and_tops() -> None:
    result = judge(plan(request_set("s", labels=["target:decode"])), given(A, B))
    assert result.verdict.value == "FAIL"
    assert result.verdict.first_difference is not None
    assert {k: result.verdict.first_difference[k] for k in ("set", "request", "position", "reference", "observed")} == {
        "set": "s", "request": 0, "position": 1, "reference": 2, "observed": 9,
    }  # fmt: skip
    assert [(f.code, f.severity, f.label) for f in result.findings] == [("answers-differ", "definite", "target:decode")]


@pytest.mark.parametrize(
    ("control", "sizes", "value", "status"),
    [
        (A, [4], "FAIL", "applied"),  # the control agrees: nothing excuses the difference
        (B, [4], "INCONCLUSIVE", "applied"),  # it differs there too
        (A, [1], "FAIL", "unusable"),  # the batch did not change
        (A, [], "FAIL", "unusable"),  # nobody saw the batch
        (B, [1], "INCONCLUSIVE", "unusable"),  # eager contradicts itself at the same batch
    ],
)
def test_the_control_excuses_only_what_differs_there_too(
    control: list[int], sizes: list[int], value: str, status: str
) -> None:
    made = given(A, B)
    made["eager"]["s~control"] = answers("eager", "s~control", control, A, A, A, decode=sizes)
    verdict = judge(control_plan(), made).verdict
    assert (verdict.value, verdict.control.status) == (value, status)


def test_the_control_never_makes_a_pass_and_never_takes_one() -> None:
    made = given(A, A)
    made["eager"]["s~control"] = answers("eager", "s~control", B, A, A, A, decode=[4])
    assert judge(control_plan(), made).verdict.value == "PASS"


def test_an_excuse_covers_its_own_request_only() -> None:
    made = plan(
        request_set("s", 2), request_set("s~control", 2, purpose="control", of="s", send="single"), control=True
    )
    outputs = {
        "eager": {
            "s": answers("eager", "s", A, A, decode=[2]),
            "s~control": answers("eager", "s~control", B, A, decode=[1]),
        },
        "ordinary": {"s": answers("ordinary", "s", B, B)},
    }
    result = judge(made, outputs)
    assert result.verdict.value == "FAIL"
    assert {(f.severity, f.text.split(",")[1]) for f in result.findings} == {
        ("hazard", " request 0"), ("definite", " request 1"),
    }  # fmt: skip


@pytest.mark.parametrize("ordinary", [A, B])
def test_a_reference_that_differs_from_itself_settles_nothing(ordinary: list[int]) -> None:
    made = given(A, ordinary, eager_repeat=answers("eager-repeat", "s", [1, 2, 8]))
    verdict = judge(plan(request_set("s"), repeat_reference=True), made).verdict
    assert (verdict.value, verdict.control.status) == ("INCONCLUSIVE", "unusable")


def test_missing_short_or_damaged_answers_are_incomplete() -> None:
    made = plan(request_set("s"))
    assert judge(made, {"eager": given(A, A)["eager"]}).verdict.value == "INCOMPLETE"
    assert judge(made, given(A, [1, 2])).verdict.value == "INCOMPLETE"
    damaged = given(A, A)
    one = damaged["ordinary"]["s"]
    request = one.requests[0].model_copy(update={"output_ids": [1, 2, 4]})
    damaged["ordinary"]["s"] = one.model_copy(update={"requests": [request]})
    verdict = judge(made, damaged).verdict
    assert verdict.value == "INCOMPLETE"
    assert "digest" in verdict.reason
    assert judge(plan(), {}).verdict.value == "INCOMPLETE"


def test_an_eager_launch_with_graphs_is_no_reference() -> None:
    assert judge(plan(request_set("s")), given(A, A), captured=3).verdict.value == "INCOMPLETE"


def test_a_skipped_launch_is_not_run_and_a_failed_one_incomplete() -> None:
    made = plan(request_set("s"), skipped={"eager": "--skip-eager"})
    assert judge(made, given(A, A)).verdict.value == "NOT-RUN"
    failed = LaunchOutcome(state="failed", reason="out of memory")
    verdict = judge(plan(request_set("s")), given(A, A), ordinary=failed).verdict
    assert verdict.value == "INCOMPLETE"
    assert "out of memory" in verdict.reason


@pytest.mark.parametrize(
    ("tolerance", "value", "expected"),
    [
        (Tolerance(kind="token-ids"), -0.6, "PASS"),
        (Tolerance(kind="bitwise"), -0.5, "PASS"),
        (Tolerance(kind="bitwise"), -0.5000000001, "FAIL"),
        (Tolerance(kind="logprobs", atol=0.2), -0.6, "PASS"),
        (Tolerance(kind="logprobs", atol=0.05), -0.6, "FAIL"),
        (Tolerance(kind="logprobs", rtol=0.3), -0.6, "PASS"),
        (Tolerance(kind="logprobs", atol=1.0), "NaN", "FAIL"),
        (Tolerance(kind="logprobs", atol=1.0), None, "INCOMPLETE"),
    ],
)
def test_kinds(tolerance: Tolerance, value: Any, expected: str) -> None:
    made = given(A, A)
    made["ordinary"]["s"] = answers("ordinary", "s", A, logprobs={0: [-0.5, value, -0.5]})
    assert judge(plan(request_set("s"), tolerance=tolerance), made).verdict.value == expected


def test_agreement_has_four_values() -> None:
    made = plan(request_set("s"))
    outputs = given(A, A, instrumented=answers("instrumented", "s", A))
    same, findings = agreement(made, outputs, RAN)
    assert (same.status, same.value, findings) == ("newly recomputed", "agrees", [])
    outputs["instrumented"]["s"] = answers("instrumented", "s", B)
    other, findings = agreement(made, outputs, RAN)
    assert (other.status, other.value) == ("newly recomputed", "differs")
    assert [f.severity for f in findings] == ["hazard"]
    claim = Agreement(status="newly recomputed", value="agrees")
    assert agreement(made, outputs, RAN, recorded=claim)[0].status == "rejected"
    assert agreement(plan(skipped={"ordinary": "x"}), outputs, RAN)[0].status == "unavailable"
    failed = {**RAN, "instrumented": LaunchOutcome(state="failed", reason="gone")}
    assert agreement(made, outputs, failed)[0].status == "unavailable"
