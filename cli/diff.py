"""`sgl-graph diff OLD NEW`: what changed between two path maps, or two checkouts under one command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from sgl_graph.cli import console
from sgl_graph.cli.exits import ExitCode

if TYPE_CHECKING:
    from sgl_graph.analyzer.records.pathmap import PathMap


class Format(StrEnum):
    """How the differences are written."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


_SHORT = "Show what two maps, or two checkouts, have different."
_HELP = """Show the paths, classes, labels, sizes and gaps that appeared, vanished or changed.

OLD and NEW are two maps (JSON), or two checkouts followed by -- and the serving command."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="diff", help=_HELP, short_help=_SHORT)(diff)


def diff(
    old: Annotated[Path, typer.Argument(help="A map, or a checkout.")],
    new: Annotated[Path, typer.Argument(help="A map, or a checkout.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND", help="After --: the serving command, for two checkouts."),
    ] = None,
    env: Annotated[list[str] | None, typer.Option("--env", help="K=V for the server; repeatable.")] = None,
    model_config: Annotated[Path | None, typer.Option("--model-config", help="The model's config.json.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Device to assume, as in --device h200.")] = None,
    assume: Annotated[list[str] | None, typer.Option("--assume", help="NAME=VALUE; repeatable.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How the differences are written.")] = Format.TABLE,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to a new file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file of -o.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Each primitive; more progress.")] = False,
) -> None:
    """Compare; exit 1 when there is a difference."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.analyzer.mapdiff import difference
    from sgl_graph.analyzer.serving_command import parse, parse_assignments
    from sgl_graph.cli.preflight import read_map
    from sgl_graph.runtime.mapping import MapOptions, default_jobs, make_map

    console.check_output(output, force=force)
    if not old.is_dir() and not new.is_dir() and (command or env or model_config or device or assume):
        raise ConfigError(
            "OLD and NEW are maps: a command, --env, --model-config, --device and --assume are for checkouts",
            hint="leave them out, or give two checkouts",
        )

    def load(path: Path, name: str) -> PathMap:
        if not path.is_dir():
            return read_map(path, name)
        if not command:
            raise ConfigError(
                f"{path} is a folder: two checkouts need the serving command", hint="put it after --, as for preflight"
            )
        return make_map(
            MapOptions(
                command=parse(command),
                checkout=path,
                env=parse_assignments(env or ()),
                model_config=model_config,
                device=device,
                assume=assume or (),
                jobs=default_jobs(),
            ),
            console.note,
        )

    changes = difference(load(old, "OLD"), load(new, "NEW"))
    lines = changes.lines() if verbose or format_ is Format.JSON else changes.brief()
    console.write_report(_text(lines, format_), output, force=force)
    if len(lines) < len(changes.lines()):
        console.note("-v names each primitive")
    raise typer.Exit(int(ExitCode.FINDING if changes else ExitCode.DONE))


def _text(lines: list[str], format_: Format) -> str:
    if format_ is Format.JSON:
        import json

        return json.dumps(
            [{"sign": line[0], "kind": line[2:].partition(": ")[0], "text": line.partition(": ")[2]} for line in lines],
            indent=1,
        )
    if not lines:
        return "no difference"
    if format_ is Format.MARKDOWN:
        return "\n".join(["```diff", *lines, "```"])
    return "\n".join(lines)
