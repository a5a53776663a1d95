"""The lifetime verdict: did every replay find the memory that its capture saw? A pure function of the receipts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sgl_graph.analyzer.reconcile.lifetime_worker import WorkerJudge
from sgl_graph.analyzer.records.ledger import Finding
from sgl_graph.analyzer.records.receipts import WorkerReceipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult, Verdict, WorkerLifetime

#: From the strongest: a definite fault stays one whatever else is missing; a gap outweighs a hazard.
_PRECEDENCE = (Verdict.FAIL, Verdict.INCOMPLETE, Verdict.INCONCLUSIVE)


def lifetime_verdict(
    workers: Iterable[WorkerReceipts], *, expected_workers: Sequence[str] | None = None
) -> LifetimeResult:
    """Judge the receipts of all workers of one run.

    Args:
        workers: Receipts, each read once from start to end.
        expected_workers: Names that must be among them; None when nothing says which workers there were.
    """
    judges = sorted((WorkerJudge(receipts).read() for receipts in workers), key=lambda judge: judge.worker)
    results = [judge.result() for judge in judges]
    found = [finding for judge in judges for finding in judge.findings]
    findings = tuple(
        sorted(found, key=lambda finding: finding.severity)
    )  # definite before hazard, else as they were met
    gaps = _gaps(judges, results, expected_workers)
    value = next((v for v in _PRECEDENCE if any(r.value is v for r in results)), None)
    if value is not Verdict.FAIL and gaps:
        value = Verdict.INCOMPLETE
    if value is None:
        value = Verdict.PASS if any(r.value is Verdict.PASS for r in results) else Verdict.NOT_RUN
    return LifetimeResult(
        value=value,
        reason=_reason(value, results, findings, gaps),
        findings=findings,
        outside=tuple(entry for judge in judges for entry in judge.outside()),
        workers=tuple(results),
    )


def _gaps(judges: list[WorkerJudge], results: list[WorkerLifetime], expected: Sequence[str] | None) -> list[str]:
    gaps = [f"worker {result.worker}: {why}" for result in results for why in result.incomplete]
    names = Counter(judge.worker for judge in judges)
    gaps += [f"worker {name} has {count} receipt files" for name, count in sorted(names.items()) if count > 1]
    gaps += [f"worker {name} left no receipts" for name in sorted(set(expected or ()) - set(names))]
    if not judges:
        gaps.append("no worker left receipts: the probe was silent")
    runs = {judge.run for judge in judges}
    if len(runs) > 1:
        gaps.append(f"receipts of different runs: {', '.join(sorted(str(run) for run in runs))}")
    return gaps


def _reason(value: Verdict, results: list[WorkerLifetime], findings: tuple[Finding, ...], gaps: list[str]) -> str:
    if value in (Verdict.FAIL, Verdict.INCONCLUSIVE):
        severity = "definite" if value is Verdict.FAIL else "hazard"
        chosen = [finding for finding in findings if finding.severity == severity]
        return chosen[0].text + (f" (and {len(chosen) - 1} more)" if len(chosen) > 1 else "")
    if value is Verdict.INCOMPLETE:
        return gaps[0] + (f" (and {len(gaps) - 1} more)" if len(gaps) > 1 else "")
    if value is Verdict.NOT_RUN:
        return (
            "no graph was captured" if not any(r.captures for r in results) else "captured graphs were never replayed"
        )
    return "clean: " + _counts([result for result in results if result.captures])


def _counts(active: list[WorkerLifetime]) -> str:
    numbers = {(r.captures, r.replays, r.inspections) for r in active}
    if len(numbers) == 1:
        ((captures, replays, inspections),) = numbers
        return f"{captures} captures, {replays} replays, {inspections} inspections per worker"
    each = (f"{r.worker}: {r.captures} captures, {r.replays} replays, {r.inspections} inspections" for r in active)
    return "per worker " + "; ".join(each)
