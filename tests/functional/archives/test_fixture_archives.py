"""Committed archives stay readable and give the verdicts that they were committed with."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.reconcile.ledger import assemble
from sgl_graph.analyzer.records import outputs
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.runtime.evidence import read_evidence
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
    evidence = case.get("evidence", "verified")
    assert shown.verdicts.numerical.evidence == evidence
    again, _ = recompute(root, expected=digest, work=None, in_place=True)
    assert values(again) == case.get("recomputed", case["verdicts"])
    # The releases that recorded these called evidence verified that was not whole.
    whole = again.verdicts.numerical.value != "INCOMPLETE"
    assert again.verdicts.numerical.evidence == (evidence if whole else "incomplete")
    assert [f.code for f in again.findings] == [f.code for f in shown.findings]
    other = inspect(root, expected="0" * 64)
    assert "PASS" not in values(other).values()


def test_each_schema_of_answers_has_an_archive() -> None:
    """What an archive of an earlier schema shows is held by one that is kept."""
    found = set()
    for path, name, _ in CASES:
        with zipfile.ZipFile(path.with_name(f"{name}.zip")) as archive:
            for entry in archive.namelist():
                if entry.endswith(".outputs.json"):
                    found.add(json.loads(archive.read(entry))["schema"])
    assert found == {outputs.SCHEMA, outputs.LEGACY_SCHEMA}


@pytest.fixture
def legacy(tmp_path: Path) -> Path:
    with zipfile.ZipFile(ROOT / "schema-0" / "miniserve-legacy.zip") as archive:
        archive.extractall(tmp_path)
    [root] = tmp_path.iterdir()
    return root


def test_answers_without_digests_prove_nothing_whatever_they_say(legacy: Path) -> None:
    path = legacy / "ordinary" / "lora-1.outputs.json"
    body = json.loads(path.read_text())
    body["requests"][0]["output_ids"][0] += 1
    path.write_text(json.dumps(body))
    evidence = read_evidence(legacy, tool_digest="")
    judged = assemble(evidence, job="", run_dir="", read_file="")
    numerical = judged.verdicts.numerical
    assert (numerical.value, numerical.evidence, numerical.differences) == ("INCONCLUSIVE", "unverified-legacy", 1)
    assert [(f.code, f.severity) for f in judged.findings] == [("answers-unsettled", "hazard")]
    assert judged.agreement.status == "unavailable"
    again, _ = recompute(legacy, expected=None, work=None, in_place=True)
    assert again.verdicts.numerical.value == "INCOMPLETE"  # and its file is not the one of the manifest


def test_what_was_agreed_on_stays_history(legacy: Path) -> None:
    again, _ = recompute(legacy, expected=None, work=None, in_place=True)
    assert (again.agreement.status, again.agreement.value) == ("historical only", "agrees")
    assert "recorded PASS" in again.verdicts.numerical.reason
    assert "rejected" not in again.verdicts.numerical.reason


@pytest.mark.parametrize("schema", ["sgl-graph.outputs/0", "sgl-graph.outputs/2", None])
def test_answers_of_another_schema_than_they_say_are_not_read(legacy: Path, schema: str | None) -> None:
    """Naming the legacy schema does not take the digests off answers that have them."""
    path = legacy / "ordinary" / "lora-1.outputs.json"
    body = json.loads(path.read_text())
    body |= {"schema": schema, "sha256": "0" * 64}
    path.write_text(json.dumps(body))
    evidence = read_evidence(legacy, tool_digest="")
    assert "lora-1" not in evidence.answers["ordinary"]
    assert assemble(evidence, job="", run_dir="", read_file="").verdicts.numerical.value == "INCOMPLETE"
