"""Members of enumerations in tests: what is ordered, and what is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import WORKERS, program

MEMBERS = """
        # file: main.py
        from enum import Enum, IntEnum, IntFlag, auto
        from work import no, third, yes

        class Plain(Enum):
            LOW = 0
            HIGH = 1

        class Number(IntEnum):
            LOW = 0
            MIDDLE = 7
            HIGH = auto()

        class Said(Enum):
            LOW = 0
            HIGH = 1

            def __lt__(self, other):
                return self.value < other.value

        class Turned(IntEnum):
            LOW = 0
            HIGH = 1

            def __lt__(self, other):
                return self.value > other.value

        class Bits(IntFlag):
            ONE = auto()
            TWO = auto()
            FOUR = auto()

        class Falling(IntEnum):
            HIGH = 5
            LOW = 1
            NEXT = auto()

        class Counted(IntEnum):
            def _generate_next_value_(name, start, count, last_values):
                return 10 * count

            FIRST = auto()

        def chosen(low, first, second):
            if low:
                return first
            return second

        def run():
            if {test}:
                yes()
            else:
                no()
"""


@pytest.mark.parametrize(
    ("test", "yes", "no"),
    [
        ("chosen(True, Number.LOW, Number.HIGH) < Number.HIGH", "true", "no"),
        ("Number.HIGH <= 7", "no", "true"),
        ("Number.HIGH == 8", "true", "no"),
        ("Said.LOW < Said.HIGH", "true", "no"),
        ("Bits.FOUR > 3", "true", "no"),
        # Not ordered, or ordered by what its own method does.
        ("Plain.LOW < Plain.HIGH", "true", "true"),
        ("Turned.LOW < Turned.HIGH", "true", "true"),
        # What `auto` gives hangs on Python's version behind a lower value, and on the class's own method.
        ("Falling.NEXT > Falling.HIGH", "true", "true"),
        ("Falling.LOW < Falling.HIGH", "true", "no"),
        ("Counted.FIRST", "true", "true"),
        # Numbers are false where they are zero; other members are true.
        ("Number.LOW", "no", "true"),
        ("Number.MIDDLE", "true", "no"),
        ("Plain.LOW", "true", "no"),
    ],
)
def test_members_of_enumerations_are_ordered_and_true_as_their_values(
    tmp_path: Path, test: str, yes: str, no: str
) -> None:
    p = program(tmp_path, WORKERS + MEMBERS.format(test=test))
    assert (p.reached("work:yes"), p.reached("work:no")) == (yes, no)
