"""`reconcile` and `export` where the request itself is odd: outputs, exit codes, next steps, files that are none."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.archive_calls import archives, call, verdicts


@pytest.fixture
def clean(tmp_path: Path) -> Any:
    return archives.make(tmp_path / "clean")


def content(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", ["ledger.json", "manifest.json", "receipts/new.json", "new.json"])
@pytest.mark.parametrize("command", ["reconcile", "export"])
def test_nothing_is_written_into_an_archive_that_is_read(command: str, name: str, clean: Any, tmp_path: Path) -> None:
    before = content(clean.root)
    (tmp_path / "alias").symlink_to(clean.root)
    for folder in (clean.root, tmp_path / "alias"):
        _, said = call(command, clean.root, "-o", folder / name, "--force", code=2)
        assert "in the archive" in said
    assert content(clean.root) == before


def test_a_work_folder_inside_the_archive_is_refused(clean: Any) -> None:
    before = content(clean.root)
    call("reconcile", clean.root, "--recompute", "--work", clean.root / "work", code=2)
    assert content(clean.root) == before


@pytest.mark.parametrize("command", ["reconcile", "export"])
def test_only_plain_files_are_overwritten(command: str, clean: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for name in ("pipe", "dangling", "link"):
        for force in ((), ("--force",)):
            _, said = call(command, clean.root, "-o", tmp_path / name, *force, code=2)
            assert "a link" in said or "no plain file" in said
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "dangling").is_symlink()
    assert (tmp_path / "target").read_text() == "kept" and not (tmp_path / "nowhere").exists()


def test_a_hard_link_to_a_file_of_the_archive_does_not_write_into_it(clean: Any, tmp_path: Path) -> None:
    before = content(clean.root)
    (tmp_path / "other").hardlink_to(clean.root / "ledger.json")
    (tmp_path / "other").chmod(0o640)
    call("reconcile", clean.root, "-o", tmp_path / "other", "--force")
    assert content(clean.root) == before and (tmp_path / "other").read_text().startswith("Job: ")
    assert (tmp_path / "other").stat().st_mode & 0o777 == 0o640
    call("reconcile", clean.root, "-o", tmp_path / "fresh")
    umask = os.umask(0o022)
    os.umask(umask)
    assert (tmp_path / "fresh").stat().st_mode & 0o777 == 0o666 & ~umask
    assert not list(tmp_path.glob(".*partial"))


def test_an_overwritten_export_keeps_the_mode_of_the_file(clean: Any, tmp_path: Path) -> None:
    out = tmp_path / "x.zip"
    out.write_bytes(b"")
    out.chmod(0o600)
    call("export", clean.root, "-o", out, "--force")
    assert out.stat().st_mode & 0o777 == 0o600 and out.stat().st_size > 0


@pytest.mark.parametrize("name", ["with space", "quote'd", 'double"d', "line\nend", "$HOME;ls", "-x"])
def test_next_steps_can_be_pasted(name: str, tmp_path: Path) -> None:
    made = archives.make(tmp_path / name)
    _, said = call("reconcile", made.root, "--expect-digest", made.manifest_digest)
    words = shlex.split(said.split("next: ")[1])
    assert words == [
        "sgl-graph", "reconcile", str(made.root), "--recompute", "--expect-digest", made.manifest_digest,
    ]  # fmt: skip
    out = tmp_path / f"{name}.zip"
    _, said = call("export", made.root, "-o", out)
    unzip, _, reconcile = said.split("next: ")[1].partition(" && ")
    assert shlex.split(unzip) == ["unzip", "-d", str(tmp_path), str(out)]
    words = shlex.split(reconcile)
    assert words[:3] == ["sgl-graph", "reconcile", str(tmp_path / "0123456789ab")] and len(words[-1]) == 64


def test_paths_that_look_like_options_are_named_as_files(tmp_path: Path) -> None:
    archives.make(tmp_path / "-run")
    _, said = call("reconcile", "--", "-run", cwd=tmp_path)
    assert shlex.split(said.split("next: ")[1])[2] == "./-run"


def test_no_next_step_where_the_digest_is_another_archives(clean: Any) -> None:
    _, said = call("reconcile", clean.root, "--expect-digest", "0" * 64)
    assert "next:" not in said


def test_an_unreadable_archive_among_several_shows_in_the_exit_code(clean: Any, tmp_path: Path) -> None:
    broken = archives.make(tmp_path / "more" / "broken").root
    (broken / "ledger.json").unlink()
    (broken / "plan.json").write_text('{"schema": "sgl-graph.plan/99"}')
    for options in ((), ("--recompute",), ("--jobs", "1"), ("--fail-on", "INCOMPLETE")):
        shown, _ = call("reconcile", clean.root, tmp_path / "more", *options, code=5)
        assert "sgl-graph.plan/99" in shown and "PASS" in shown
    archives.make(tmp_path / "more" / "failed", archives.Made(freed=True))
    call("reconcile", clean.root, tmp_path / "more", "--fail-on", "FAIL", code=1)


def test_an_empty_path_is_not_the_working_directory(clean: Any) -> None:
    call("reconcile", "", code=2, cwd=clean.root)
    call("export", "", "-o", clean.root.parent / "x.zip", code=2, cwd=clean.root)


def test_a_pipe_as_a_map_is_refused_at_once(clean: Any, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place, words in ((tmp_path / "pipe", "no plain file"), (tmp_path, "a folder"), (tmp_path / "none", "No such")):
        _, said = call("reconcile", clean.root, "--map", place, code=2)
        assert f"--map {place}: " in said and words in said


def test_a_working_directory_that_is_gone_is_one_clear_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); " + (
        "from sgl_graph.cli.app import main; import sys; sys.argv = ['sgl-graph', 'export', 'a', '-o', 'b']; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "working directory" in done.stderr, done.stderr


def test_evidence_is_called_verified_only_where_it_is(tmp_path: Path, clean: Any) -> None:
    shown, _ = call("reconcile", clean.root)
    assert "numerical: PASS, kind token-ids, evidence verified" in shown
    shown, _ = call("reconcile", clean.root, "--expect-digest", "0" * 64)
    assert "numerical: INCOMPLETE, kind token-ids, evidence rejected" in shown
    ledger = json.loads((clean.root / "ledger.json").read_text())
    for value in ("NOT-RUN", "INCOMPLETE"):
        # As earlier releases recorded it.
        ledger["verdicts"]["numerical"] |= {"value": value, "evidence": "verified", "reason": "nothing to compare"}
        (clean.root / "ledger.json").write_text(json.dumps(ledger))
        shown, _ = call("reconcile", clean.root)
        assert "evidence verified" not in shown
    (clean.root / "eager" / "one.outputs.json").unlink()
    again, _ = call("reconcile", clean.root, "--recompute", "--format", "json")
    assert verdicts(again)["numerical"] == "INCOMPLETE"
    assert json.loads(again)["verdicts"]["numerical"]["evidence"] == "incomplete"
