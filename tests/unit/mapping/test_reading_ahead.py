"""While the analysis waits for one file, the parsers read what its modules import."""

from __future__ import annotations

from pathlib import Path

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.runtime.checkout import CheckoutSources
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.parser_process import parse


class Slow:
    """Parsers that begin a file only when it is asked for, and remember what was given to them."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self._files: dict[str, bytes] = {}

    @property
    def waiting(self) -> int:
        return len(self._files)

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def narrow(self) -> None:
        pass

    def submit(self, path: str, data: bytes) -> None:
        self.given.append(path.removeprefix("sglang/").removesuffix(".py"))
        self._files[path] = data

    def result(self, path: str) -> tuple[bytes, bool]:
        return parse(self._files.pop(path)), True


FILES = {
    "top": "import os\nfrom sglang import left, right\n",
    "left": "import sglang.leaf\n",
    "right": "from sglang import top\n",
    "leaf": "",
    "other": "from sglang import leaf\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Project:
    (tmp_path / "sglang").mkdir()
    for name, text in FILES.items():
        (tmp_path / "sglang" / f"{name}.py").write_text(text)
    sources = CheckoutSources(tmp_path, FactStore(None), jobs=1)
    sources._parsers = Slow()  # type: ignore[assignment]
    return Project(sources)


def given(project: Project) -> list[str]:
    return project.sources._parsers.given  # type: ignore[attr-defined,no-any-return]


def test_what_a_module_imports_is_begun_when_the_analysis_waits_for_another(checkout: Project) -> None:
    checkout.module("sglang.top")
    assert given(checkout) == ["top"]  # nobody waits: nothing is read that may not be wanted
    checkout.module("sglang.other")
    assert given(checkout) == ["top", "other", "left"]  # the parser has two files to do: enough


def test_nothing_is_read_ahead_any_more_once_the_analysis_says_itself_what_it_will_want(checkout: Project) -> None:
    checkout.module("sglang.top")
    checkout.sources.narrow()  # type: ignore[attr-defined]
    checkout.module("sglang.other")
    assert given(checkout) == ["top", "other"]


def test_what_more_modules_import_is_begun_first(checkout: Project, tmp_path: Path) -> None:
    for name, text in {"a": "from sglang import left, right, leaf", "b": "import sglang.leaf", "c": ""}.items():
        (tmp_path / "sglang" / f"{name}.py").write_text(text)
    project = Project(CheckoutSources(tmp_path, FactStore(None), jobs=1))
    project.sources._parsers = Slow()  # type: ignore[attr-defined]
    project.module("sglang.a")
    project.module("sglang.b")
    assert given(project) == ["a", "b", "left"]
    project.sources._parsers._files.clear()  # type: ignore[attr-defined]
    project.module("sglang.c")
    assert given(project) == ["a", "b", "left", "c", "leaf"]


def test_no_file_is_begun_twice(checkout: Project) -> None:
    for name in ("top", "left", "other", "right", "leaf"):
        checkout.module(f"sglang.{name}")
    assert sorted(given(checkout)) == sorted(FILES)


def test_a_file_whose_facts_are_stored_is_not_parsed(checkout: Project) -> None:
    checkout.module("sglang.left")
    leaf = checkout.sources.digest("sglang/leaf.py")
    stored = {leaf: parse(b"")}
    checkout.sources._store.load = lambda digests: {d: stored[d] for d in digests if d in stored}  # type: ignore[attr-defined]
    checkout.module("sglang.other")
    checkout.module("sglang.leaf")
    assert given(checkout) == ["left", "other"]
