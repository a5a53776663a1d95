"""A recorded PASS held against the rest of its own ledger: one that something else in it contradicts is none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sgl_graph.analyzer.reconcile.coverage import satisfies
from sgl_graph.analyzer.reconcile.lifetime_codes import CODES
from sgl_graph.analyzer.reconcile.run_codes import ANSWERS_DIFFER, ANSWERS_UNSETTLED, LABEL_NOT_REPLAYED
from sgl_graph.analyzer.records.ledger import Finding, LaunchOutcome, Ledger

#: How each verdict words a PASS, in every release so far; no other value is worded so.
_PASS_REASONS = {
    "lifetime": re.compile(r"clean: .*\d+ captures, \d+ replays, \d+ inspections.*"),
    "numerical": re.compile(r"\d+ tokens of \d+ requests agree"),
    "coverage": re.compile(r"(\d+) of \1 required labels replayed on every worker of their role"),
}
_FINDINGS = {
    "lifetime": frozenset(CODES),
    "numerical": frozenset({ANSWERS_DIFFER, ANSWERS_UNSETTLED}),
    "coverage": frozenset({LABEL_NOT_REPLAYED}),
}
_LAUNCHES = {
    "lifetime": ("instrumented", "program"),
    "numerical": ("eager", "ordinary"),
    "coverage": ("instrumented", "program"),
}


def contradictions(ledger: Ledger) -> dict[str, str]:
    """Why a PASS of this ledger cannot be what a run recorded, by verdict; empty for an honest ledger."""
    found: dict[str, str] = {}
    for name in _PASS_REASONS:
        if getattr(ledger.verdicts, name).value == "PASS":
            why = next(_against(ledger, name), None)
            if why is not None:
                found[name] = why
    return found


def _against(ledger: Ledger, name: str) -> Iterator[str]:
    reason = getattr(ledger.verdicts, name).reason
    if not _PASS_REASONS[name].fullmatch(reason):
        yield f"its own reason is not that of a PASS: {reason[:160] or 'none'}"
    finding = next((f for f in ledger.findings if _counts_against(f, name)), None)
    if finding is not None:
        yield f"the same ledger has the finding {finding.code}: {finding.text[:160]}"
    for launch in _LAUNCHES[name]:
        outcome: LaunchOutcome | None = ledger.launches.get(launch)
        if outcome is not None and outcome.state != "ran":
            yield f"the same ledger says that {launch} {outcome.state}"
    yield from {"lifetime": _lifetime, "numerical": _numerical, "coverage": _coverage}[name](ledger)


def _counts_against(finding: Finding, name: str) -> bool:
    return finding.code in _FINDINGS[name] and finding.severity != "note"


def _lifetime(ledger: Ledger) -> Iterator[str]:
    verdict = ledger.verdicts.lifetime
    incomplete = verdict.evidence.get("incomplete")
    if incomplete:
        yield f"the same verdict lists incomplete evidence: {str(incomplete)[:160]}"
    if verdict.identity.status == "rejected":
        yield "the same verdict is marked as rejected"


def _numerical(ledger: Ledger) -> Iterator[str]:
    verdict = ledger.verdicts.numerical
    if verdict.differences or verdict.first_difference:
        yield f"the same verdict counts {max(verdict.differences, 1)} differences"


def _coverage(ledger: Ledger) -> Iterator[str]:
    verdict = ledger.verdicts.coverage
    if verdict.identity.status == "rejected":
        yield "the same verdict is marked as rejected"
    if verdict.missing:
        yield f"the same verdict lists labels that were not replayed: {', '.join(sorted(verdict.missing)[:4])}"
    open_ = [item for item in verdict.required if not any(satisfies(label, item) for label in verdict.replayed)]
    if open_ or not verdict.required:
        yield f"the same verdict lists no replay of {', '.join(open_[:4]) or 'any required label'}"
