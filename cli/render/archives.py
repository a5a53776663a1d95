"""Several archives, a row each: table, JSON, Markdown, CSV."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass

from sgl_graph.analyzer.records.ledger import BOUNDARIES, Ledger

COLUMNS = (
    "archive",
    "run",
    "lifetime",
    "numerical",
    "coverage",
    "agreement",
    "findings",
    "drift",
    "first_reason",
    "problem",
    "written",
)


@dataclass(frozen=True)
class Row:
    """One archive, or why it could not be read."""

    archive: str
    ledger: Ledger | None
    problem: str
    written: str = ""

    def cells(self) -> list[str]:
        """In the order of COLUMNS."""
        ledger = self.ledger
        if ledger is None:
            return [self.archive, *["unknown"] * 5, "", "", "", self.problem, ""]
        v = ledger.verdicts
        reasons = (x.reason for x in (v.lifetime, v.numerical, v.coverage) if x.value not in ("PASS", "NOT-RUN"))
        return [
            self.archive,
            ledger.run_id,
            v.lifetime.value,
            v.numerical.value,
            v.coverage.value,
            f"{ledger.agreement.status} {ledger.agreement.value}".removesuffix(" unknown"),
            str(len(ledger.findings)),
            str(len(ledger.drift)),
            next(iter(reasons), "")[:160],
            self.problem,
            self.written,
        ]


def table_text(rows: Sequence[Row], width: int = 100) -> str:
    """Columns for a terminal, then the boundaries.

    Args:
        rows: An archive each.
        width: Columns of the terminal. What does not fit loses the folder that all archives share, then the run, then the heads of
            their names; the verdicts stay.
    """
    shown = list(COLUMNS[:8])
    cells = [shown, *(row.cells()[:8] for row in rows)]
    lines = _lines(cells)
    folder = _shared([row.archive for row in rows])
    if _widest(lines) > width and folder:
        cells = [[line[0].removeprefix(folder), *line[1:]] for line in cells]
        lines = [f"in {folder}", *_lines(cells)]
    if _widest(lines[1:]) > width:
        cells = [[line[0], *line[2:]] for line in cells]
        over = _widest(_lines(cells)) - width
        longest = max(len(line[0]) for line in cells)
        cells = [[_tail(line[0], max(longest - over, len(COLUMNS[0]))), *line[1:]] for line in cells]
        lines = [*lines[: len(lines) - len(cells)], *_lines(cells)]
    lines += [f"{row.archive}: {row.problem}" for row in rows if row.problem]
    lines += [f"{row.archive}: wrote {row.written}" for row in rows if row.written]
    return "\n".join([*lines, "", "Boundaries:", *(f"- {sentence}" for sentence in BOUNDARIES)])


def _lines(cells: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]


def _widest(lines: Sequence[str]) -> int:
    return max((len(line) for line in lines), default=0)


def _shared(names: Sequence[str]) -> str:
    """The folder that several paths share, with its slash; empty where there is none to leave out."""
    if len(names) < 2:
        return ""
    try:
        folder = os.path.commonpath([name.rpartition("/")[0] for name in names])
    except ValueError:  # some are absolute, some are not
        return ""
    return f"{folder}/" if folder else ""


def _tail(name: str, length: int) -> str:
    return name if len(name) <= length else "…" + name[len(name) - length + 1 :]


def json_text(rows: Sequence[Row]) -> str:
    """A list of objects: cells, and the whole ledger."""
    return json.dumps(
        [
            {
                **dict(zip(COLUMNS, row.cells(), strict=True)),
                "ledger": row.ledger.model_dump(mode="json") if row.ledger else None,
            }
            for row in rows
        ],
        indent=1,
    )


def markdown_text(rows: Sequence[Row]) -> str:
    """A Markdown table, then the boundaries."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    body = [line(COLUMNS), line(["---"] * len(COLUMNS)), *(line(row.cells()) for row in rows)]
    return "\n".join([*body, "", *(f"- {sentence}" for sentence in BOUNDARIES)])


def csv_text(rows: Sequence[Row]) -> str:
    """CSV with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    # A cell that a spreadsheet would run as a formula is text here.
    writer.writerows([[f"'{cell}" if cell[:1] in ("=", "+", "@") else cell for cell in row.cells()] for row in rows])
    return out.getvalue()
