"""Kept runs of a real SGLang with planted faults still say what their rows state, read and judged again without a GPU."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.runtime.inspection import inspect, recompute

ROOT = Path(__file__).parents[3]
KEPT = ROOT / "fixtures" / "archives" / "real-sglang-0.5.17-faults"
EXPECTED: dict[str, dict[str, Any]] = json.loads((KEPT / "expected.json").read_text())
_spec = importlib.util.spec_from_file_location("kept_fault_rows", ROOT / "tests" / "gpu" / "fault_rows.py")
assert _spec is not None and _spec.loader is not None
rows: Any = importlib.util.module_from_spec(_spec)
sys.modules["kept_fault_rows"] = rows
_spec.loader.exec_module(rows)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_row_holds_as_recorded_and_when_judged_again(name: str, tmp_path: Path) -> None:
    row, kept = rows.ROWS[name], EXPECTED[name]
    with zipfile.ZipFile(KEPT / f"{name}.zip") as archive:
        archive.extractall(tmp_path)
    [root] = tmp_path.iterdir()
    shown = inspect(root, expected=kept["manifest_digest"])
    again, _ = recompute(root, expected=kept["manifest_digest"], work=None, in_place=True)
    # What was recorded stays as it was, also where a later release sees no drift any more.
    recorded = dataclasses.replace(row, drift=frozenset(kept.get("recorded_drift", row.drift)))
    for expected, ledger in ((recorded, shown), (row, again)):
        said = ledger.model_dump(mode="json")
        assert rows.check(expected, said, kept["exit"], None, kept["lines"]).problems == []
    assert tuple(kept["verdicts"].values()) == row.verdicts
