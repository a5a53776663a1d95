"""`sgl-graph preflight`: the path map of one serving command, before anything is launched."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from sgl_graph.cli import console
from sgl_graph.cli.exits import ExitCode

if TYPE_CHECKING:
    from sgl_graph.analyzer.records.pathmap import PathMap
    from sgl_graph.analyzer.serving_command import ServingCommand
    from sgl_graph.runtime.mapping import MapOptions


class Format(StrEnum):
    """How the map is written."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    SARIF = "sarif"
    GITHUB = "github"


_SHORT = "Map the capture paths of a serving command; launch nothing."
_HELP = """Map every CUDA-graph capture path that a serving command will take, and what can be known about each.

The checkout is read, never imported; nothing is launched or downloaded."""
_MAKE_MAP = "make one with sgl-graph preflight --format json -o FILE"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="preflight", help=_HELP, short_help=_SHORT, options_metavar=console.BEFORE_COMMAND)(preflight)


def preflight(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="python -m sglang.launch_server ..., or sglang serve ..."),
    ],
    checkout: Annotated[
        Path | None, typer.Option("--checkout", help="SGLang repository or folder; the installed one if left out.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option("--env", help="K=V for the server; repeatable.")] = None,
    model_config: Annotated[
        Path | None,
        typer.Option("--model-config", help="The model's config.json, where the model is not on this host."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option("--device", help="Device to assume: h200, cuda:sm90, hip, npu, cpu ...; detected if left out."),
    ] = None,
    assume: Annotated[
        list[str] | None,
        typer.Option("--assume", help="NAME=VALUE for a value that the source leaves open; repeatable."),
    ] = None,
    resolve: Annotated[
        bool, typer.Option("--resolve", help="Ask the serving environment's own parser, in a subprocess without GPU.")
    ] = False,
    budget: Annotated[int | None, typer.Option("--budget", min=1, help="Most requests of the planned traffic.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How the report is written.")] = Format.TABLE,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the report to a new file.")] = None,
    graph: Annotated[
        Path | None, typer.Option("--graph", help="Write the paths' call chains: .json node-link, .dot Graphviz.")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="An earlier map (JSON): exit 1 when anything differs from it.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 for unresolved values or material gaps.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, max=64, help="Parsers at once; at most 2 by default.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Neither read nor write cached facts.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the files of -o and --graph.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More progress, all sites in the table.")] = False,
) -> None:
    """Parse, map, report."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.analyzer.serving_command import parse, parse_assignments
    from sgl_graph.runtime.mapping import MapOptions, default_jobs, make_map, no_collections

    for path in (output, graph):
        console.check_output(path, force=force)
    if output is not None and graph is not None and console.resolved(output) == console.resolved(graph):
        raise ConfigError(f"-o and --graph both name {output}", hint="give each a file of its own")
    before = read_map(baseline, "--baseline") if baseline is not None else None
    options = MapOptions(
        command=parse(command),
        checkout=checkout,
        env=parse_assignments(env or ()),
        model_config=model_config,
        device=device,
        assume=assume or (),
        resolve=resolve,
        budget=budget,
        jobs=jobs or default_jobs(),
        cache=not no_cache,
    )
    with no_collections():
        made = make_map(options, console.note)
        console.write_report(render(made, format_, details=verbose), output, force=force)
        if graph is not None:
            from sgl_graph.cli.render.dot import graph_file

            console.write_report(graph_file(made, dot=graph.suffix == ".dot"), graph, force=force)
    code = _finish(made, before, strict=strict)
    if code is ExitCode.DONE and made.paths:
        console.note(_next(options, output if format_ is Format.JSON else None))
    raise typer.Exit(int(code))


def render(made: PathMap, format_: Format, *, details: bool = False) -> str:
    """A map in one of the formats."""
    from sgl_graph.cli.render import map_github, map_json, map_markdown, map_sarif, map_table

    if format_ is Format.JSON:
        return map_json.render(made)
    if format_ is Format.MARKDOWN:
        return map_markdown.render(made)
    if format_ is Format.SARIF:
        return map_sarif.render(made)
    if format_ is Format.GITHUB:
        return map_github.render(made)
    return map_table.render(made, details=details)


def map_for_run(command: ServingCommand, *, checkout: Path | None, env: Mapping[str, str], budget: int | None) -> bytes:
    """The map that `run` makes when it is given none, as JSON."""
    from sgl_graph.runtime.mapping import MapOptions, default_jobs, make_map

    options = MapOptions(command=command, checkout=checkout, env=env, budget=budget, jobs=default_jobs())
    return make_map(options, console.detail).canonical()


def read_map(path: Path, name: str) -> PathMap:
    """A map from its JSON file.

    Args:
        path: The file.
        name: The option or argument that gave it, as messages name it.

    Raises:
        ConfigError: the file cannot be read, or is no path map.
    """
    from pydantic import ValidationError
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.analyzer.records.pathmap import SCHEMA, PathMap

    data = console.read_plain(path, name, hint=_MAKE_MAP)
    try:
        return PathMap.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(
            f"{name} {path}: not a path map of schema {SCHEMA}: {where}: {first['msg']}",
            hint=_MAKE_MAP,
        ) from error


def _finish(made: PathMap, before: PathMap | None, *, strict: bool) -> ExitCode:
    material = [gap for gap in made.gaps if gap.severity == "material"]
    open_paths = [path for path in made.paths if path.reachable == "unresolved"]
    console.note(
        f"{_many(len(made.paths), 'path')}, {_many(len(made.sites), 'primitive')}, "
        f"{_many(len(material), 'material gap')}, {_many(len(made.unresolved), 'value')} only the server settles; "
        f"{made.stats.seconds:.1f} s"
    )
    if made.starts.value == "no":
        console.error(f"this configuration does not start: {made.starts.why}")
        return ExitCode.USAGE
    if before is not None:
        from sgl_graph.analyzer.mapdiff import difference

        changes = difference(before, made)
        for line in changes.brief():
            console.note(line)
        if changes:
            return ExitCode.FINDING
    if strict and (material or made.unresolved or open_paths):
        return ExitCode.UNDECIDED
    return ExitCode.DONE


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


def _next(options: MapOptions, written: Path | None) -> str:
    """The line that runs what was mapped; the map goes with it, for `run` cannot be told device or model again."""
    place = ["--checkout", options.checkout] if options.checkout is not None else []
    assigned = [word for key, value in options.env.items() for word in ("--env", f"{key}={value}")]
    typed = [f"{key}={value}" for key, value in options.command.env.items()]
    line = console.shell(
        *("sgl-graph", "run", "--out", "run", "--map", written or Path("map.json")),
        *(*place, *assigned, "--", *typed, *options.command.argv()),
    )
    return f"next: {line}" if written is not None else f"next: add --format json -o map.json, then {line}"
