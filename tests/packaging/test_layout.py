"""The three folders at the top are the three packages, and every folder in them is shipped."""

from __future__ import annotations

import os
import tomllib
from typing import Any

import pytest

from tests.packaging.distribution import ROOMS, ROOT, room_files

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def folders() -> set[str]:
    """Dotted import names of all folders that hold Python files."""
    found = {os.path.dirname(file) for file in room_files() if file.endswith(".py")}
    return {"sgl_graph." + folder.replace(os.sep, ".") for folder in found}


def test_every_folder_is_listed() -> None:
    """A folder that is not in `packages` works from the checkout and is missing from the wheel."""
    assert folders() == set(PROJECT["tool"]["setuptools"]["packages"])


def test_no_folder_lacks_its_init() -> None:
    """A folder without `__init__.py` would be a namespace package, which mypy and import-linter see differently."""
    files = room_files()
    missing = {name for name in folders() if f"{_path(name)}/__init__.py" not in files}
    assert missing == set()


def test_no_data_file_is_left_behind() -> None:
    """Whatever is not Python must match `package-data`."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    others = [file for file in room_files() if not file.endswith(".py")]
    unmatched = [file for file in others if not any(_matches(os.path.basename(file), p) for p in patterns)]
    assert unmatched == []


@pytest.mark.parametrize("room", ROOMS)
def test_the_type_view_shows_each_room(room: str) -> None:
    """mypy finds `sgl_graph.<room>` through these links."""
    assert (ROOT / ".typeview" / "sgl_graph" / room).resolve() == (ROOT / room).resolve()


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_says_that_it_is_typed(room: str) -> None:
    assert (ROOT / room / "py.typed").is_file()


def test_there_is_no_root_package() -> None:
    """`sgl_graph` is a namespace; a folder of that name would hide the three packages."""
    assert not (ROOT / "sgl_graph").exists()


def _path(dotted: str) -> str:
    return dotted.removeprefix("sgl_graph.").replace(".", "/")


def _matches(name: str, pattern: str) -> bool:
    from fnmatch import fnmatch

    return fnmatch(name, pattern)
