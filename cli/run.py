"""`sgl-graph run`: eager, ordinary and instrumented launches of one serving command, three verdicts, one ledger."""

from __future__ import annotations

import shlex
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from sgl_graph.cli import console
from sgl_graph.cli.exits import ExitCode

if TYPE_CHECKING:
    from sgl_graph.analyzer.records.ledger import Ledger
    from sgl_graph.runtime.options import RunOptions
    from sgl_graph.runtime.planning import Prepared
    from sgl_graph.runtime.run import Finished


class Format(StrEnum):
    """How the report is written to stdout."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="run", help=_HELP, short_help=_SHORT, options_metavar=console.BEFORE_COMMAND)(run)


_SHORT = "Serve a command eager, as it is, and watched; judge the replays."
_HELP = """Launch a serving command eager, ordinary and instrumented, and judge lifetime, numerical and coverage.

The plan is written before the first launch; nothing outside it is launched or sent."""


#: Options that mean something for any program; the others are about servers and requests.
_FOR_PROGRAMS = frozenset({"command", "out", "program", "env", "poison", "format_", "quiet", "verbose"})


def run(
    context: typer.Context,
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="The serving command, or with --program any Python program."),
    ],
    out: Annotated[
        Path, typer.Option("--out", parser=console.named_path, metavar="<path>", help="A fresh folder for the archive.")
    ],
    checkout: Annotated[
        Path | None, typer.Option("--checkout", help="SGLang repository or folder; the installed one if left out.")
    ] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", help="Path map from preflight; made now if left out.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option("--env", help="K=V for the servers; repeatable.")] = None,
    expect_labels: Annotated[
        str | None, typer.Option("--expect-labels", help="Labels that must be replayed, separated by commas.")
    ] = None,
    traffic: Annotated[Path | None, typer.Option("--traffic", help="JSON list of traffic records.")] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Most requests of one launch, retries included.")
    ] = None,
    numerical: Annotated[
        str, typer.Option("--numerical", help="token-ids, bitwise, or logprobs:ATOL,RTOL.")
    ] = "token-ids",
    skip_eager: Annotated[bool, typer.Option("--skip-eager", help="No reference: numerical is NOT-RUN.")] = False,
    skip_ordinary: Annotated[bool, typer.Option("--skip-ordinary", help="Numerical is NOT-RUN, no agreement.")] = False,
    skip_instrumented: Annotated[
        bool, typer.Option("--skip-instrumented", help="Lifetime is NOT-RUN, coverage INCOMPLETE.")
    ] = False,
    repeat_reference: Annotated[
        bool, typer.Option("--repeat-reference", help="Launch eager twice: does the reference agree with itself?")
    ] = False,
    control: Annotated[
        bool, typer.Option("--control", help="Send each set to eager again under another batch composition.")
    ] = False,
    poison: Annotated[
        bool, typer.Option("--poison", help="Overwrite free blocks of graph pools before replays.")
    ] = False,
    accept_gaps: Annotated[
        bool, typer.Option("--accept-gaps", help="Run although the map shows material gaps.")
    ] = False,
    allow_busy: Annotated[
        bool, typer.Option("--allow-busy", help="Use a GPU that others use, other runs included.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan; write and launch nothing.")] = False,
    program: Annotated[bool, typer.Option("--program", help="Run any Python program; lifetime only.")] = False,
    start_timeout: Annotated[
        float, typer.Option("--start-timeout", min=0.1, help="Seconds until a server must be healthy.")
    ] = 900.0,
    request_timeout: Annotated[
        float, typer.Option("--request-timeout", min=0.1, help="Seconds for one request set.")
    ] = 300.0,
    format_: Annotated[Format, typer.Option("--format", help="Report on stdout.")] = Format.TABLE,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More progress.")] = False,
) -> None:
    """Parse, then hand over."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.serving_command import parse, parse_assignments
    from sgl_graph.runtime.options import RunOptions, parse_tolerance

    if program:
        _refuse_serving_options(context)
        raise typer.Exit(int(_program(command, out, parse_assignments(env or ()), poison=poison, format_=format_)))
    options = RunOptions(
        out=out,
        command=parse(command),
        checkout=checkout,
        map_file=map_file,
        env=parse_assignments(env or ()),
        expect_labels=_labels(expect_labels),
        traffic=traffic,
        budget=budget,
        tolerance=parse_tolerance(numerical),
        skip_eager=skip_eager,
        skip_ordinary=skip_ordinary,
        skip_instrumented=skip_instrumented,
        repeat_reference=repeat_reference,
        control=control,
        poison=poison,
        accept_gaps=accept_gaps,
        allow_busy=allow_busy,
        start_timeout=start_timeout,
        request_timeout=request_timeout,
    )
    raise typer.Exit(int(_serve(options, dry_run=dry_run, format_=format_)))


def _refuse_serving_options(context: typer.Context) -> None:
    """An option that a program's run would not heed is refused: `--dry-run` must never start anything."""
    from sgl_graph.analyzer.errors import ConfigError

    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in _FOR_PROGRAMS and source is not None and source.name == "COMMANDLINE":
            raise ConfigError(
                f"{parameter.opts[0]} is for serving commands", hint="leave it out, or leave out --program"
            )


def exit_code(ledger: Ledger) -> ExitCode:
    """The exit code of a finished run: a FAIL or a definite finding first, then the host, then what stays open."""
    verdicts = ledger.verdicts
    values = {
        "lifetime": verdicts.lifetime.value,
        "numerical": verdicts.numerical.value,
        "coverage": verdicts.coverage.value,
    }
    if "FAIL" in values.values() or any(f.severity == "definite" for f in ledger.findings):
        return ExitCode.FINDING
    if any(outcome.state == "failed" for outcome in ledger.launches.values()):
        return ExitCode.HOST
    skipped = {name for name, outcome in ledger.launches.items() if outcome.state == "skipped"}
    unrequested = set()
    if skipped & {"eager", "ordinary"}:
        unrequested.add("numerical")
    if "instrumented" in skipped:
        unrequested |= {"lifetime", "coverage"}
    requested = {name: value for name, value in values.items() if name not in unrequested}
    if any(value != "PASS" for value in requested.values()):
        return ExitCode.UNDECIDED
    return ExitCode.UNDECIDED if any(f.severity == "hazard" for f in ledger.findings) else ExitCode.DONE


def _serve(options: RunOptions, *, dry_run: bool, format_: Format) -> ExitCode:
    from sgl_graph.cli.render.report import markdown
    from sgl_graph.runtime.archive import refuse_existing
    from sgl_graph.runtime.checkout import locate
    from sgl_graph.runtime.inject import FolderInjector
    from sgl_graph.runtime.map_fit import for_run
    from sgl_graph.runtime.planning import inspector_of, prepare
    from sgl_graph.runtime.run import check_gaps, execute

    if not dry_run:
        refuse_existing(options.out)
    location = locate(options.checkout)
    inspector = inspector_of({**options.env, **options.command.env})
    prepared = prepare(options, location, _map_bytes(options), inspector=inspector)
    for doubt in prepared.doubts:
        console.warn(doubt)
    for gap in prepared.plan.gaps if dry_run or options.accept_gaps else ():
        console.warn(f"material gap: {for_run(gap)}")
    if dry_run:
        _show_plan(prepared, format_)
        return ExitCode.DONE
    check_gaps(options, prepared.plan)
    with tempfile.TemporaryDirectory(prefix="sgl-graph-") as folder:
        # The injection is no evidence, so it stays out of the archive.
        inject = FolderInjector(Path(folder), inspector=inspector or "cuda", tool=prepared.plan.tool_digest)
        try:
            finished = execute(options, prepared, inject, markdown, console.note)
        except KeyboardInterrupt:
            console.warn(f"interrupted: the servers are stopped, and what happened so far is in {options.out}")
            raise
    _conclude(finished, format_)
    return exit_code(finished.ledger)


def _program(command: list[str], out: Path, env: dict[str, str], *, poison: bool, format_: Format) -> ExitCode:
    """A program is judged, and exits, by its lifetime alone."""
    from sgl_graph.cli.render.report import markdown
    from sgl_graph.runtime.planning import inspector_of
    from sgl_graph.runtime.program_run import LAUNCH, execute_program

    finished = execute_program(
        command,
        out,
        env=env,
        inspector=inspector_of(env) or "cuda",
        poison=poison,
        render=markdown,
        say=console.note,
    )
    _conclude(finished, format_)
    ended = finished.ledger.launches[LAUNCH].reason
    if ended:
        console.warn(f"the program itself ended with {ended}; this exit code is the lifetime verdict's")
    value = finished.ledger.verdicts.lifetime.value
    return {"PASS": ExitCode.DONE, "FAIL": ExitCode.FINDING}.get(value, ExitCode.UNDECIDED)


def _conclude(finished: Finished, format_: Format) -> None:
    from sgl_graph.cli.render.report import markdown, overhead_line, report_text

    match format_:
        case Format.TABLE:
            console.report(report_text(finished.ledger))
        case Format.MARKDOWN:
            console.report(markdown(finished.ledger))
        case Format.JSON:
            console.report(finished.ledger.model_dump_json(indent=1))
    if finished.ledger.overhead:
        console.note(overhead_line(finished.ledger))
    console.note(f"manifest digest {finished.manifest_digest}: keep it elsewhere")
    console.note(
        f"next: sgl-graph reconcile {shlex.quote(str(finished.root))} --expect-digest {finished.manifest_digest}"
    )


def _labels(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    labels = tuple(part.strip() for part in text.split(",") if part.strip())
    if not labels:
        from sgl_graph.analyzer.errors import ConfigError

        raise ConfigError(f"--expect-labels {text!r}: no label", hint="leave it out, and the map's labels are required")
    return labels


def _map_bytes(options: RunOptions) -> bytes:
    """The map given, or one made on the spot from the same command, environment and checkout."""
    if options.map_file is not None:
        make = "leave it out, or make one with sgl-graph preflight --format json -o FILE"
        return console.read_plain(options.map_file, "--map", hint=make)
    from sgl_graph.cli.preflight import map_for_run

    console.note("mapping the checkout (preflight)")
    return map_for_run(options.command, checkout=options.checkout, env=options.env, budget=options.budget)


def _show_plan(prepared: Prepared, format_: Format) -> None:
    from sgl_graph.cli.render.plan import plan_text

    plan = prepared.plan
    console.report(plan.model_dump_json(indent=1) if format_ is Format.JSON else plan_text(plan))
