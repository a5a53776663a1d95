"""Everything that a run left behind, put together into one ledger; pure, so that an archive gives the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.reconcile.agreement import agreement
from sgl_graph.analyzer.reconcile.coverage import coverage_verdict
from sgl_graph.analyzer.reconcile.dispatch import dispatch_table
from sgl_graph.analyzer.reconcile.drift import drift
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.reconcile.numerical import numerical_verdict
from sgl_graph.analyzer.reconcile.observation import WorkerObservation
from sgl_graph.analyzer.reconcile.observed import path_rows
from sgl_graph.analyzer.reconcile.worker_source import SourceStatement, worker_source
from sgl_graph.analyzer.records.base import canonical_json
from sgl_graph.analyzer.records.ledger import (
    UNKNOWN,
    Agreement,
    Configuration,
    Identity,
    LaunchOutcome,
    Ledger,
    LedgerWorker,
    LifetimeVerdict,
    NumericalVerdict,
    Status,
    Verdicts,
)
from sgl_graph.analyzer.records.outputs import OutputSet
from sgl_graph.analyzer.records.plan import Plan
from sgl_graph.analyzer.records.verdicts import LifetimeResult

#: Launches that answer the request sets as the user serves them.
_COMPARED = ("ordinary", "instrumented")


@dataclass
class Evidence:
    """What was planned and what is there of it."""

    plan: Plan
    launches: Mapping[str, LaunchOutcome]
    answers: Mapping[str, Mapping[str, OutputSet]] = field(default_factory=dict)
    workers: Sequence[WorkerObservation] = ()
    lifetime: LifetimeResult | None = None
    view: MapView | None = None
    server_info: Mapping[str, Any] | None = None
    #: sha256 of each module of the checkout, by dotted name; None when it was not kept.
    source_index: Mapping[str, str] | None = None
    #: sha256 of each file that the lifetime and coverage verdicts rest on.
    file_digests: Mapping[str, str] = field(default_factory=dict)
    identities: Mapping[str, Any] = field(default_factory=dict)
    #: Graphs captured by the eager launch; None when nothing observed it.
    eager_captured: int | None = None
    limitations: Sequence[str] = ()
    tool_digest: str = UNKNOWN
    #: Settings that the launches set otherwise than the command.
    overridden: Sequence[str] = ()


def assemble(
    evidence: Evidence,
    *,
    job: str,
    run_dir: str,
    read_file: str,
    status: Status = "recorded",
    recorded_agreement: Agreement | None = None,
) -> Ledger:
    """The ledger of this evidence.

    Args:
        evidence: What was planned and what is there of it.
        job: The words of the report's first line.
        run_dir: The archive.
        read_file: Which file of it was read.
        status: How the verdicts of lifetime and coverage came about.
        recorded_agreement: The archive's own claim when it is recomputed.
    """
    plan = evidence.plan
    source = _mapped_source(evidence, worker_source(evidence.workers, evidence.source_index))
    identity = Identity(
        status=status,
        tool_digest=evidence.tool_digest,
        evidence_digest=evidence_digest(evidence.file_digests),
        worker_source=source.status,
    )
    lifetime = _lifetime(evidence, identity)
    if plan.mode == "program":
        numerical_value = NumericalVerdict(
            value="NOT-RUN",
            kind=plan.tolerance.text(),
            evidence="none",
            reason="a program has no eager launch to compare with",
        )
        numerical_findings = []
    else:
        numerical = numerical_verdict(plan, evidence.answers, evidence.launches, eager_captured=evidence.eager_captured)
        numerical_value, numerical_findings = numerical.verdict, numerical.findings
    coverage = coverage_verdict(plan, evidence.workers, evidence.launches, identity)
    agreed, agreement_findings = agreement(plan, evidence.answers, evidence.launches, recorded=recorded_agreement)
    differences = drift(evidence.view, evidence.workers, evidence.server_info, evidence.overridden)
    rows = path_rows(evidence.view, evidence.workers) if evidence.view else []
    lifetime_findings = list(evidence.lifetime.findings) if evidence.lifetime else []
    return Ledger(
        job=job,
        run_id=plan.run_id,
        run_dir=run_dir,
        read_file=read_file,
        configuration=_configuration(evidence),
        launches=dict(evidence.launches),
        verdicts=Verdicts(lifetime=lifetime, numerical=numerical_value, coverage=coverage.verdict),
        agreement=agreed,
        provenance=source.text,
        workers=_workers(evidence, source),
        findings=[*lifetime_findings, *numerical_findings, *coverage.findings, *agreement_findings],
        outside=list(evidence.lifetime.outside) if evidence.lifetime else [],
        drift=differences,
        execution_path={
            "dispatch": dispatch_table(evidence.view, evidence.server_info) if evidence.view else [],
            "unexecuted": [row["name"] for row in rows if not row["captured"]],
            "unverified": [row["name"] for row in rows if row["status"] == "unverified" and row["captured"]],
            "refuted": [row["name"] for row in rows if row["status"] == "refuted"],
            "server_info": "reported" if evidence.server_info else UNKNOWN,
        },
        path_map={
            "file": "map.json" if evidence.view else UNKNOWN,
            "digest": plan.map_digest or UNKNOWN,
            "paths": rows,
        },
        overhead=overhead(plan, evidence.answers),
        limitations=[*_not_run(evidence), *evidence.limitations],
    )


def _mapped_source(evidence: Evidence, source: SourceStatement) -> SourceStatement:
    """The statement on worker source; a map of another source than the checkout's is not the workers' map."""
    mapped = evidence.view.checkout_digest if evidence.view else None
    served = evidence.plan.checkout.get("source_digest")
    # Only a real digest can contradict: a map written by hand need not have one.
    if mapped is None or served is None or len(mapped) != 64 or mapped == served:
        return source
    text = f"the map was made from other source ({mapped[:12]}) than this checkout ({served[:12]}); {source.text}"
    return SourceStatement("differs", text, source.by_worker)


def evidence_digest(files: Mapping[str, str]) -> str:
    """One digest over the digests of the files that a verdict rests on; `unknown` when there are none."""
    if not files:
        return UNKNOWN
    return hashlib.sha256(canonical_json(dict(files))).hexdigest()


def overhead(plan: Plan, answers: Mapping[str, Mapping[str, OutputSet]]) -> dict[str, Any]:
    """Tokens a second, ordinary and instrumented, over the sets that both answered."""
    seconds = dict.fromkeys(_COMPARED, 0.0)
    tokens = 0
    for request_set in plan.request_sets:
        pair = [answers.get(name, {}).get(request_set.name) for name in _COMPARED]
        if request_set.purpose != "main" or any(one is None for one in pair):
            continue
        for name, one in zip(_COMPARED, pair, strict=True):
            assert one is not None
            seconds[name] += one.seconds
        first = pair[0]
        assert first is not None
        tokens += sum(len(r.output_ids) for r in first.requests)
    if not tokens or min(seconds.values()) <= 0:
        return {}
    rates = {name: round(tokens / seconds[name], 3) for name in _COMPARED}
    return {
        "tokens": tokens,
        "ordinary_tokens_per_second": rates["ordinary"],
        "instrumented_tokens_per_second": rates["instrumented"],
        "ratio": round(seconds["ordinary"] / seconds["instrumented"], 4),
    }


def _lifetime(evidence: Evidence, identity: Identity) -> LifetimeVerdict:
    plan = evidence.plan
    if "instrumented" in plan.skipped:
        return LifetimeVerdict(value="NOT-RUN", identity=identity, reason="the instrumented launch was skipped")
    result = evidence.lifetime
    outcome = evidence.launches.get("program" if plan.mode == "program" else "instrumented")
    if result is None:
        why = _outcome_reason(outcome)
        return LifetimeVerdict(value="INCOMPLETE", identity=identity, reason=f"no receipts: {why}")
    value, reason = str(result.value), result.reason
    doubts = []
    if outcome is None or outcome.state != "ran":
        doubts.append(f"the watched launch did not finish: {_outcome_reason(outcome)}")
    for expected in plan.workers:
        present = sum(1 for w in evidence.workers if w.role == expected.role)
        if expected.count is not None and present < expected.count:
            doubts.append(f"{present} of {expected.count} {expected.role} workers wrote receipts")
    if value == "NOT-RUN" and plan.mode == "program" and outcome is not None and outcome.reason:
        reason = f"{reason}; the program ended with {outcome.reason}"
    # A fault that was seen stays seen; only what rests on absence needs all of the evidence.
    if doubts and value in ("PASS", "NOT-RUN"):
        value, reason = "INCOMPLETE", "; ".join(doubts)
    return LifetimeVerdict.model_validate(
        {
            "value": value,
            "identity": identity,
            "reason": reason,
            "evidence": {
                "files": sorted(evidence.file_digests),
                "workers": {
                    w.worker: {"captures": w.captures, "replays": w.replays, "inspections": w.inspections}
                    for w in result.workers
                },
                "incomplete": [f"{w.worker}: {text}" for w in result.workers for text in w.incomplete],
            },
        }
    )


def _outcome_reason(outcome: LaunchOutcome | None) -> str:
    if outcome is None:
        return "it was not launched"
    return outcome.reason or ("no worker wrote any" if outcome.state == "ran" else outcome.state)


def _workers(evidence: Evidence, source: SourceStatement) -> list[LedgerWorker]:
    judged = {w.worker: w for w in evidence.lifetime.workers} if evidence.lifetime else {}
    found = []
    for worker in evidence.workers:
        verdict = judged.get(worker.id)
        found.append(
            LedgerWorker(
                id=worker.id,
                role=worker.role,
                rank=worker.rank if worker.rank is not None else UNKNOWN,
                source={
                    "root": worker.root or UNKNOWN,
                    "version": worker.version or UNKNOWN,
                    "modules": len(worker.modules),
                    "status": source.by_worker.get(worker.id, "unknown"),
                },
                captures=len(worker.captures),
                replays=worker.replays,
                inspections=verdict.inspections if verdict else sum(1 for c in worker.captures if c.complete),
                footer=worker.footer or "none",
                replayed=dict(sorted(worker.labels_replayed().items())),
            )
        )
    return found


def _configuration(evidence: Evidence) -> Configuration:
    plan = evidence.plan
    devices = evidence.identities.get("gpus")
    return Configuration(
        command=" ".join(plan.command),
        env=plan.env,
        gpus=[str(item) for item in devices] if isinstance(devices, list) else UNKNOWN,
        checkout=plan.checkout or UNKNOWN,
        tool_digest=evidence.tool_digest,
        device=f"{plan.device.kind} ({plan.device.source})",
        identities=dict(evidence.identities),
    )


def _not_run(evidence: Evidence) -> list[str]:
    """What skipped and failed launches leave out."""
    leaves = {
        "eager": "no reference: numerical is not judged",
        "eager-repeat": "the reference was not repeated",
        "ordinary": "numerical is not judged and agreement is unavailable",
        "instrumented": "no receipts: lifetime and coverage are not judged, agreement is unavailable",
    }
    found = [f"{name} skipped ({why}): {leaves.get(name, '')}" for name, why in evidence.plan.skipped.items()]
    for name, outcome in evidence.launches.items():
        if outcome.state == "failed":
            found.append(f"{name} failed: {outcome.reason}")
        elif evidence.plan.mode == "program" and outcome.reason:
            found.append(f"the program ended with {outcome.reason}: what it did not reach is not judged")
    refusals = dict.fromkeys(o.without_logprobs for o in evidence.launches.values() if o.without_logprobs)
    found += [f"no log-probabilities, the server refuses requests for them: {text}" for text in refusals]
    found += [f"gap accepted: {text}" for text in evidence.plan.gaps if evidence.plan.gaps_accepted]
    return [*found, *evidence.plan.notes]
