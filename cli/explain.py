"""`sgl-graph explain CODE`: what a code of a report means."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer
from sgl_graph.cli import console

_HELP = """Explain a code that a report prints, as SGG004; without a code, list them all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="explain", help=_HELP)(explain)


def explain(
    code: Annotated[str | None, typer.Argument(help="A code, as SGG004.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More progress.")] = False,
) -> None:
    """Print one rule, or the list."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.static.rules import RULES

    if code is None:
        console.report("\n".join(f"{rule.code}  {rule.title}" for rule in RULES.values()))
        return
    rule = RULES.get(code.strip().upper())
    if rule is None:
        raise _unknown(code, list(RULES))
    console.report(f"{rule.code}: {rule.title}\n\n{textwrap.fill(rule.text, 96)}")


def _unknown(code: str, known: list[str]) -> Exception:
    import difflib

    from sgl_graph.analyzer.errors import ConfigError

    near = difflib.get_close_matches(code.strip().upper(), known, 1)
    hint = f"did you mean {near[0]}?" if near else "sgl-graph explain lists all codes"
    return ConfigError(f"no code {code}", hint=hint)
