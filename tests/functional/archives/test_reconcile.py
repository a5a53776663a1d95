"""`reconcile` and `export` by the command line: archives believed later, elsewhere, and changed by nobody."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.archive_calls import archives, call, resign, verdicts


def tree(root: Path) -> dict[str, tuple[str, int]]:
    return {
        p.relative_to(root).as_posix(): (hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mtime_ns)
        for p in root.rglob("*")
        if p.is_file()
    }


@pytest.fixture
def clean(tmp_path: Path) -> Any:
    return archives.make(tmp_path / "clean")


def test_inspection_changes_no_byte_and_agrees_with_the_run_line_by_line(clean: Any) -> None:
    before = tree(clean.root)
    for path in [clean.root, *clean.root.rglob("*")]:
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    shown, _ = call("reconcile", clean.root)
    assert tree(clean.root) == before
    fresh = (clean.root / "report.md").read_text().split("```")[1].splitlines()[1:]
    differing = [a.split(":")[0] for a, b in zip(fresh, shown.splitlines(), strict=False) if a != b]
    assert differing == ["Job", "Run", "agreement"]
    assert shown.splitlines()[0] == "Job: read-only inspection"
    assert "historical only (not re-verified)" in shown
    assert "consistent with itself only" in shown


@pytest.mark.parametrize("what", ["clean", "freed", "wrong", "footerless", "unreplayed"])
def test_a_fresh_report_and_its_inspection_agree_to_the_last_line(what: str, tmp_path: Path) -> None:
    made = {
        "clean": archives.Made(),
        "freed": archives.Made(freed=True),
        "wrong": archives.Made(wrong=("two", 1, 2)),
        "footerless": archives.Made(footers=False),
        "unreplayed": archives.Made(replayed=(0,), labels=["target:decode@1", "target:decode@2"]),
    }[what]
    finished = archives.make(tmp_path / what, made)
    shown, _ = call("reconcile", finished.root, "--format", "markdown")
    fresh, later = (finished.root / "report.md").read_text().splitlines(), shown.splitlines()
    differing = [a.split(":")[0] for a, b in zip(fresh, later, strict=True) if a != b]
    assert differing == ["Job", "Run", "agreement"]


def test_the_report_keeps_its_template_and_ends_with_the_boundaries(clean: Any) -> None:
    shown, _ = call("reconcile", clean.root)
    names = [line.split(":")[0] for line in shown.splitlines()[:11]]
    assert names == [
        "Job", "Configuration", "Run", "lifetime", "numerical", "coverage", "agreement", "Provenance", "Execution path",
        "Path map", "Not run / not covered",
    ]  # fmt: skip
    assert len([line for line in shown.splitlines()[-6:] if line.startswith("- ")]) == 6


def test_the_kept_digest_binds_the_whole(clean: Any) -> None:
    good, _ = call("reconcile", clean.root, "--expect-digest", clean.manifest_digest, "--format", "json")
    assert set(verdicts(good).values()) == {"PASS"}
    other, _ = call("reconcile", clean.root, "--expect-digest", "0" * 64, "--format", "json")
    assert set(verdicts(other).values()) == {"INCOMPLETE"}
    call("reconcile", clean.root, "--expect-digest", "abc", code=2)


def test_damage_is_named_and_takes_only_what_rests_on_it(clean: Any) -> None:
    path = clean.root / "receipts" / "w0.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"count":4', b'"count":5', 1))
    shown, _ = call("reconcile", clean.root, "--format", "json")
    assert verdicts(shown) == {"lifetime": "INCOMPLETE", "numerical": "PASS", "coverage": "INCOMPLETE"}
    again, _ = call("reconcile", clean.root, "--recompute", "--format", "json")
    assert verdicts(again) == {"lifetime": "INCOMPLETE", "numerical": "PASS", "coverage": "INCOMPLETE"}
    assert any("receipts/w0.jsonl" in line for line in json.loads(again)["limitations"])


def test_recomputation_goes_beside_unless_in_place_and_keeps_earlier_ones(clean: Any) -> None:
    before = tree(clean.root)
    _, said = call("reconcile", clean.root, "--recompute")
    beside = clean.root.with_name("clean.recomputed-1")
    assert str(beside / "recomputed.json") in said
    assert tree(clean.root) == before
    for _ in range(3):
        call("reconcile", clean.root, "--recompute", "--in-place")
    added = set(tree(clean.root)) - set(before)
    assert added == {"recomputed.json", "recomputed.1.json", "recomputed.2.json"}
    assert {k: v for k, v in tree(clean.root).items() if k in before} == before
    ledger = json.loads((clean.root / "recomputed.json").read_text())
    assert ledger["verdicts"]["lifetime"]["identity"]["status"] == "newly recomputed"
    assert ledger["agreement"]["status"] == "newly recomputed"
    shown, _ = call("reconcile", clean.root, "--format", "json")
    assert set(verdicts(shown).values()) == {"PASS"}


def test_a_record_that_recomputation_contradicts_is_rejected_and_never_becomes_pass(tmp_path: Path) -> None:
    made = archives.make(tmp_path / "wrong", archives.Made(wrong=("two", 1, 2)))
    ledger = json.loads((made.root / "ledger.json").read_text())
    ledger["verdicts"]["numerical"]["value"] = "PASS"
    ledger["verdicts"]["coverage"]["value"] = "FAIL"
    (made.root / "ledger.json").write_text(json.dumps(ledger))
    resign(made.root)
    shown, _ = call("reconcile", made.root, "--recompute", "--format", "json")
    assert verdicts(shown) == {"lifetime": "PASS", "numerical": "FAIL", "coverage": "INCOMPLETE"}
    found = json.loads(shown)["verdicts"]
    assert "recorded PASS, recomputed FAIL: rejected" in found["numerical"]["reason"]
    assert found["coverage"]["identity"]["status"] == "rejected"


def test_gates(tmp_path: Path) -> None:
    failed = archives.make(tmp_path / "failed", archives.Made(freed=True)).root
    open_ = archives.make(tmp_path / "open", archives.Made(footers=False)).root
    call("reconcile", failed)
    call("reconcile", failed, "--fail-on", "FAIL", code=1)
    call("reconcile", failed, "--fail-on", "numerical=FAIL")
    call("reconcile", open_, "--fail-on", "FAIL,INCOMPLETE", code=3)
    call("reconcile", failed, "--fail-on", "FAIL", "--recompute", code=2)
    call("reconcile", failed, "--recompute")
    call("reconcile", failed, "--fail-on", "RED", code=2)
    call("reconcile", failed, "--in-place", code=2)


def test_many_archives_give_a_row_each_and_a_broken_one_a_reason(tmp_path: Path, clean: Any) -> None:
    archives.make(tmp_path / "deep" / "failed", archives.Made(freed=True))
    broken = archives.make(tmp_path / "deep" / "broken").root
    (broken / "plan.json").write_text('{"schema": "sgl-graph.plan/99"}')
    (broken / "ledger.json").unlink()
    text, _ = call("reconcile", clean.root, tmp_path / "deep", "--format", "csv", code=5)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(Path(r["archive"]).name, r["lifetime"]) for r in rows] == [
        ("clean", "PASS"), ("broken", "unknown"), ("failed", "FAIL"),
    ]  # fmt: skip
    assert "sgl-graph.plan/99" in rows[1]["problem"]
    listed, _ = call("reconcile", tmp_path / "deep", "--format", "json", code=5)
    assert [row["ledger"] is None for row in json.loads(listed)] == [True, False]
    for format_ in ("table", "markdown"):
        assert "failed" in call("reconcile", tmp_path / "deep", "--format", format_, code=5)[0]
    _, said = call("reconcile", tmp_path / "deep", code=5)
    assert said == f"next: sgl-graph reconcile {tmp_path / 'deep' / 'failed'} shows one whole\n"


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    call("reconcile", tmp_path / "none", code=5)
    call("reconcile", tmp_path, code=5)
    (tmp_path / "plan.json").write_text("{" * 100_000)
    call("reconcile", tmp_path, code=5)


def test_links_and_names_that_leave_the_folder_are_damage(tmp_path: Path, clean: Any) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not yours")
    path = clean.root / "receipts" / "w0.jsonl"
    path.unlink()
    path.symlink_to(secret)
    shown, _ = call("reconcile", clean.root, "--format", "json")
    assert verdicts(shown)["lifetime"] == "INCOMPLETE"
    assert "not yours" not in shown
    manifest = json.loads((clean.root / "manifest.json").read_text())
    manifest["files"]["../secret"] = {"sha256": "0" * 64, "size": 9}
    (clean.root / "manifest.json").write_text(json.dumps(manifest))
    shown, _ = call("reconcile", clean.root, "--format", "json")
    assert set(verdicts(shown).values()) == {"INCOMPLETE"}


def test_a_pipe_is_damage_and_nothing_waits_for_it(tmp_path: Path, clean: Any) -> None:
    receipt = clean.root / "receipts" / "w0.jsonl"
    receipt.unlink()
    os.mkfifo(receipt)
    for arguments in ((), ("--recompute", "--work", tmp_path / "work")):
        shown, _ = call("reconcile", clean.root, "--format", "json", *arguments)
        assert verdicts(shown)["lifetime"] == "INCOMPLETE"


def test_names_that_are_no_text_are_damage_and_drive_no_terminal(clean: Any) -> None:
    receipts = os.fsencode(clean.root / "receipts")
    for name in (b"\xff\xfe.jsonl", b"w9\x1b[2J\n.jsonl"):
        with open(os.path.join(receipts, name), "wb") as file:
            file.write(b"{}\n")
    for options in ((), ("--recompute", "--in-place"), ("--format", "json"), ("--format", "markdown")):
        shown, said = call("reconcile", clean.root, *options)
        assert "\x1b" not in shown + said
        assert "has a name that is no plain text" in shown
    assert verdicts(call("reconcile", clean.root, "--format", "json")[0])["lifetime"] == "INCOMPLETE"


def test_folders_within_folders_end_in_one_clear_error(tmp_path: Path, clean: Any) -> None:
    deep, before = clean.root, os.getcwd()
    os.chdir(deep)
    try:
        for _ in range(1200):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(before)
    try:
        for command in (("reconcile", clean.root), ("export", clean.root, "-o", tmp_path / "x.zip")):
            _, said = call(*command, code=5)
            assert "folders within folders" in said
    finally:
        subprocess.run(["rm", "-rf", str(deep / "d")], check=True)


def test_an_output_file_is_not_overwritten(tmp_path: Path, clean: Any) -> None:
    target = tmp_path / "r.md"
    call("reconcile", clean.root, "-o", target, "--format", "markdown")
    call("reconcile", clean.root, "-o", target, "--format", "markdown", code=2)
    call("reconcile", clean.root, "-o", target, "--format", "markdown", "--force")


def test_another_map_adds_drift_and_moves_nothing(tmp_path: Path, clean: Any) -> None:
    other = json.loads((clean.root / "map.json").read_text())
    other["paths"][0]["label"]["buckets"] = [1, 2, 4]
    other["labels"] = ["target:other"]
    (tmp_path / "other.json").write_text(json.dumps(other))
    shown, _ = call("reconcile", clean.root, "--map", tmp_path / "other.json", "--format", "json")
    assert set(verdicts(shown).values()) == {"PASS"}
    ledger = json.loads(shown)
    assert [d["kind"] for d in ledger["drift"]] == ["other-map/buckets"]
    assert "the plan required target:decode, the other map does not know it" in ledger["limitations"]


def test_an_export_can_be_recomputed_as_far_as_it_says(tmp_path: Path) -> None:
    made = archives.make(tmp_path / "run", archives.Made(freed=True))
    _, said = call("export", made.root, "-o", tmp_path / "x.zip")
    call("export", made.root, "-o", tmp_path / "x.zip", code=2)
    digest = said.split("manifest digest ")[1].split()[0]
    zipfile.ZipFile(tmp_path / "x.zip").extractall(tmp_path / "out")
    [folder] = (tmp_path / "out").iterdir()
    statement = json.loads((folder / "export.json").read_text())
    assert "eager/one.outputs.json" in statement["left_out"]
    shown, _ = call("reconcile", folder, "--expect-digest", digest, "--format", "json")
    assert verdicts(shown) == {"lifetime": "FAIL", "numerical": "PASS", "coverage": "PASS"}
    again, _ = call("reconcile", folder, "--recompute", "--format", "json")
    assert verdicts(again) == {"lifetime": "FAIL", "numerical": "NOT-RECOMPUTED", "coverage": "PASS"}
    call("export", made.root, "-o", tmp_path / "y.zip", "--include-outputs")
    zipfile.ZipFile(tmp_path / "y.zip").extractall(tmp_path / "whole")
    [folder] = (tmp_path / "whole").iterdir()
    again, _ = call("reconcile", folder, "--recompute", "--format", "json")
    assert verdicts(again) == {"lifetime": "FAIL", "numerical": "PASS", "coverage": "PASS"}


def test_an_export_masks_paths_hosts_and_variables(tmp_path: Path) -> None:
    import socket

    made = archives.make(tmp_path / "run")
    plan = json.loads((made.root / "plan.json").read_text())
    plan["env"] = {"SGLANG_X": "1", "HOME": "/home/somebody", "MY_TOKEN": "hush", "SGLANG_API_KEY": "hush"}
    plan["command"] += ["--api-key", "hush", "--model-path", "/home/somebody/models/secret-model"]
    plan["notes"] = [f"ran on {socket.gethostname()}"]
    plan["env"]["TEAM"] = "blue falcon"
    (made.root / "plan.json").write_text(json.dumps(plan))
    report = made.root / "report.md"
    report.write_text(
        f"{report.read_text()}\nTEAM=blue falcon MY_TOKEN=hush python -m x --api-key hush; the blue falcon\n"
    )
    call("export", made.root, "-o", tmp_path / "x.zip")
    archive = zipfile.ZipFile(tmp_path / "x.zip")
    text = "".join(archive.read(name).decode() for name in archive.namelist())
    assert "hush" not in text and "somebody" not in text and "secret-model" not in text and "falcon" not in text
    assert f"ran on {socket.gethostname()}" not in text and "ran on <host>" in text and str(tmp_path) not in text
    exported = json.loads(archive.read("0123456789ab/plan.json"))
    assert exported["env"] == {
        "SGLANG_X": "1", "HOME": "<masked>", "MY_TOKEN": "<masked>", "SGLANG_API_KEY": "<masked>", "TEAM": "<masked>",
    }  # fmt: skip


def test_an_export_keeps_the_keys_of_graphs_and_streams_receipts(tmp_path: Path) -> None:
    """A graph's key is evidence, not a secret; and receipts are masked line by line."""
    made = archives.make(tmp_path / "run")
    _, said = call("export", made.root, "-o", tmp_path / "x.zip")
    assert "secrets" not in said
    archive = zipfile.ZipFile(tmp_path / "x.zip")
    lines = archive.read("0123456789ab/receipts/w0.jsonl").splitlines()
    captures = [body for body in map(json.loads, lines) if body["k"] == "capture"]
    assert [body["key"] for body in captures] == ["target:decode@1", "target:decode@2", "target:decode@2"]
    assert not list(tmp_path.glob(".*partial"))
