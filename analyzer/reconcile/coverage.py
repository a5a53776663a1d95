"""The coverage verdict: was each required label replayed by the planned traffic, on every worker of its role?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sgl_graph.analyzer.reconcile.observation import WorkerObservation
from sgl_graph.analyzer.reconcile.run_codes import LABEL_NOT_REPLAYED, RUN_CODES
from sgl_graph.analyzer.records.ledger import CoverageVerdict, Finding, Identity, LaunchOutcome, Value
from sgl_graph.analyzer.records.plan import Plan

#: Roles that hold graphs when nothing else is known of a label.
GRAPH_ROLE = "scheduler"


def requirement_of(label: str) -> str:
    """A raw label without its size: `target:decode@4` belongs to `target:decode`."""
    return label.rsplit("@", 1)[0] if "@" in label else label


def satisfies(raw: str, required: str) -> bool:
    """Whether a raw label is what a requirement asks for; a requirement with a size asks for that size."""
    return raw == required if "@" in required else requirement_of(raw) == required


@dataclass
class CoverageResult:
    """The verdict and its findings."""

    verdict: CoverageVerdict
    findings: list[Finding] = field(default_factory=list)


def coverage_verdict(
    plan: Plan, workers: Sequence[WorkerObservation], launches: Mapping[str, LaunchOutcome], identity: Identity
) -> CoverageResult:
    """Judge coverage from the receipts of the instrumented launch.

    Args:
        plan: Requirements and expected workers as declared before the launch.
        workers: Observations of every receipts file of the instrumented launch.
        launches: What became of each launch.
        identity: How the verdict was reached; its worker source decides whether labels derived from a map count.
    """
    required = list(plan.requirements.labels)
    provenance = plan.requirements.provenance
    common = _replayed_everywhere(plan, workers)
    captured = sorted(set().union(*(w.labels_captured() for w in workers)) if workers else set())
    rests = {
        "identity": identity,
        "provenance": provenance,
        "required": required,
        "replayed": sorted(label for label in common if any(satisfies(label, item) for item in required)),
        "captured_not_replayed": [label for label in captured if label not in common],
    }

    def verdict(value: Value, reason: str, missing: Mapping[str, str] | None = None) -> CoverageVerdict:
        return CoverageVerdict.model_validate({**rests, "value": value, "reason": reason, "missing": missing or {}})

    if "instrumented" in plan.skipped:
        return CoverageResult(verdict("INCOMPLETE", "the instrumented launch was skipped: no replay was observed"))
    if not required:
        return CoverageResult(verdict("INCONCLUSIVE", "nothing is required: there are no labels to cover"))
    unsent = _unsent(plan, launches)
    doubts = [*([unsent] if unsent else []), *_doubts(plan, workers)]
    proven: dict[str, str] = {}
    open_: dict[str, str] = {}
    for item in required:
        if any(satisfies(label, item) for label in common):
            continue
        why, certain = _why_missing(plan, workers, item)
        if certain and not unsent:
            proven[item] = why
        else:
            open_[item] = why
    if identity.worker_source == "differs" and provenance == "derived":
        reason = "the workers imported other source than the map was made from: its labels may not be theirs"
        return CoverageResult(verdict("INCONCLUSIVE", reason, {**proven, **open_}))
    if proven:
        reason = "; ".join(f"{label}: {why}" for label, why in list(proven.items())[:4])
        findings = [
            Finding(
                code=LABEL_NOT_REPLAYED,
                severity="definite",
                label=label,
                text=f"required label not replayed: {why}",
                next_step=RUN_CODES[LABEL_NOT_REPLAYED].remedy,
            )
            for label, why in proven.items()
        ]
        return CoverageResult(verdict("FAIL", reason, {**proven, **open_}), findings)
    if open_ or doubts:
        reason = "; ".join([*(f"{label}: {why}" for label, why in list(open_.items())[:3]), *doubts[:3]])
        return CoverageResult(verdict("INCOMPLETE", reason, open_))
    count = f"{len(required)} of {len(required)} required labels replayed"
    return CoverageResult(verdict("PASS", f"{count} on every worker of their role"))


def workers_of(plan: Plan, workers: Sequence[WorkerObservation], label: str) -> list[WorkerObservation]:
    """The workers that must replay a label."""
    role = plan.requirements.roles.get(label) or plan.requirements.roles.get(requirement_of(label)) or GRAPH_ROLE
    named = [w for w in workers if w.role == role]
    # A process that captured graphs but never told its role is not excused from them.
    return [*named, *(w for w in workers if w.role == "unknown" and w.captures)]


def _replayed_everywhere(plan: Plan, workers: Sequence[WorkerObservation]) -> set[str]:
    """Raw labels replayed, with all segments, on every worker of their role."""
    seen = set().union(*(w.labels_replayed() for w in workers)) if workers else set()
    return {label for label in seen if all(label in w.labels_replayed() for w in workers_of(plan, workers, label))}


def _why_missing(plan: Plan, workers: Sequence[WorkerObservation], item: str) -> tuple[str, bool]:
    """Why a requirement is not met, and whether whole receipts prove it."""
    concerned = workers_of(plan, workers, item)
    if not concerned:
        return "no worker of its role wrote receipts", False
    without = [w for w in concerned if not any(satisfies(label, item) for label in w.labels_replayed())]
    if not without:
        sizes = {w.shown: sorted(x for x in w.labels_replayed() if satisfies(x, item)) for w in concerned}
        text = "; ".join(f"{worker} replayed {', '.join(labels)}" for worker, labels in sizes.items())
        return f"no size was replayed on every worker: {text}", all(w.whole and not w.undecided for w in concerned)
    proof = [
        w
        for w in without
        if w.whole and not any(satisfies(label, item) for label in w.labels_undecided()) and not w.unlabelled_replays()
    ]
    worker = (proof or without)[0]
    captured = sorted(x for x in worker.labels_captured() if satisfies(x, item))
    if not proof:
        return f"{worker.shown}: the receipts cannot tell ({_doubt(worker, item)})", False
    where = worker.shown if len(without) < len(concerned) else "no worker replayed it"
    if captured:
        text = f"captured as {', '.join(captured[:4])}, never replayed"
        segments = _partly(worker, item)
        if segments:
            text += f" in all its segments ({segments})"
    else:
        text = "never captured"
        finer = sorted({requirement_of(x) for x in worker.labels_captured() if x.startswith(f"{item}/")})
        if finer:
            text += f" under that name (captured: {', '.join(finer[:4])})"
    return (f"{text} on {where}" if where == worker.shown else f"{text}: {where}"), True


def _partly(worker: WorkerObservation, item: str) -> str:
    for label, group in worker.chains():
        if label and satisfies(label, item):
            done = sum(1 for c in group if worker.in_windows.get(c.graph))
            if 0 < done < len(group):
                return f"{label}: {done} of {len(group)}"
    return ""


def _doubt(worker: WorkerObservation, item: str) -> str:
    if worker.problems:
        return worker.problems[0]
    if worker.footer is None:
        return "no footer"
    if any(satisfies(label, item) for label in worker.labels_undecided()):
        return "a replay lies across the edge of a request set"
    return "graphs without a label were replayed"


def _doubts(plan: Plan, workers: Sequence[WorkerObservation]) -> list[str]:
    """What keeps the whole from being PASS although every requirement was seen replayed."""
    found = []
    if not workers:
        found.append("no worker wrote receipts")
    for expected in plan.workers:
        present = sum(1 for w in workers if w.role == expected.role)
        if expected.count is not None and present < expected.count:
            found.append(f"{present} of {expected.count} {expected.role} workers wrote receipts")
    for worker in workers:
        if worker.problems:
            found.append(f"{worker.shown}: {worker.problems[0]}")
        elif worker.footer is None:
            found.append(f"{worker.shown}: no footer")
    return found


def _unsent(plan: Plan, launches: Mapping[str, LaunchOutcome]) -> str | None:
    """Why the planned traffic cannot be taken as sent; without all of it, absence proves nothing."""
    outcome = launches.get("instrumented")
    if outcome is None or outcome.state != "ran":
        return f"the instrumented launch did not finish: {outcome.reason if outcome else 'not launched'}"
    known = {window.set for window in outcome.windows}
    lost = [s.name for s in plan.request_sets if s.purpose == "main" and s.name not in known]
    return f"nothing says when {', '.join(lost[:3])} ran" if lost else None
