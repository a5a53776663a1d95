"""Which names of a module the evaluation looks up, and that it counts the statements which it executes."""

from __future__ import annotations

import pytest

from tests.unit.config import programs


def asked(body: str, head: str = "import other") -> set[str]:
    files = {
        "program.py": f"{head}\n\ndef main():\n    {body}\n",
        "other.py": "VALUE = 1\n\ndef idle():\n    return VALUE\n",
    }
    machine = programs.Evaluator(programs.project(files), programs.LaunchFacts())
    programs.run(machine, "main")
    found = machine.project.module("other")
    assert found is not None
    return set(found.asked)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("return other.VALUE", {"VALUE"}),
        ("return other.idle", {"idle"}),
        ("return other.idle()", {"idle", "VALUE"}),
        ("return getattr(other, 'missing', 3)", {"missing"}),
        ("return hasattr(other, 'miss' + 'ing')", {"missing"}),
        ("from other import idle as one\n    return one", {"idle"}),
    ],
)
def test_names_are_noted_whether_they_are_found_or_not(body: str, names: set[str]) -> None:
    assert asked(body) == {*names, "import"}


def test_names_that_are_looked_for_in_classes_are_noted() -> None:
    text = (
        "class Base:\n    def found(self):\n        return self.missing\n\nclass Table(Base):\n    size = 3\n\n"
        "def main():\n    table = Table()\n    return hasattr(table, 'never' 'theless'), Table.absent, table.found()\n"
    )
    machine = programs.evaluator(text)
    programs.run(machine, "main")
    assert {"absent", "nevertheless"} <= machine.project.sought
    assert not {"size", "found"} & machine.project.sought


def test_a_call_that_a_header_does_not_take_reads_the_body_too() -> None:
    text = "def takes(a):\n    return a\n\ndef main():\n    try:\n        return takes()\n    except TypeError:\n        return 2\n"
    machine = programs.evaluator(text)
    assert programs.run(machine, "main") == 2
    module = machine.project.module("program")
    assert module.evaluated == module.read == {0, 1}


def test_who_lists_a_class_goes_through_all_names() -> None:
    machine = programs.evaluator("class Table:\n    size = 3\n\ndef main():\n    return vars(Table)\n")
    programs.run(machine, "main")
    assert "*" in machine.project.module("program").asked


def test_an_import_of_everything_goes_through_all_names() -> None:
    assert "*" in asked("return VALUE", "from other import *")


def test_a_module_that_was_not_executed_counts_nothing() -> None:
    assert asked("return 1", "") == set()
