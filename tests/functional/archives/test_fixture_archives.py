"""Committed archives stay readable and give the verdicts that they were committed with."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.runtime.inspection import inspect, recompute

ROOT = Path(__file__).parents[3] / "fixtures" / "archives"
CASES = [
    (path, name, case)
    for path in sorted(ROOT.glob("*/expected.json"))
    for name, case in json.loads(path.read_text()).items()
]


def values(ledger: Ledger) -> dict[str, str]:
    verdicts = ledger.verdicts
    return {name: getattr(verdicts, name).value for name in ("lifetime", "numerical", "coverage")}


def test_every_kept_archive_states_what_is_expected_of_it() -> None:
    kept = {p.relative_to(ROOT).with_suffix("").as_posix() for p in ROOT.glob("*/*.zip")}
    assert kept == {f"{path.parent.name}/{name}" for path, name, _ in CASES}
    assert kept


@pytest.mark.parametrize(("path", "name", "case"), CASES, ids=[f"{p.parent.name}-{n}" for p, n, _ in CASES])
def test_inspection_and_recomputation_give_the_committed_verdicts(
    tmp_path: Path, path: Path, name: str, case: dict[str, Any]
) -> None:
    with zipfile.ZipFile(path.with_name(f"{name}.zip")) as archive:
        archive.extractall(tmp_path)
    [root] = tmp_path.iterdir()
    digest = case["manifest_digest"]
    shown = inspect(root, expected=digest)
    assert values(shown) == case["verdicts"]
    again, _ = recompute(root, expected=digest, work=None, in_place=True)
    assert values(again) == case["verdicts"]
    assert [f.code for f in again.findings] == [f.code for f in shown.findings]
    other = inspect(root, expected="0" * 64)
    assert "PASS" not in values(other).values()
