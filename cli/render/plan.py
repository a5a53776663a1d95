"""A plan for people: commands, GPUs, requests, disk and minutes, before anything happens."""

from __future__ import annotations

import shlex

from sgl_graph.analyzer.records.plan import Plan

#: A graph's references and a run of replays, as receipts hold them; a logged answer token with its alternatives.
_BYTES_A_TOKEN, _BYTES_FIXED = 200, 12 << 20
_MINUTES_A_LAUNCH = 2.0


def plan_text(plan: Plan) -> str:
    """What `--dry-run` prints."""
    lines = [f"run {plan.run_id}: {len(plan.launches)} launches on {_device(plan)}"]
    for launch in plan.launches:
        added = " ".join(f"{key}={shlex.quote(value)}" for key, value in sorted(launch.env.items()))
        lines += ["", f"{launch.name} ({launch.why})", f"  {added} {shlex.join(launch.argv)}"]
        sets = [plan.set_named(name) for name in launch.sets]
        lines.append(f"  {sum(len(s.requests) for s in sets)} requests in {len(sets)} sets, probe {launch.probe}")
    for name, why in plan.skipped.items():
        lines += ["", f"{name}: skipped ({why})"]
    lines += ["", "request sets"]
    for s in plan.request_sets:
        first = s.requests[0]
        shape = f"{len(s.requests)} x ({len(first.input_ids)} in, {first.output_len} out), {s.send}"
        lines.append(f"  {s.name} [{s.purpose}]: {shape}; for {', '.join(s.labels) or 'no label'}")
    required = ", ".join(plan.requirements.labels) or "nothing"
    lines += ["", f"required labels ({plan.requirements.provenance}): {required}"]
    lines.append(f"numerical: {plan.tolerance.text()}, control {'planned' if plan.control else 'not planned'}")
    lines += [f"material gap: {gap}" for gap in plan.gaps]
    lines += [f"note: {note}" for note in plan.notes]
    tokens = sum(
        r.output_len for name in (n for x in plan.launches for n in x.sets) for r in plan.set_named(name).requests
    )
    disk = (tokens * _BYTES_A_TOKEN + _BYTES_FIXED * len(plan.launches)) >> 20
    minutes = _MINUTES_A_LAUNCH * len(plan.launches)
    lines.append(f"disk about {disk} MB, time about {minutes:.0f} minutes when a server starts in two")
    return "\n".join(lines) + "\n"


def _device(plan: Plan) -> str:
    return f"{plan.device.kind} ({plan.device.source})"
