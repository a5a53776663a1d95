"""Exports that are read as the zip files that they are, and tables that fit the terminal."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.errors import ArchiveCorrupt, HostError
from sgl_graph.cli.render.archives import Row, table_text
from sgl_graph.runtime import unzipped as module
from sgl_graph.runtime.unzipped import unzipped

from tests.fakes.archive_calls import archives, call


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    made = archives.make(tmp_path / "clean")
    call("export", made.root, "-o", tmp_path / "clean.zip")
    return tmp_path / "clean.zip"


def test_an_export_is_shown_whole_under_its_own_name(exported: Path) -> None:
    before = exported.read_bytes()
    shown, said = call("reconcile", exported, "--format", "json")
    ledger = json.loads(shown)
    assert ledger["run_dir"] == str(exported)
    assert ledger["verdicts"]["lifetime"]["value"] == "PASS"
    assert "next:" not in said and exported.read_bytes() == before


def test_exports_and_folders_together_give_rows(exported: Path, tmp_path: Path) -> None:
    shown, said = call("reconcile", exported, tmp_path / "clean", "--format", "csv", "--jobs", "1")
    assert [line.split(",")[0] for line in shown.splitlines()[1:]] == [str(exported), str(tmp_path / "clean")]
    shown, said = call("reconcile", exported, tmp_path / "clean", "--jobs", "1")
    assert str(exported) in said and "next:" in said


def test_an_export_is_not_recomputed(exported: Path) -> None:
    _, said = call("reconcile", exported, "--recompute", code=2)
    assert "unzip it first" in said


def hostile(path: Path, name: str, mode: int = 0) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = mode << 16
        archive.writestr(entry, "x")
    return path


@pytest.mark.parametrize("name", ["../out", "/abs", "a/../../b", "a\\b", "a\nb"])
def test_a_zip_file_unpacks_into_its_folder_only(name: str, tmp_path: Path) -> None:
    file = hostile(tmp_path / "bad.zip", name)
    with pytest.raises(ArchiveCorrupt), unzipped([file]):
        pass
    _, said = call("reconcile", file, code=5)
    assert "no plain file within it" in said
    assert not (tmp_path / "out").exists()


def test_links_damage_and_doubled_names_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [hostile(tmp_path / "link.zip", "link", stat.S_IFLNK | 0o777)]
    files.append(hostile(tmp_path / "damaged.zip", "fine"))
    data = bytearray(files[-1].read_bytes())
    data[data.index(b"x", 30)] = ord("y")
    files[-1].write_bytes(bytes(data))
    with zipfile.ZipFile(tmp_path / "nested.zip", "w") as archive:
        archive.writestr("a", "x")
        archive.writestr("a/b", "x")
    files.append(tmp_path / "nested.zip")
    for file in files:
        with pytest.raises(ArchiveCorrupt), unzipped([file]):
            pass
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    with pytest.raises(ArchiveCorrupt, match="more than"), unzipped([hostile(tmp_path / "large.zip", "fine")]):
        pass


def test_a_disk_that_refuses_is_the_hosts_affair(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(HostError, match="No space left"), unzipped([exported]):
        pass


def test_what_was_unpacked_goes(exported: Path) -> None:
    with unzipped([exported, exported.with_name("clean")]) as folders:
        (folder,) = folders.values()
        assert list(folder.rglob("plan.json"))
    assert not folder.exists()


def rows(*names: str) -> list[Row]:
    return [Row(name, None, "unreadable") for name in names]


def head(text: str) -> list[str]:
    return text.partition("\n\n")[0].splitlines()


def test_a_table_leaves_out_what_does_not_fit() -> None:
    names = [f"/srv/archives/of/the/week/{name}-{'x' * 30}.run" for name in ("one", "two")]
    wide = head(table_text(rows(*names), 300))
    assert wide[0].split()[:3] == ["archive", "run", "lifetime"] and names[0] in wide[1]
    fits = head(table_text(rows(*names), 120))
    assert fits[0] == "in /srv/archives/of/the/week/" and fits[1].split()[1] == "run"
    assert fits[2].startswith("one-x")
    narrow = head(table_text(rows(*names), 80))
    assert narrow[1].split()[1] == "lifetime" and narrow[2].startswith("…") and ".run " in narrow[2]
    assert max(len(line) for line in narrow[:4]) <= 80
    assert narrow[4] == f"{names[0]}: unreadable"


def test_names_without_a_common_folder_keep_their_heads_while_they_fit() -> None:
    assert head(table_text(rows("a", "/b"), 60))[0].startswith("archive")
    assert head(table_text(rows("a" * 90), 80))[0].startswith("archive")
