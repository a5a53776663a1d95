"""Keeps receipts of GPU programs as fixtures: paths shortened, the chain renewed, nothing else changed.

    python tests/gpu/keep_receipts.py FOLDER [NAME...]

FOLDER holds a folder with receipts for each program, as `table.py --keep` leaves it; all are kept unless some are named. The
verdict that is expected from then on is the one they give now, which must agree with the program's first line.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import FIRST_LINK, read_receipts, seal_line

HERE = Path(__file__).parent
FIXTURES = HERE.parents[1] / "fixtures" / "gpu_receipts"
#: What stands before these parts of a path is the host's own.
_KEPT = ("programs/", "twins/", "/usr/lib/", "/site-packages/", "/dist-packages/")


def shortened(value: Any) -> Any:
    """A JSON value whose absolute paths keep only what is the same elsewhere."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if not isinstance(value, str) or "/" not in value or "::" in value:
        return value
    if value.startswith("exec "):
        return re.sub(r"\S*/(\S+\.py)", r"\1", value.partition(" > ")[0])
    for part in _KEPT:
        at = value.find(part)
        if at >= 0:
            return value[at:]
    return os.path.basename(value) if value.startswith("/") else value


def keep(source: Path, target: Path) -> None:
    """Write a worker's receipts with shortened paths."""
    previous, lines = FIRST_LINK, []
    for raw in source.read_bytes().splitlines():
        body = shortened(json.loads(raw))
        del body["h"]
        line, previous = seal_line(json.dumps(body, separators=(",", ":")).encode(), previous)
        lines.append(line)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(b"".join(lines))


def main() -> None:
    """Keep what was asked for."""
    folder, *wanted = sys.argv[1:]
    expected = json.loads((FIXTURES / "expected.json").read_text())
    for place in sorted(Path(folder).iterdir()):
        receipts = sorted(place.rglob("*.jsonl")) if place.is_dir() else []
        program = next(iter(sorted(HERE.rglob(f"{place.name}.py"))), None)
        if not receipts or program is None or (wanted and place.name not in wanted):
            continue
        for path in sorted((FIXTURES / place.name).glob("*.jsonl")):
            path.unlink()
        for path in receipts:
            keep(path, FIXTURES / place.name / path.name)
        verdict = lifetime_verdict(
            [read_receipts(p) for p in sorted((FIXTURES / place.name).glob("*.jsonl"))]
        ).value.value
        said = re.search(r"lifetime=(\S+)", program.read_text().splitlines()[0])
        if said is None or not (verdict == said[1] or (said[1] == "!PASS" and verdict != "PASS")):
            raise SystemExit(f"{place.name}: {verdict}, and the program says {said and said[1]}")
        expected[place.name] = verdict
    text = json.dumps(expected, indent=1, sort_keys=True) + "\n"
    (FIXTURES / "expected.json").write_text(text)


if __name__ == "__main__":
    main()
