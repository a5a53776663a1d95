"""Several archives, a row each: table, JSON, Markdown, CSV."""

from __future__ import annotations

import csv
import io
import json
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


def table_text(rows: Sequence[Row]) -> str:
    """Columns for a terminal, then the boundaries."""
    shown = COLUMNS[:8]
    cells = [list(shown), *(row.cells()[:8] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(shown))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    lines += [f"{row.archive}: {row.problem}" for row in rows if row.problem]
    lines += [f"{row.archive}: wrote {row.written}" for row in rows if row.written]
    return "\n".join([*lines, "", "Boundaries:", *(f"- {sentence}" for sentence in BOUNDARIES)])


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
