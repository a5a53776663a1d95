"""The report of a ledger: a fixed template in which every line answers one question, closed by the boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgl_graph.analyzer.records.ledger import BOUNDARIES, UNKNOWN, Drift, Finding, Ledger, NumericalVerdict
from sgl_graph.cli.render.causes import Cause, by_cause

_MOST = 12
#: What releases recorded as `verified` although nothing was.
_WITHOUT_EVIDENCE = {"NOT-RUN": "none", "NOT-RECOMPUTED": "none", "INCOMPLETE": "incomplete"}


def report_text(ledger: Ledger) -> str:
    """The report as plain text: `report.md` and the terminal show the same words."""
    parts = ["\n".join(template_lines(ledger))]
    if ledger.findings:
        causes = by_cause(ledger.findings)
        parts.append("\n".join(["Findings:", *(line for cause in causes[:_MOST] for line in cause_lines(cause))]))
        if len(causes) > _MOST:
            hidden = sum(len(cause.findings) for cause in causes[_MOST:])
            parts.append(
                f"... and {_counted(hidden, 'more finding')} of {_counted(len(causes) - _MOST, 'cause')} in ledger.json"
            )
    if ledger.drift:
        lines = ["Drift (moves no verdict):", *(f"- {drift_line(d)}" for d in ledger.drift[:_MOST])]
        if len(ledger.drift) > _MOST:
            lines.append(f"- ... and {len(ledger.drift) - _MOST} more in ledger.json")
        parts.append("\n".join(lines))
    parts.append("\n".join(["Boundaries:", *(f"- {sentence}" for sentence in ledger.boundaries or BOUNDARIES)]))
    return "\n\n".join(parts) + "\n"


def markdown(ledger: Ledger) -> str:
    """`report.md`: the template in a fence that keeps its lines, then the path table, workers, findings and drift, then the boundaries."""
    parts = ["\n".join(["```text", *template_lines(ledger), "```"])]
    rows = ledger.path_map.get("paths") or []
    if rows:
        parts += ["## Path map", _table(PATH_COLUMNS, [path_cells(row) for row in rows])]
    if ledger.workers:
        cells = [
            [w.id, w.role, str(w.captures), str(w.replays), str(w.inspections), w.footer, _counts(w.replayed)]
            for w in ledger.workers
        ]
        header = ("worker", "role", "captures", "replays", "inspections", "footer", "replayed in the request sets")
        parts += ["## Workers", _table(header, cells)]
    if ledger.findings:
        parts += ["## Findings", *("\n".join(cause_lines(cause)) for cause in by_cause(ledger.findings))]
    if ledger.outside:
        cells = [[o.worker, o.label, o.kind, o.kernel, str(o.count)] for o in ledger.outside]
        parts += [
            "## Outside the guarantee",
            _table(("worker", "label", "memory", "kernel", "references"), cells),
        ]
    if ledger.drift:
        parts += ["## Drift", "Moves no verdict.", "\n".join(f"- {drift_line(d)}" for d in ledger.drift)]
    if ledger.overhead:
        parts += ["## Cost of watching", overhead_line(ledger)]
    parts += ["## Boundaries", "\n".join(f"- {sentence}" for sentence in ledger.boundaries or BOUNDARIES)]
    return "\n\n".join(parts) + "\n"


def template_lines(ledger: Ledger) -> list[str]:
    """The lines of the template, one each."""
    verdicts = ledger.verdicts
    lifetime, numerical, coverage = verdicts.lifetime, verdicts.numerical, verdicts.coverage
    control = numerical.control.status + (f" ({numerical.control.reason})" if numerical.control.reason else "")
    told = numerical.reason
    lists = (
        f"required {_listed(coverage.required)}; replayed {_listed(coverage.replayed)}; "
        f"replay unobserved {_listed(coverage.captured_not_replayed)}{_because(coverage.value, coverage.reason)}"
    )
    return [
        f"Job: {ledger.job}",
        f"Configuration: {_configuration(ledger)}",
        f"Run: {_run(ledger)}",
        f"lifetime:  {lifetime.value} ({lifetime.identity.text()}) — {lifetime.reason}",
        f"numerical: {numerical.value}, kind {numerical.kind}, evidence {_numerical_evidence(numerical)} — {told}; control {control}",
        f"coverage:  {coverage.value} ({coverage.identity.text()}, requirements {coverage.provenance}) — {lists}",
        f"agreement: instrumented vs ordinary {_agreement(ledger)}",
        f"Provenance: {ledger.provenance}",
        f"Execution path: {_execution_path(ledger)}",
        f"Path map: {_path_map(ledger)}",
        f"Not run / not covered: {'; '.join(ledger.limitations) or 'nothing was skipped'}",
    ]


def cause_lines(cause: Cause) -> list[str]:
    """The first finding of a cause in full, and where else it showed."""
    others = cause.others()
    return [*finding_lines(cause.first), *([f"  {others}"] if others else [])]


def finding_lines(finding: Finding) -> list[str]:
    """One finding: what, where, who, and the next step."""
    lines = [f"- {finding.code} ({finding.severity}): {finding.text or 'no description'}"]
    for name, value in (
        ("label", finding.label),
        ("worker", finding.worker),
        ("kernel", finding.kernel),
        ("parameter", finding.parameter),
        ("block", finding.block),
        ("allocated at", finding.allocated_at),
        ("freed at", finding.freed_at),
        ("owner now", finding.owner_now),
        ("first bad replay", finding.replay_index),
    ):
        shown = _value(value)
        if shown != UNKNOWN:
            lines.append(f"  {name}: {shown}")
    if finding.next_step:
        lines.append(f"  next: {finding.next_step}")
    return lines


def drift_line(drift: Drift) -> str:
    """One difference between map and run."""
    return drift.text or f"{drift.kind} {drift.subject}: predicted {drift.predicted}, observed {drift.observed}"


def overhead_line(ledger: Ledger) -> str:
    """What watching cost, in one line; empty when it was not measured."""
    cost = ledger.overhead
    if not cost:
        return ""
    return (
        f"instrumented {cost['instrumented_tokens_per_second']} tokens/s against ordinary "
        f"{cost['ordinary_tokens_per_second']} tokens/s: ratio {cost['ratio']} over {cost['tokens']} tokens of short "
        "request sets"
    )


PATH_COLUMNS = ("path", "backend", "class", "predicted buckets", "captured", "replayed", "status", "decided at")


def path_cells(row: dict[str, Any]) -> list[str]:
    """Cells of one row of the path table."""
    buckets = row.get("predicted_buckets")
    return [
        str(row.get("name")),
        str(row.get("backend")),
        str(row.get("class")),
        " ".join(map(str, buckets)) if isinstance(buckets, list) else UNKNOWN,
        _sizes(row.get("captured") or []),
        _sizes(row.get("replayed") or []),
        str(row.get("status")),
        str(row.get("decided_at")),
    ]


def _configuration(ledger: Ledger) -> str:
    c = ledger.configuration
    env = " ".join(f"{key}={value}" for key, value in sorted(c.env.items())) or "no env knobs"
    gpus = c.gpus if isinstance(c.gpus, str) else "; ".join(c.gpus) or f"no GPU, device {c.device}"
    return f"{c.command}; {env}; GPUs: {gpus}; {_checkout(c.checkout)}; tool {c.tool_digest[:12]}"


def _checkout(checkout: dict[str, Any] | str) -> str:
    if isinstance(checkout, str):
        return f"checkout {checkout}"
    commit, tree, dirty = checkout.get("commit"), checkout.get("tree"), checkout.get("dirty")
    state = UNKNOWN if dirty is None else "dirty" if dirty else "clean"
    return f"checkout {str(commit or UNKNOWN)[:12]} tree {str(tree or UNKNOWN)[:12]} {state}"


def _run(ledger: Ledger) -> str:
    if ledger.job == "new execution":
        return f"{ledger.run_id} in {ledger.run_dir}"
    return f"{ledger.run_id} in {ledger.run_dir}, read {ledger.read_file}"


def _agreement(ledger: Ledger) -> str:
    a = ledger.agreement
    status = "historical only (not re-verified)" if a.status == "historical only" else a.status
    detail = ": ".join(part for part in ("" if a.value == "unknown" else a.value, a.reason) if part)
    return f"{status} ({detail})" if detail else status


def _execution_path(ledger: Ledger) -> str:
    path = ledger.execution_path
    dispatch = path.get("dispatch") or []
    by_status: dict[str, list[str]] = {}
    for row in dispatch:
        by_status.setdefault(str(row.get("status")), []).append(
            f"{row.get('name')} {row.get('predicted')}"
            + (f" -> {row.get('observed')}" if row.get("status") in ("differs", "settled by the server") else "")
        )
    parts = []
    for status in ("confirmed", "differs", "settled by the server", "not reported"):
        if by_status.get(status):
            parts.append(f"dispatch {status}: {_listed(by_status[status])}")
    for name in ("unexecuted", "unverified", "refuted"):
        if path.get(name):
            parts.append(f"{name}: {_listed(path[name])}")
    buckets = [d.text for d in ledger.drift if d.kind in ("bucket-unreplayed", "buckets")]
    parts += buckets[:4]
    return "; ".join(parts) or "nothing was predicted, so nothing can differ"


def _path_map(ledger: Ledger) -> str:
    rows = ledger.path_map.get("paths") or []
    if not rows:
        return "none"
    states: dict[str, int] = {}
    for row in rows:
        states[str(row.get("status"))] = states.get(str(row.get("status")), 0) + 1
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"{ledger.path_map.get('file')} (as predicted) and map.observed.json: {len(rows)} paths, {counted}"


def _numerical_evidence(verdict: NumericalVerdict) -> str:
    """What the answers are worth; `verified` only where there were answers, whole ones."""
    if verdict.evidence == "verified" and verdict.value in _WITHOUT_EVIDENCE:
        return _WITHOUT_EVIDENCE[verdict.value]
    return verdict.evidence


def _because(value: str, reason: str) -> str:
    return "" if value == "PASS" or not reason else f"; {reason}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"


def _listed(items: Sequence[object]) -> str:
    shown = [str(item) for item in items[: 2 * _MOST]]
    return (", ".join(shown) + (" ..." if len(items) > len(shown) else "")) or "none"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{label} x{count}" for label, count in counts.items()) or "none"


def _sizes(labels: Sequence[str]) -> str:
    """Sizes of labels of one path, by variant, in order."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        name, _, size = label.rpartition("@")
        variant = name.split("/", 1)[1] if "/" in name else ""
        groups.setdefault(variant, []).append(size if name else label)
    ordered = {variant: sorted(sizes, key=lambda x: (len(x), x)) for variant, sizes in groups.items()}
    shown = (f"{variant + ': ' if variant else ''}{' '.join(sizes)}" for variant, sizes in ordered.items())
    return "; ".join(shown) or "none"


def _value(value: object) -> str:
    if isinstance(value, list):
        return " < ".join(str(item) for item in value[:6])
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(header), line(["---"] * len(header)), *(line(row) for row in rows)])
