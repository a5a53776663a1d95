"""`sgl-graph reconcile`: what an archive shows, here and now, with nothing but its folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from sgl_graph.cli import console
from sgl_graph.cli.exits import ExitCode

if TYPE_CHECKING:
    from sgl_graph.analyzer.records.ledger import Ledger
    from sgl_graph.cli.render.archives import Row


class Format(StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"


_VALUES = ("PASS", "FAIL", "INCONCLUSIVE", "INCOMPLETE", "NOT-RUN", "NOT-RECOMPUTED")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="reconcile", help=_HELP, short_help=_SHORT)(reconcile)


_SHORT = "Show what archives prove, or judge them again; needs no GPU."
_HELP = """Inspect archives read-only, or recompute their verdicts from receipts and answers.

Needs no GPU, no torch and no checkout. Several archives, or a tree of them, give a row each."""


def reconcile(
    archives: Annotated[
        list[Path],
        typer.Argument(
            parser=console.named_path, metavar="ARCHIVES", help="Archives, exports, or folders that hold archives."
        ),
    ],
    map_file: Annotated[Path | None, typer.Option("--map", help="Another path map to hold the run against.")] = None,
    checkout: Annotated[
        Path | None, typer.Option("--checkout", help="A checkout that may hold what the workers imported.")
    ] = None,
    expect_digest: Annotated[
        str | None,
        typer.Option("--expect-digest", help="Manifest digest that the run printed and that was kept elsewhere."),
    ] = None,
    recompute: Annotated[bool, typer.Option("--recompute", help="Verdicts anew; exits 0 whatever they are.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write recomputed.json into the archive.")] = False,
    work: Annotated[Path | None, typer.Option("--work", help="Fresh folder for the working copy.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="table, json, markdown or csv.")] = Format.TABLE,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="File instead of stdout.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file.")] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit 1 for a FAIL, 3 for another value named here: FAIL,INCOMPLETE or coverage=INCONCLUSIVE.",
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Processes for several archives; all cores by default.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Nothing on stderr but warnings.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More on stderr.")] = False,
) -> None:
    """Check the request, read, print."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.runtime.unzipped import unzipped

    gate = _gate(fail_on)
    if gate and recompute:
        raise ConfigError("--fail-on gates a read-only inspection: --recompute exits 0 whatever its verdicts")
    if (in_place or work) and not recompute:
        raise ConfigError("--in-place and --work belong to --recompute")
    if in_place and work:
        raise ConfigError("--in-place and --work exclude each other")
    console.check_output(output, force=force)
    _check_digest(expect_digest)
    with unzipped(archives) as folders:
        if folders and recompute:
            raise ConfigError("--recompute writes beside the archive, and an export is a file", hint="unzip it first")
        request = Request(map_file, checkout, expect_digest, recompute, in_place, work, folders)
        code = _shown(archives, request, format_, output, force=force, jobs=jobs, gate=gate)
    raise typer.Exit(int(code))


def _shown(
    archives: list[Path],
    request: Request,
    format_: Format,
    output: Path | None,
    *,
    force: bool,
    jobs: int | None,
    gate: list[tuple[str | None, str]],
) -> ExitCode:
    """Read and print what was asked for; the exit code."""
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.analyzer.reconcile.recompute import OTHER_ARCHIVE
    from sgl_graph.runtime.inspection import find_archives

    places = [request.folders.get(place, place) for place in archives]
    found = find_archives(places)
    console.check_output(output, force=force, archives=found)
    if len(found) > 1 and (request.expected or request.work):
        raise ConfigError("--expect-digest and --work are for one archive", hint="reconcile them one by one")
    zipped = archives[0] in request.folders
    if len(found) > 1 or (found != [archives[0]] and not zipped):
        rows = _many(found, request, jobs)
        console.write_report(console.harmless(_rows_text(rows, format_)), output, force=force)
        ledgers = [row.ledger for row in rows if row.ledger is not None]
        unread = len(rows) - len(ledgers)
        if ledgers and format_ is Format.TABLE:
            whole = next(root for root, row in zip(found, rows, strict=True) if row.ledger is not None)
            console.note(f"next: {console.shell('sgl-graph', 'reconcile', request.name(whole))} shows one whole")
    else:
        ledger, written = read_one(found[0], request)
        if written is not None:
            console.note(f"wrote {written}")
        console.write_report(console.harmless(_ledger_text(ledger, format_)), output, force=force)
        ledgers, unread = [ledger], 0
        # Another archive than the one whose digest was kept: nothing that follows would be about the run.
        if not request.recompute and not zipped and not ledger.read_file.endswith(OTHER_ARCHIVE):
            kept = ["--expect-digest", request.expected] if request.expected else []
            console.note(f"next: {console.shell('sgl-graph', 'reconcile', found[0], '--recompute', *kept)}")
    code = _gated(ledgers, gate)
    return ExitCode.ARCHIVE if unread and code is not ExitCode.FINDING else code


class Request:
    """What is asked of each archive; crosses process pools."""

    def __init__(
        self,
        map_file: Path | None = None,
        checkout: Path | None = None,
        expected: str | None = None,
        recompute: bool = False,
        in_place: bool = False,
        work: Path | None = None,
        folders: Mapping[Path, Path] | None = None,
    ) -> None:
        #: Where the zip files among the archives lie unpacked.
        self.folders = dict(folders or {})
        self.map_file, self.checkout, self.expected = map_file, checkout, expected
        self.recompute, self.in_place, self.work = recompute, in_place, work

    def name(self, root: Path) -> Path:
        """What the user knows an archive by: the zip file that it came in, or itself."""
        return next((file for file, folder in self.folders.items() if root.is_relative_to(folder)), root)


def read_one(root: Path, request: Request) -> tuple[Ledger, Path | None]:
    """One archive's ledger, inspected or recomputed, and the file that a recomputation wrote."""
    from sgl_graph.analyzer.reconcile.mapview import MapView
    from sgl_graph.runtime import inspection

    view = index = None
    if request.map_file is not None:
        hint = "a map is what preflight --format json -o FILE wrote"
        view = MapView.parse(console.read_plain(request.map_file, "--map", hint=hint), str(request.map_file))
    if request.checkout is not None:
        from sgl_graph.runtime.checkout import locate
        from sgl_graph.runtime.identity import source_index

        index = source_index(locate(request.checkout).base)
    if not request.recompute:
        ledger = inspection.inspect(root, expected=request.expected, view=view, index=index)
        name = request.name(root)
        return (ledger if name == root else ledger.model_copy(update={"run_dir": str(name)})), None
    return inspection.recompute(
        root, expected=request.expected, work=request.work, in_place=request.in_place, view=view, index=index
    )


def _read_row(root: Path, request: Request) -> Row:
    """One row of several: an archive that cannot be read is a row with the reason, never the end of the others."""
    from sgl_graph.analyzer.errors import SglGraphError
    from sgl_graph.cli.render.archives import Row

    name = str(request.name(root))
    try:
        ledger, written = read_one(root, request)
    except SglGraphError as error:
        return Row(name, None, error.message)
    except OSError as error:
        return Row(name, None, f"{error.filename or root}: {error.strerror}")
    return Row(name, ledger, "", str(written) if written else "")


def _many(found: list[Path], request: Request, jobs: int | None) -> list[Row]:
    workers = max(1, min(len(found), jobs or os.cpu_count() or 1))
    if workers == 1:
        return [_read_row(root, request) for root in found]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(_read_row, found, [request] * len(found)))


def _ledger_text(ledger: Ledger, format_: Format) -> str:
    from sgl_graph.cli.render.archives import Row, csv_text
    from sgl_graph.cli.render.report import markdown, report_text

    match format_:
        case Format.TABLE:
            return report_text(ledger)
        case Format.JSON:
            return ledger.model_dump_json(indent=1)
        case Format.MARKDOWN:
            return markdown(ledger)
        case Format.CSV:
            return csv_text([Row(ledger.run_dir, ledger, "")])


def _rows_text(rows: list[Row], format_: Format) -> str:
    from sgl_graph.cli.render.archives import csv_text, json_text, markdown_text, table_text

    makers: dict[Format, Callable[[list[Row]], str]] = {
        Format.TABLE: partial(table_text, width=shutil.get_terminal_size((100, 24)).columns),
        Format.JSON: json_text,
        Format.MARKDOWN: markdown_text,
        Format.CSV: csv_text,
    }
    return makers[format_](rows)


def _gate(text: str | None) -> list[tuple[str | None, str]]:
    """Pairs (verdict or any, value) of `--fail-on`."""
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.analyzer.reconcile.recompute import NAMES

    gate: list[tuple[str | None, str]] = []
    for part in filter(None, (item.strip() for item in (text or "").split(","))):
        name, equals, value = part.rpartition("=")
        if value not in _VALUES or (equals and name not in NAMES):
            raise ConfigError(f"--fail-on: {part!r} is no verdict", hint=f"values: {', '.join(_VALUES)}")
        gate.append((name or None, value))
    return gate


def _gated(ledgers: list[Ledger], gate: list[tuple[str | None, str]]) -> ExitCode:
    """1 for a FAIL that the gate names, 3 for any other verdict that it names."""
    hit = {
        value
        for ledger in ledgers
        for name, value in gate
        for verdict, found in (
            ("lifetime", ledger.verdicts.lifetime.value),
            ("numerical", ledger.verdicts.numerical.value),
            ("coverage", ledger.verdicts.coverage.value),
        )
        if found == value and name in (None, verdict)
    }
    if "FAIL" in hit:
        return ExitCode.FINDING
    return ExitCode.UNDECIDED if hit else ExitCode.DONE


def _check_digest(digest: str | None) -> None:
    from sgl_graph.analyzer.errors import ConfigError

    if digest is not None and (len(digest) != 64 or any(c not in "0123456789abcdefABCDEF" for c in digest)):
        raise ConfigError("--expect-digest takes the 64 hexadecimal digits that the run printed")
