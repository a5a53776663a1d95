"""A stored map holds over edits that change nothing it was made from, and over no others."""

from __future__ import annotations

from pathlib import Path

import pytest
from sgl_graph.analyzer.static.project import Project
from sgl_graph.runtime.checkout import CheckoutSources
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.source_record import record_of, still_holds

READ = "import os\n\n\ndef read(name):\n    return os.environ[name]\n"
SEEN = "# only looked through\n\n\ndef seen():\n    return 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package = tmp_path / "app"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "read.py").write_text(READ)
    (package / "seen.py").write_text(SEEN)
    return tmp_path


def sources(folder: Path) -> CheckoutSources:
    return CheckoutSources(folder, FactStore(None), jobs=1, folders=("app",))


def recorded(folder: Path) -> dict[str, list[str]]:
    files = sources(folder)
    project = Project(files)
    assert project.module("app.read") is not None
    return record_of(files, project.loaded())


def test_untouched_files_hold(folder: Path) -> None:
    record = recorded(folder)
    assert sorted(record) == ["app/__init__.py", "app/read.py", "app/seen.py"]
    assert [record[path][1] for path in sorted(record)] == ["text", "facts", "text"]
    assert still_holds(record, sources(folder))


@pytest.mark.parametrize(
    ("name", "text", "holds"),
    [
        ("read.py", READ + "# a closing remark\n", True),
        ("read.py", READ.replace("os.environ[name]", "os.environ[name]  # remark"), True),
        ("read.py", "# a line before moves all others\n" + READ, False),
        ("read.py", READ.replace("[name]", "['X']"), False),
        ("read.py", READ + "def half(:\n", False),
        ("seen.py", SEEN.replace("# only", "\n# but only"), True),
        ("seen.py", SEEN.replace("return 1", "return 2"), False),
    ],
)
def test_an_edit_holds_only_where_nothing_changes(folder: Path, name: str, text: str, holds: bool) -> None:
    record = recorded(folder)
    (folder / "app" / name).write_text(text)
    assert still_holds(record, sources(folder)) is holds


def test_files_that_come_or_go_do_not_hold(folder: Path) -> None:
    record = recorded(folder)
    (folder / "app" / "new.py").write_text("")
    assert not still_holds(record, sources(folder))
    (folder / "app" / "new.py").unlink()
    assert still_holds(record, sources(folder))
    (folder / "app" / "seen.py").unlink()
    assert not still_holds(record, sources(folder))
