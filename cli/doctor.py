"""`sgl-graph doctor`: can this environment be injected and inspected? One line a check, with the remedy."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from sgl_graph.cli import console

_MARKS = {"ok": "ok      ", "warning": "warning ", "failure": "FAILURE "}
_HOST = 4
_SHORT = "Check whether the workers of this environment can be watched."


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="doctor", short_help=_SHORT)(doctor)


def doctor(
    python: Annotated[str, typer.Option("--python", help="The interpreter that serves.")] = sys.executable,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Only what fails.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More progress.")] = False,
) -> None:
    """Check whether a run could enter and inspect the workers of this environment. Exit 4 when it could not."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.runtime.doctor import examine, worst

    console.detail(f"asking {python}")
    checks = examine(python)
    width = max(len(check.name) for check in checks)
    lines = []
    for check in checks:
        if quiet and check.status == "ok":
            continue
        lines.append(f"{_MARKS[check.status]}{check.name:<{width}}  {check.text}")
        if check.remedy:
            lines.append(f"{'':8}{'':<{width}}  -> {check.remedy}")
    if lines:
        console.report("\n".join(lines))
    if worst(checks) == "failure":
        console.note("a run on a GPU needs what fails here; preflight, reconcile, export, diff and explain do not")
        raise typer.Exit(_HOST)
