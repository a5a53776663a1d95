"""`export` of a damaged or forged archive: the damage goes along, and nothing becomes PASS on the way."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.archive_calls import archives, call, resign, verdicts


def exported(root: Path, to: Path, *options: str) -> tuple[Path, str, str]:
    """The unpacked export, its digest, and what was said."""
    file = to / "x.zip"
    _, said = call("export", root, "-o", file, *options)
    zipfile.ZipFile(file).extractall(to / "out")
    [folder] = (to / "out").iterdir()
    return folder, said.split("manifest digest ")[1].split()[0], said


def forge_ledger(root: Path) -> None:
    ledger = json.loads((root / "ledger.json").read_text())
    for verdict in ledger["verdicts"].values():
        verdict["value"] = "PASS"
    ledger["findings"] = []
    (root / "ledger.json").write_text(json.dumps(ledger))


def empty_answers(root: Path) -> None:
    (root / "ordinary" / "one.outputs.json").write_text("{}")


def lose_receipts(root: Path) -> None:
    (root / "receipts" / "w1.jsonl").unlink()


def link_receipts(root: Path) -> None:
    receipts = root / "receipts" / "w1.jsonl"
    receipts.rename(root.parent / "elsewhere")
    receipts.symlink_to(root.parent / "elsewhere")


def add_receipts(root: Path) -> None:
    (root / "receipts" / "w7.jsonl").write_bytes((root / "receipts" / "w1.jsonl").read_bytes())


DAMAGE: dict[str, tuple[Callable[[Path], None], set[str]]] = {
    "ledger": (forge_ledger, {"lifetime", "numerical", "coverage"}),
    "answers": (empty_answers, {"numerical"}),
    "lost receipts": (lose_receipts, {"lifetime", "coverage"}),
    "linked receipts": (link_receipts, {"lifetime", "coverage"}),
    "added receipts": (add_receipts, {"lifetime", "coverage"}),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_survives_an_export_and_an_export_of_that(what: str, tmp_path: Path) -> None:
    damage, touched = DAMAGE[what]
    root = archives.make(tmp_path / "run").root
    damage(root)
    for step in ("first", "second"):
        (tmp_path / step).mkdir()
        root, digest, said = exported(root, tmp_path / step)
        assert "warning: the archive does not verify" in said
        for options in ((), ("--recompute",)):
            shown, _ = call("reconcile", root, "--expect-digest", digest, "--format", "json", *options)
            found = verdicts(shown)
            assert {name for name, value in found.items() if value == "INCOMPLETE"} == touched, (step, options, found)
            assert "(before the export)" in shown


def test_an_export_without_its_statement_on_damage_proves_nothing(tmp_path: Path) -> None:
    root = archives.make(tmp_path / "run").root
    lose_receipts(root)
    root, digest, _ = exported(root, tmp_path)
    statement = root / "export.json"
    body = json.loads(statement.read_text())
    for text in (None, "{", "[]", json.dumps({**body, "source_damage": {}})):
        statement.unlink(missing_ok=True)
        if text is not None:
            statement.write_text(text)
        shown, _ = call("reconcile", root, "--expect-digest", digest, "--format", "json")
        assert set(verdicts(shown).values()) == {"INCOMPLETE"}, text


def test_an_export_of_an_export_still_knows_what_was_left_out(tmp_path: Path) -> None:
    root = archives.make(tmp_path / "run").root
    for step in ("first", "second"):
        (tmp_path / step).mkdir()
        root, digest, said = exported(root, tmp_path / step)
        assert "warning" not in said
        shown, _ = call("reconcile", root, "--expect-digest", digest, "--recompute", "--format", "json")
        assert verdicts(shown) == {"lifetime": "PASS", "numerical": "NOT-RECOMPUTED", "coverage": "PASS"}


def _reason(ledger: Any) -> None:
    ledger["verdicts"]["lifetime"]["reason"] = "graph a: a replay references freed memory"


def _finding(ledger: Any) -> None:
    ledger["findings"] = [{"code": "freed-memory", "severity": "definite"}]


def _launch(ledger: Any) -> None:
    ledger["launches"]["instrumented"]["state"] = "failed"


def _differences(ledger: Any) -> None:
    ledger["verdicts"]["numerical"]["differences"] = 3


def _missing(ledger: Any) -> None:
    ledger["verdicts"]["coverage"]["missing"] = {"target:decode": "never replayed"}


def _unreplayed(ledger: Any) -> None:
    ledger["verdicts"]["coverage"]["replayed"] = []


@pytest.mark.parametrize(
    ("edit", "touched"),
    [
        (_reason, {"lifetime"}),
        (_finding, {"lifetime"}),
        (_launch, {"lifetime", "coverage"}),
        (_differences, {"numerical"}),
        (_missing, {"coverage"}),
        (_unreplayed, {"coverage"}),
    ],
)
def test_a_pass_that_its_own_ledger_contradicts_is_rejected(
    edit: Callable[[Any], None], touched: set[str], tmp_path: Path
) -> None:
    """Even where the manifest was made anew, so that every file verifies."""
    root = archives.make(tmp_path / "run").root
    ledger = json.loads((root / "ledger.json").read_text())
    edit(ledger)
    (root / "ledger.json").write_text(json.dumps(ledger))
    resign(root)
    for options in ((), ("--recompute",)):
        shown, _ = call("reconcile", root, "--format", "json", *options)
        assert {name for name, value in verdicts(shown).items() if value == "INCOMPLETE"} == touched, options
    _, _, said = exported(root, tmp_path)
    assert "contradicts itself" in said
