"""Agreement: did the instrumented server answer as the ordinary one did? Stands beside the verdicts, moves none."""

from __future__ import annotations

from collections.abc import Mapping

from sgl_graph.analyzer.reconcile.comparison import compare
from sgl_graph.analyzer.reconcile.run_codes import RUN_CODES, WATCHING_DIFFERS
from sgl_graph.analyzer.records.ledger import Agreement, Finding, LaunchOutcome
from sgl_graph.analyzer.records.outputs import LEGACY_SCHEMA, OutputSet
from sgl_graph.analyzer.records.plan import Plan


def agreement(
    plan: Plan,
    answers: Mapping[str, Mapping[str, OutputSet]],
    launches: Mapping[str, LaunchOutcome],
    *,
    recorded: Agreement | None = None,
) -> tuple[Agreement, list[Finding]]:
    """Compare instrumented with ordinary answers.

    Args:
        plan: The declared kind and sets.
        answers: Answers by launch, then by set.
        launches: What became of each launch.
        recorded: The claim of an archive, when one is recomputed: a contradiction rejects it.
    """
    if plan.mode == "program":
        return Agreement(status="unavailable", reason="a program is run once"), []
    for name in ("ordinary", "instrumented"):
        if name in plan.skipped:
            return Agreement(status="unavailable", reason=f"{name} skipped"), []
        outcome = launches.get(name)
        if outcome is None or outcome.state != "ran":
            why = outcome.reason if outcome else "not launched"
            return Agreement(status="unavailable", reason=f"{name} did not finish: {why}"), []
    main = [s for s in plan.request_sets if s.purpose == "main"]
    result = compare(answers.get("ordinary", {}), answers.get("instrumented", {}), main, plan.tolerance)
    if not result.complete:
        broken = any("digest" in problem for problem in result.problems)
        status = Agreement.model_validate(
            {
                "status": "rejected" if broken else "unavailable",
                "reason": "; ".join(result.problems[:2]) or "no answers",
            }
        )
        return status, []
    if any(found.legacy for name in ("ordinary", "instrumented") for found in answers.get(name, {}).values()):
        why = f"answers of {LEGACY_SCHEMA} carry no digests"
        if recorded is None or recorded.value == "unknown":
            return Agreement(status="unavailable", reason=why), []
        return recorded.model_copy(update={"status": "historical only", "reason": f"{recorded.reason}; {why}"}), []
    size = f"{result.tokens} tokens of {result.requests} requests"
    differs = bool(result.differences)
    reason = f"first difference: {result.differences[0].text()}" if differs else f"{size} agree"
    value = "differs" if differs else "agrees"
    if recorded is not None and recorded.value in ("agrees", "differs") and recorded.value != value:
        return Agreement.model_validate(
            {
                "status": "rejected",
                "value": value,
                "reason": f"recorded as {recorded.value}, but recomputed it {value}; {reason}",
            }
        ), []
    findings = []
    if differs:
        findings = [
            Finding(
                code=WATCHING_DIFFERS,
                severity="hazard",
                label=", ".join(plan.set_named(result.differences[0].set).labels) or "unknown",
                text=f"the instrumented server answered differently: {result.differences[0].text()}",
                next_step=RUN_CODES[WATCHING_DIFFERS].remedy,
            )
        ]
    return Agreement.model_validate({"status": "newly recomputed", "value": value, "reason": reason}), findings
