"""A path map for the terminal: a line a path, material gaps, details on demand; readable at 100 columns."""

from __future__ import annotations

import io
import sys
import textwrap

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from sgl_graph.analyzer.records.pathmap import PathEntry, PathMap
from sgl_graph.cli.render.map_words import chain, heading, roles, sizes, where

_WIDTH = 100
_STYLES = {
    "lifetime-inspectable": "green", "partial": "yellow", "replay-observable-only": "yellow", "unsupported": "red",
    "unresolved": "magenta", "yes": "green", "no": "dim",
}  # fmt: skip


def render(made: PathMap, *, details: bool = False) -> str:
    """The map as text, in colour only where stdout is a terminal."""
    buffer = io.StringIO()
    terminal = sys.stdout.isatty()
    out = Console(file=buffer, width=_WIDTH, force_terminal=terminal, no_color=not terminal or None, highlight=False)
    out.print(Text(heading(made)))
    if made.workers:
        out.print(Text(f"workers: {roles(made)}"))
    if made.starts.value != "yes":
        at = f" ({made.starts.file}:{made.starts.line})" if made.starts.file else ""
        out.print(Text(f"starts: {made.starts.value}: {made.starts.why}{at}", style="bold"))
    out.print()
    if made.paths:
        _paths(out, made)
    else:
        out.print("no capture path is reachable")
    _gaps(out, made)
    _details(out, made) if details else _short(out, made)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def _cell(text: str) -> Text:
    return Text(text, style=_STYLES.get(text, ""))


def _paths(out: Console, made: PathMap) -> None:
    names = [_name(path) for path in made.paths]
    first = max(len("path"), *map(len, names))
    second = max(len(path.inspectability) for path in made.paths)
    head = f"{'path':{first}}  {'runs':10}  {'class':{second}}  {'captured':13}  sizes"
    out.print(Text(head, style="bold"), overflow="fold")
    for path, name in zip(made.paths, names, strict=True):
        line = Text(f"{name:{first}}  ")
        line.append(f"{path.reachable:10}  ", style=_STYLES.get(path.reachable, ""))
        line.append(f"{path.inspectability:{second}}  ", style=_STYLES.get(path.inspectability, ""))
        line.append(f"{where(path):13}  {sizes(path.label.buckets)}")
        out.print(line, overflow="fold")
        whole = f"    {path.runner}" + (f" on {path.backend}" if path.backend != path.runner else "")
        key = path.label.key if len(path.label.key) <= 80 else path.label.key[:79] + "…"
        clamp = f"; at most {path.label.clamped_by}" if path.label.clamped_by else ""
        out.print(_wrapped(f"{whole}; key {key}{clamp}", style="dim"), overflow="fold")
    out.print()


def _wrapped(text: str, *, indent: int = 6, style: str = "") -> Text:
    """Text over several lines, of which the later ones are indented."""
    lines = textwrap.wrap(text, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False)
    return Text("\n".join(lines), style=style)


def _name(path: PathEntry) -> str:
    variants = [v for v in path.label.variants if v is not None]
    return path.name + (f" (/{', /'.join(variants)})" if variants else "")


def _gaps(out: Console, made: PathMap) -> None:
    for severity in ("material", "note"):
        items = [gap for gap in made.gaps if gap.severity == severity]
        if items:
            out.print(Text(f"{severity} gaps" if severity == "material" else "notes", style="bold"))
        for gap in items:
            out.print(_wrapped(f"  {gap.code or '      '} {gap.text}", indent=9))
    if made.gaps:
        out.print()


def _short(out: Console, made: PathMap) -> None:
    if made.labels:
        out.print(_wrapped(f"expected labels: {', '.join(made.labels)}"))
    for item in made.traffic:
        out.print(
            Text(
                f"traffic {item.name}: {item.concurrency} request(s) of {item.input_len} tokens, {item.output_len} to make"
                + (f", with {item.variant}" if item.variant else "")
            )
        )
    counts = {answer: sum(site.reachable == answer for site in made.sites) for answer in ("yes", "unresolved", "no")}
    out.print(
        _wrapped(
            f"{len(made.sites)} primitives: {counts['yes']} reachable, {counts['unresolved']} unresolved, "
            f"{counts['no']} not under this configuration (-v lists them; explain CODE tells what a code means)"
        )
    )


def _details(out: Console, made: PathMap) -> None:
    for path in made.paths:
        out.print(Text(f"{path.id}", style="bold"))
        for line in chain(path):
            out.print(_wrapped(f"  {line}"))
        stored = path.label.stored_at
        if stored is not None:
            out.print(_wrapped(f"  label: {path.label.expression} at {stored.file}:{stored.line}"))
        for reason in path.reasons:
            out.print(_wrapped(f"  {reason.code or ''} {reason.text}  {reason.file}:{reason.line}"))
        for component in path.components:
            at = f"{component.file}:{component.line}"
            out.print(_wrapped(f"  {component.kind}: {component.class_}: {component.memory}  {at}"))
    _short(out, made)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("role", "reach", "class", "where", "call"):
        table.add_column(name, overflow="fold")
    for site in made.sites:
        place = f"{site.file.removeprefix('sglang/srt/')}:{site.line}"
        table.add_row(site.role, _cell(site.reachable), _cell(site.inspectability), Text(place), Text(site.api[:60]))
    out.print(table)
    if made.unresolved:
        out.print(Text("unresolved", style="bold"))
    for item in made.unresolved:
        at = (
            f" by {item.decided_by.qualname.rpartition(':')[2]} {item.decided_by.file}:{item.decided_by.line}"
            if item.decided_by
            else ""
        )
        out.print(_wrapped(f"  {item.what}: predicted {item.predicted}; decided{at}; settle with {item.settle_with}"))
