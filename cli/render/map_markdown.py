"""A path map as Markdown, for a pull request or an issue."""

from __future__ import annotations

import shlex

from sgl_graph.analyzer.records.pathmap import PathMap
from sgl_graph.cli.render.map_words import BOUNDARIES, heading, roles, sizes, where


def render(made: PathMap) -> str:
    """The map as Markdown."""
    lines = ["# Path map", "", heading(made), "", f"`{_code(shlex.join(made.command))}`", ""]
    if made.workers:
        lines += [f"Workers: {roles(made)}", ""]
    if made.starts.value != "yes":
        at = f" (`{made.starts.file}:{made.starts.line}`)" if made.starts.file else ""
        lines += [f"**Starts: {made.starts.value}** — {_text(made.starts.why)}{at}", ""]
    lines += _paths(made) + _gaps(made) + _expect(made) + _open(made)
    lines += ["## Boundaries", "", *(f"- {sentence}" for sentence in BOUNDARIES), ""]
    return "\n".join(lines)


def _paths(made: PathMap) -> list[str]:
    if not made.paths:
        return ["No capture path is reachable.", ""]
    lines = ["## Paths", "", "| path | runner | backend | runs | class | captured | key | sizes |", "|" + "---|" * 8]
    for path in made.paths:
        cells = (
            path.name, path.runner, path.backend, path.reachable, path.inspectability, where(path), path.label.key,
            sizes(path.label.buckets) + (f", at most {path.label.clamped_by}" if path.label.clamped_by else ""),
        )  # fmt: skip
        lines.append("| " + " | ".join(_text(cell) for cell in cells) + " |")
    lines.append("")
    for path in made.paths:
        lines += [f"<details><summary>{_text(path.id)}</summary>", ""]
        lines += [f"1. `{ref.qualname}` `{ref.file}:{ref.line}`" for ref in path.chain]
        lines += [f"- {r.code or ''} {_text(r.text)} (`{r.file}:{r.line}`)" for r in path.reasons]
        lines += ["", "</details>", ""]
    return lines


def _gaps(made: PathMap) -> list[str]:
    if not made.gaps:
        return []
    lines = ["## Gaps", ""]
    lines += [f"- **{gap.severity}** {gap.code or ''} {_text(gap.text)}" for gap in made.gaps]
    return [*lines, ""]


def _expect(made: PathMap) -> list[str]:
    if not made.labels:
        return []
    lines = ["## Expected labels", "", f"`{','.join(made.labels)}`", ""]
    for item in made.traffic:
        variant = f", variant {item.variant}" if item.variant else ""
        lines.append(
            f"- {item.name}: {item.concurrency} request(s), {item.input_len} tokens in, {item.output_len} out{variant}"
            f" — {', '.join(item.labels)}"
        )
    return [*lines, ""]


def _open(made: PathMap) -> list[str]:
    if not made.unresolved:
        return []
    lines = ["## Unresolved", "", "| what | predicted | decided by | settle with |", "|---|---|---|---|"]
    for item in made.unresolved:
        by = f"`{item.decided_by.qualname}` `{item.decided_by.file}:{item.decided_by.line}`" if item.decided_by else ""
        lines.append(f"| {_text(item.what)} | {_text(str(item.predicted))} | {by} | {_text(item.settle_with)} |")
    return [*lines, ""]


def _text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _code(text: str) -> str:
    return text.replace("`", "'")
