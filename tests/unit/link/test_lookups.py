"""Which names of a module linking looks up, found or not: a stored map holds over new names that nobody asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from sgl_graph.analyzer.static.checkout.project import Project

from .programs import program

OTHER = "\n# file: other.py\nVALUE = 1\n\ndef idle():\n    return VALUE\n"


def asked(folder: Path, text: str, module: str = "other") -> set[str]:
    """Names that were looked up in a module."""
    project: Project = program(folder, text + OTHER).linked.project
    project.note_lookups()
    found = project.module(module)
    assert found is not None
    return found.asked


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("from other import idle\n    return idle", "idle"),
        ("import other\n    return other.idle", "idle"),
        ("import other\n    return other.missing", "missing"),
        ("from other import missing\n    return missing", "missing"),
        ("import other\n    return getattr(other, 'miss' + 'ing', None)", "missing"),
        ("import other\n    return hasattr(other, 'VALUE') and other.VALUE", "VALUE"),
        ("import other\n    return other.idle()", "VALUE"),
    ],
)
def test_a_name_that_is_looked_up_is_noted_whether_it_is_found_or_not(tmp_path: Path, body: str, name: str) -> None:
    found = asked(tmp_path, f"# file: main.py\ndef run(kind):\n    {body}\n")
    assert name in found and not {"*", "never"} & found


def test_a_name_that_nobody_reads_is_not_asked_for(tmp_path: Path) -> None:
    assert asked(tmp_path, "# file: main.py\nimport other\n\ndef run():\n    return other.VALUE\n") == {"VALUE"}


def test_a_free_name_of_a_body_is_looked_up_in_its_own_module(tmp_path: Path) -> None:
    found = asked(tmp_path, "# file: main.py\nLIMIT = 3\n\ndef run(kind):\n    return kind + missing\n", "main")
    assert found == {"missing"}


@pytest.mark.parametrize(
    "body",
    [
        "import other\n    return getattr(other, f'{kind}_e')",
        "import other\n    other.VALUE = {}\n    return getattr(other, f'make_{kind}')()",
    ],
)
def test_a_pattern_goes_through_all_names(tmp_path: Path, body: str) -> None:
    assert "*" in asked(tmp_path, f"# file: main.py\ndef run(kind):\n    {body}\n")


def test_an_import_of_everything_does(tmp_path: Path) -> None:
    assert "*" in asked(tmp_path, "# file: main.py\nfrom other import *\n\ndef run():\n    return idle()\n")


CLASSES = """
        # file: other.py
        from ext import Outside

        class Base:
            def found(self):
                pass

        class Table(Base):
            size = 3

        class Mixed(Outside, Base):
            pass

        class Keeper:
            def __getattr__(self, name):
                return 1
"""


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("return other.Table().found()", "found"),
        ("return other.Table().missing", "missing"),
        ("return other.Table.missing", "missing"),
        ("return other.Mixed.missing", "missing"),
        ("return other.Mixed().missing()", "missing"),
        ("return other.Keeper().missing", "missing"),
        ("return hasattr(other.Table(), 'miss' + 'ing')", "missing"),
        ("return getattr(other.Table, 'missing', None)", "missing"),
        ("x = other.Table()\n            x.kept = 1\n            return x.kept", "kept"),
    ],
)
def test_a_name_that_is_looked_for_in_a_class_is_noted(tmp_path: Path, body: str, name: str) -> None:
    text = f"""
        # file: main.py
        import other

        def run(kind):
            {body}
    """
    found = program(tmp_path, text + CLASSES).linked.project
    assert name in found.sought and "never" not in found.sought and not found.patterns


def test_a_pattern_of_names_is_noted(tmp_path: Path) -> None:
    text = """
        # file: main.py
        import other

        def run(kind):
            return getattr(other.Table(), f"make_{kind}_all")()
    """
    assert program(tmp_path, text + CLASSES).linked.project.patterns == {("make_", "_all")}


def test_who_looks_for_functions_that_register_goes_through_all(tmp_path: Path) -> None:
    text = "# file: main.py\nTABLE = {}\n\ndef register(x):\n    TABLE[x.name] = x\n\ndef run(kind):\n    return TABLE[kind]()\n"
    assert "*" in asked(tmp_path, text, "main")
