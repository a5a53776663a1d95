"""`run --program`: one program under the probe, its lifetime verdict on one screen."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.ledger import Finding
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult, Verdict
from sgl_graph.cli import console
from sgl_graph.runtime import program

_EXITS = {Verdict.PASS: 0, Verdict.FAIL: 1}
_OPEN = 3
_SHOWN = 5
_UNKNOWN = "unknown"


def run_program(
    command: Sequence[str],
    *,
    out: Path,
    env: Mapping[str, str] | None = None,
    poison: bool = False,
    format_: str = "table",
    inspector: str = "cuda",
    tool: str | None = None,
    timeout: float | None = None,
) -> int:
    """Run a program, print its screen on stdout and return the exit code of its lifetime verdict (arguments: `judge`)."""
    code, text = judge(
        command, out=out, env=env, poison=poison, format_=format_, inspector=inspector, tool=tool, timeout=timeout
    )
    console.report(text)
    return code


def judge(
    command: Sequence[str],
    *,
    out: Path,
    env: Mapping[str, str] | None = None,
    poison: bool = False,
    format_: str = "table",
    inspector: str = "cuda",
    tool: str | None = None,
    timeout: float | None = None,
) -> tuple[int, str]:
    """Run a program and judge it.

    Args:
        command: The program.
        out: Fresh folder for the receipts and `lifetime.json`.
        env: Variables for it.
        poison: Overwrite what graphs must not depend on.
        format_: `table`, `markdown` or `json`.
        inspector: The inspector.
        tool: Digest of this tool.
        timeout: Seconds after which the program is ended.

    Returns:
        The exit code of the lifetime verdict alone, and the screen.
    """
    done = program.run_program(command, out, env=env, inspector=inspector, poison=poison, tool=tool, timeout=timeout)
    result = lifetime_verdict([read_receipts(path) for path in done.receipts])
    document = {
        "schema": "sgl-graph.program/1",
        "run": done.run,
        "command": list(done.command),
        "returncode": done.returncode,
        "seconds": round(done.seconds, 3),
        "lifetime": json.loads(result.model_dump_json()),
        "numerical": {"value": Verdict.NOT_RUN.value, "reason": "a program has no eager reference"},
        "coverage": {
            "value": Verdict.INCOMPLETE.value,
            "reason": "a program has no path map: nothing says what to cover",
        },
    }
    (out / "lifetime.json").write_text(json.dumps(document, indent=1) + "\n", "utf-8")
    text = json.dumps(document, indent=1) if format_ == "json" else screen(done, result, out)
    return _EXITS.get(result.value, _OPEN), text


def screen(done: program.ProgramRun, result: LifetimeResult, out: Path) -> str:
    """The one screen: verdict, findings with the freeing line, and what lies outside the guarantee."""
    lines = [
        f"Program: {' '.join(done.command)} (exit status {done.returncode})",
        f"Run: {done.run}, receipts in {out / 'receipts'}",
        f"lifetime:  {result.value.value} — {result.reason}",
        "numerical: NOT-RUN — a program has no eager reference",
        "coverage:  INCOMPLETE — a program has no path map: nothing says what to cover",
    ]
    for finding in result.findings[:_SHOWN]:
        lines += ["", *_finding(finding)]
    if len(result.findings) > _SHOWN:
        lines.append(f"... and {len(result.findings) - _SHOWN} more in {out / 'lifetime.json'}")
    if result.outside:
        lines += ["", "Outside the guarantee (memory of no caching allocator):"]
        lines += [f"  {o.count} × {o.kind} in {o.kernel}" for o in result.outside[:_SHOWN]]
    if result.value in (Verdict.INCONCLUSIVE, Verdict.INCOMPLETE, Verdict.NOT_RUN):
        lines += ["", f"{result.value.value} is not PASS and never becomes one."]
    return "\n".join(lines)


def _finding(finding: Finding) -> list[str]:
    shown = [f"[{finding.severity}] {finding.code}: {finding.text}"]
    for title, value in (
        ("graph", finding.label),
        ("kernel", finding.kernel),
        ("parameter", finding.parameter),
        ("block", finding.block),
        ("allocated", finding.allocated_at),
        ("freed", finding.freed_at),
        ("owner now", finding.owner_now),
        ("replay", finding.replay_index),
    ):
        if value not in (_UNKNOWN, "", None):
            shown.append(f"  {title + ':':<11}{_plain(value)}")
    if finding.next_step:
        shown.append(f"  {'next:':<11}{finding.next_step}")
    return shown


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in value.items())
    if isinstance(value, list):
        return "  <-  ".join(str(v) for v in value[:4])
    return str(value)
