"""`sgl-graph explain CODE`: what a code, a class, a verdict or a kind of drift means."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer
from sgl_graph.cli import console

_SHORT = "Explain a code, class, verdict or kind of drift of a report."
_HELP = """Explain what a report prints: a code (SGG004), a class (partial), a verdict (INCOMPLETE), a kind of drift (buckets).

Without a word, list them all."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="explain", help=_HELP, short_help=_SHORT)(explain)


def explain(
    code: Annotated[
        str | None, typer.Argument(help="A code, class, verdict or kind of drift; case does not matter.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More progress.")] = False,
) -> None:
    """Print one rule, or the list."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.reconcile.lifetime_codes import CODES
    from sgl_graph.analyzer.reconcile.run_codes import RUN_CODES
    from sgl_graph.analyzer.reconcile.terms import TERMS
    from sgl_graph.analyzer.static.rules import RULES

    findings = {**CODES, **RUN_CODES}
    if code is None:
        listed = [(rule.code, rule.title) for rule in RULES.values()]
        listed += [(name, found.title) for name, found in findings.items()]
        listed += [(name, f"{term.kind}: {term.title}") for name, term in TERMS.items()]
        console.report("\n".join(f"{name}  {title}" for name, title in listed))
        return
    found = findings.get(code.strip().lower())
    if found is not None:
        text = textwrap.fill(found.meaning, 96), textwrap.fill(f"Next: {found.remedy}", 96)
        console.report(f"{code.strip().lower()} ({found.severity}): {found.title}\n\n{text[0]}\n\n{text[1]}")
        return
    # Drift against another map is told as other-map/KIND.
    word = code.strip().lower().removeprefix("other-map/")
    name = next((name for name in TERMS if name.lower() == word), None)
    if name is not None:
        term = TERMS[name]
        text = textwrap.fill(term.meaning, 96), textwrap.fill(f"Next: {term.remedy}", 96)
        console.report(f"{name} ({term.kind}): {term.title}\n\n{text[0]}\n\n{text[1]}")
        return
    rule = RULES.get(code.strip().upper())
    if rule is None:
        raise _unknown(code, [*RULES, *findings, *TERMS])
    console.report(f"{rule.code}: {rule.title}\n\n{textwrap.fill(rule.text, 96)}")


def _unknown(code: str, known: list[str]) -> Exception:
    import difflib

    from sgl_graph.analyzer.errors import ConfigError

    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(code.strip().lower(), by_lower, 1)
    hint = f"did you mean {by_lower[near[0]]}?" if near else "sgl-graph explain lists them all"
    return ConfigError(f"{code!r} is no code, class, verdict or kind of drift", hint=hint)
