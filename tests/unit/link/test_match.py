"""`match` statements: cases that a known subject excludes, captures, class patterns."""

from __future__ import annotations

from pathlib import Path

from .programs import program

WORKERS = """
        # file: work.py
        def yes():
            pass

        def no():
            pass

        def third():
            pass
"""


def test_match_statements(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        from enum import Enum
        from work import no, third, yes

        class Mode(Enum):
            A = 1
            B = 2

        class Point:
            def touch(self):
                pass

        def known():
            match Mode.A:
                case Mode.A:
                    yes()
                case Mode.B:
                    no()

        def unknown(mode):
            match mode:
                case Mode.A | Mode.B:
                    yes()
                case "x" if mode.ready:
                    third()
                case _:
                    no()

        def literal():
            match "b":
                case "a":
                    no()
                case "b" | "c":
                    yes()

        def types(value):
            match value:
                case Point():
                    value.touch()
                case [Point() as first, *rest]:
                    first.touch()
                case {"key": found}:
                    yes(found)

        def bound():
            point = Point()
            match point:
                case other:
                    other.touch()

        def items(family):
            match "triton", family:
                case "cutedsl", _:
                    no()
                case "triton", "bf16" | "fp16":
                    yes()
                case "triton", other:
                    third(other)
        """,
        entries=("main:known", "main:unknown", "main:literal", "main:types", "main:bound", "main:items"),
    )
    assert p.edges("main:known") == {("work:yes", "direct")}
    assert p.edges("main:unknown") == {("work:yes", "direct"), ("work:no", "direct"), ("work:third", "direct")}
    assert p.edges("main:literal") == {("work:yes", "direct")}
    assert {target for target, _ in p.edges("main:types")} == {"main:Point.touch", "work:yes"}
    assert p.edges("main:bound") == {("main:Point.touch", "type")}
    assert p.edges("main:items") == {("work:yes", "direct"), ("work:third", "direct")}
