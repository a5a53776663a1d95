"""`explain` knows every word that a report prints; messages name what is wrong, without a library's own words."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from sgl_graph.analyzer.reconcile.lifetime_codes import CODES
from sgl_graph.analyzer.reconcile.run_codes import RUN_CODES
from sgl_graph.analyzer.reconcile.terms import TERMS
from sgl_graph.analyzer.records.ledger import Value
from sgl_graph.analyzer.records.pathmap import Inspectability
from sgl_graph.analyzer.static.rules import RULES
from sgl_graph.cli.app import build
from typer.testing import CliRunner

from tests.fakes.archive_calls import archives, call

ROOT = Path(__file__).parents[3]


def test_every_class_verdict_and_kind_of_drift_is_explained() -> None:
    sources = "".join((ROOT / "analyzer/reconcile" / f).read_text() for f in ("drift.py", "dispatch.py"))
    kinds = set(re.findall(r'kind="([\w-]+)"', sources)) | {"setting"}
    assert "bucket-unreplayed" in kinds and "dispatch" in kinds
    assert {*get_args(Inspectability), *get_args(Value), *kinds} <= set(TERMS)


def test_no_word_has_two_meanings() -> None:
    names = [name.lower() for table in (CODES, RUN_CODES, RULES, TERMS) for name in table]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("word", ["partial", "Inconclusive", "bucket-unreplayed", "other-map/buckets", " refuted "])
def test_a_word_is_explained_however_it_is_spelled(word: str) -> None:
    result = CliRunner().invoke(build(), ["explain", word])
    assert result.exit_code == 0 and "Next: " in result.output
    assert result.output.lower().startswith(word.strip().lower().removeprefix("other-map/"))


def test_a_near_word_is_suggested_and_the_list_has_all() -> None:
    result = CliRunner().invoke(build(), ["explain", "bucket-unreplaid"])
    assert "did you mean bucket-unreplayed?" in str(getattr(result.exception, "hint", result.output))
    listed = CliRunner().invoke(build(), ["explain"]).output
    assert all(f"{name}  " in listed for name in (*RULES, *CODES, *RUN_CODES, *TERMS))


def test_reasons_name_the_member_that_is_wrong(tmp_path: Path) -> None:
    clean: Any = archives.make(tmp_path / "run")
    manifest = clean.root / "manifest.json"
    body = json.loads(manifest.read_text())
    body["files"]["plan.json"]["sha256"] = 7
    manifest.write_text(json.dumps(body))
    shown, _ = call("reconcile", clean.root)
    assert "manifest.json: is no manifest: files.plan.json.sha256: " in shown
    assert "validation error" not in shown
    plan = json.loads((clean.root / "plan.json").read_text())
    plan["launches"] = "none"
    (clean.root / "plan.json").write_text(json.dumps(plan))
    _, said = call("reconcile", clean.root, "--recompute", code=5)
    assert "plan.json: launches: " in said and "validation error" not in said


def test_an_export_that_cannot_be_written_says_what_would_help(tmp_path: Path) -> None:
    clean: Any = archives.make(tmp_path / "run")
    _, said = call("export", clean.root, "-o", "/proc/x.zip", code=4)
    assert "cannot write /proc/x.zip" in said and "free space" not in said


def test_doctor_names_an_interpreter_that_cannot_be_started_once() -> None:
    shown, _ = call("doctor", "--python", "/tmp", code=4)
    line = next(line for line in shown.splitlines() if "interpreter" in line)
    assert "/tmp: cannot be started: " in line and "Errno" not in shown and line.count("/tmp") == 1
    assert os.strerror(13) in line
