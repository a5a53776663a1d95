"""Answers that a function looks for: the first row that passes, a member by its name, and what runs without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import WORKERS, program

TABLE = """
        # file: main.py
        from work import no, third, yes

        ALLOWED = {allowed}

        def reason(name):
            checks = (
                (not ALLOWED, lambda: "not allowed"),
                (name == "", lambda: "no name"),
            )
            return next((text() for failed, text in checks if failed), None)

        def run(name):
            refused = reason(name)
            if refused is not None:
                yes()
                return
            no()
"""


def test_the_first_row_of_a_table_that_passes_is_the_answer(tmp_path: Path) -> None:
    p = program(tmp_path, WORKERS + TABLE.format(allowed=False))
    assert p.reached("work:yes") == "true" and p.reached("work:no") == "no"


def test_rows_that_may_pass_leave_the_default_open(tmp_path: Path) -> None:
    p = program(tmp_path, WORKERS + TABLE.format(allowed=True))
    assert p.reached("work:yes") != "no" and p.reached("work:no") != "no"


LOOKUP = """
        # file: main.py
        from enum import Enum, auto
        from work import no, yes

        class Kind(Enum):
            FIRST = auto()
            SECOND = auto()

        def named(name):
            try:
                return Kind[name]
            except KeyError:
                pass
            return Kind.SECOND

        def run():
            if named({name!r}) == Kind.FIRST:
                yes()
            else:
                no()
"""


@pytest.mark.parametrize(("name", "other"), [("FIRST", "no"), ("THIRD", "true")])
def test_a_handler_runs_only_where_its_body_may_raise(tmp_path: Path, name: str, other: str) -> None:
    p = program(tmp_path, WORKERS + LOOKUP.format(name=name))
    assert p.reached("work:no") == other
