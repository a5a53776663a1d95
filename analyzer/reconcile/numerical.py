"""The numerical verdict: the ordinary server against the eager one, and what the control says about a difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sgl_graph.analyzer.reconcile.comparison import Comparison, Difference, compare
from sgl_graph.analyzer.reconcile.run_codes import ANSWERS_DIFFER, ANSWERS_UNSETTLED, RUN_CODES
from sgl_graph.analyzer.records.ledger import Control, Finding, LaunchOutcome, NumericalVerdict
from sgl_graph.analyzer.records.outputs import LEGACY_SCHEMA, OutputSet
from sgl_graph.analyzer.records.plan import Plan, RequestSet

Answers = Mapping[str, OutputSet]


@dataclass
class NumericalResult:
    """The verdict, its findings, and the comparison it rests on."""

    verdict: NumericalVerdict
    findings: list[Finding] = field(default_factory=list)
    comparison: Comparison | None = None


def numerical_verdict(
    plan: Plan, answers: Mapping[str, Answers], launches: Mapping[str, LaunchOutcome], *, eager_captured: int | None
) -> NumericalResult:
    """Judge the ordinary launch against the eager one.

    Args:
        plan: The declared kind, sets and control; nothing else is compared.
        answers: Answers by launch, then by set.
        launches: What became of each launch.
        eager_captured: Graphs that the eager launch captured, when that was observed; None when it was not.
    """
    kind = plan.tolerance.text()
    skipped = [name for name in ("eager", "ordinary") if name in plan.skipped]
    if skipped:
        reason = f"{' and '.join(skipped)} skipped: there is nothing to compare"
        return NumericalResult(NumericalVerdict(value="NOT-RUN", kind=kind, evidence="none", reason=reason))
    main = [s for s in plan.request_sets if s.purpose == "main"]
    failed = _failures(launches, ("eager", "ordinary"))
    comparison = compare(answers.get("eager", {}), answers.get("ordinary", {}), main, plan.tolerance)
    control = _control(plan, answers, main)
    if failed or not comparison.complete:
        reason = "; ".join([*failed, *comparison.problems[:3]]) or "no answer was planned"
        return NumericalResult(
            NumericalVerdict(
                value="INCOMPLETE", kind=kind, evidence="incomplete", reason=reason, control=control.record
            ),
            comparison=comparison,
        )
    if eager_captured:
        reason = f"the eager launch captured {eager_captured} graphs: it is no reference"
        return NumericalResult(
            NumericalVerdict(
                value="INCOMPLETE", kind=kind, evidence="incomplete", reason=reason, control=control.record
            ),
            comparison=comparison,
        )
    unstable = control.unstable or _repeated(plan, answers, main, launches)
    if any(found.legacy for name in ("eager", "ordinary") for found in answers.get(name, {}).values()):
        return _unproven(plan, comparison, control)
    return _judge(plan, comparison, control, unstable)


@dataclass
class _ControlResult:
    record: Control
    differs: frozenset[tuple[str, int]] = frozenset()
    #: Set when eager contradicts itself although the batch sizes were the same.
    unstable: str | None = None


def _judge(plan: Plan, comparison: Comparison, control: _ControlResult, unstable: str | None) -> NumericalResult:
    kind = plan.tolerance.text()
    excused = [d for d in comparison.differences if (d.set, d.request) in control.differs]
    proven = [d for d in comparison.differences if (d.set, d.request) not in control.differs]
    first = next(iter([*proven, *excused]), None)
    size = f"{comparison.tokens} tokens of {comparison.requests} requests"
    record = control.record
    if unstable:
        record = Control(status="unusable", reason=unstable)
        value, reason = "INCONCLUSIVE", unstable
    elif proven:
        value, reason = "FAIL", f"{len(proven)} of {comparison.requests} requests differ; first: {proven[0].text()}"
    elif excused:
        value = "INCONCLUSIVE"
        reason = (
            f"{len(excused)} of {comparison.requests} requests differ, and eager differs there too under another "
            f"batch composition; first: {excused[0].text()}"
        )
    else:
        value, reason = "PASS", f"{size} agree"
    findings = [_finding(plan, d, certain=not unstable and d in proven) for d in comparison.differences[:8]]
    verdict = NumericalVerdict.model_validate(
        {
            "value": value,
            "kind": kind,
            "reason": reason,
            "control": record,
            "first_difference": first.record() if first else None,
            "differences": len(comparison.differences),
        }
    )
    return NumericalResult(verdict, findings, comparison)


def _unproven(plan: Plan, comparison: Comparison, control: _ControlResult) -> NumericalResult:
    """Answers without digests: whoever kept them may have changed them, whatever they say."""
    found = (
        f"{len(comparison.differences)} of {comparison.requests} requests differ"
        if comparison.differences
        else (f"{comparison.tokens} tokens of {comparison.requests} requests agree")
    )
    first = comparison.differences[0].record() if comparison.differences else None
    verdict = NumericalVerdict.model_validate(
        {
            "value": "INCONCLUSIVE",
            "kind": plan.tolerance.text(),
            "evidence": "unverified-legacy",
            "reason": f"{found}, and answers of {LEGACY_SCHEMA} carry no digests that could prove it",
            "control": control.record,
            "first_difference": first,
            "differences": len(comparison.differences),
        }
    )
    findings = [_finding(plan, d, certain=False) for d in comparison.differences[:8]]
    return NumericalResult(verdict, findings, comparison)


def _finding(plan: Plan, difference: Difference, *, certain: bool) -> Finding:
    code = ANSWERS_DIFFER if certain else ANSWERS_UNSETTLED
    return Finding(
        code=code,
        severity=RUN_CODES[code].severity,
        label=", ".join(plan.set_named(difference.set).labels) or "unknown",
        text=difference.text(),
        next_step=RUN_CODES[code].remedy,
    )


def _failures(launches: Mapping[str, LaunchOutcome], names: Sequence[str]) -> list[str]:
    found = []
    for name in names:
        outcome = launches.get(name)
        if outcome is None:
            found.append(f"{name} was not launched")
        elif outcome.state != "ran":
            found.append(f"{name} {outcome.state}: {outcome.reason}")
    return found


def _repeated(
    plan: Plan, answers: Mapping[str, Answers], main: Sequence[RequestSet], launches: Mapping[str, LaunchOutcome]
) -> str | None:
    """Why the reference cannot be relied on, or None."""
    if not plan.repeat_reference:
        return None
    failed = _failures(launches, ("eager-repeat",))
    again = compare(answers.get("eager", {}), answers.get("eager-repeat", {}), main, plan.tolerance)
    if failed or not again.complete:
        return "the repeated reference could not be compared: " + "; ".join([*failed, *again.problems[:2]])
    if again.differences:
        return f"the repeated reference differs from itself: {again.differences[0].text()}"
    return None


def _control(plan: Plan, answers: Mapping[str, Answers], main: Sequence[RequestSet]) -> _ControlResult:
    """Eager against itself under another batch composition."""
    pairs = {s.of: s.name for s in plan.request_sets if s.purpose == "control" and s.of}
    if not plan.control or not pairs:
        return _ControlResult(Control(status="not run", reason="" if plan.control else "not asked for (--control)"))
    eager = answers.get("eager", {})
    covered = [s for s in main if s.name in pairs]
    result = compare(eager, eager, covered, plan.tolerance, names=pairs)
    if not result.complete:
        return _ControlResult(
            Control(status="unusable", reason="; ".join(result.problems[:2]) or "no answers"), result.where()
        )
    changed, same, unseen = [], [], []
    for request_set in covered:
        before, after = eager[request_set.name].batches, eager[pairs[request_set.name]].batches
        if not (before.decode or before.prefill) or not (after.decode or after.prefill):
            unseen.append(request_set.name)
        elif (sorted(set(before.decode)), sorted(set(before.prefill))) == (
            sorted(set(after.decode)),
            sorted(set(after.prefill)),
        ):
            same.append(request_set.name)
        else:
            changed.append(request_set.name)
    contradicted = [d for d in result.differences if d.set in same]
    unstable = f"eager differs from itself at the same batch sizes: {contradicted[0].text()}" if contradicted else None
    if not changed:
        why = (
            f"batch sizes not observed in {', '.join(unseen)}" if unseen else "the observed batch sizes did not differ"
        )
        return _ControlResult(Control(status="unusable", reason=why), unstable=unstable)
    note = f"batch sizes differed in {len(changed)} of {len(covered)} sets"
    differs = frozenset(pair for pair in result.where() if pair[0] in changed)
    return _ControlResult(
        Control(status="applied", reason=f"{note}; eager differs in {len(differs)} requests"), differs, unstable
    )
