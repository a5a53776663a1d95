"""Texts that immutable records are made with, by who makes them: the parts of keys besides a size."""

from __future__ import annotations

from pathlib import Path

from .programs import program

PROGRAM = """
        # file: keys.py
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Key:
            size: int
            variant: str = None

        @dataclass
        class Loose:
            variant: str = None

        # file: main.py
        from keys import Key, Loose

        PARTS = (1, 2, 8)

        def variant_of(parts):
            return f"parts:{parts}"

        class Table:
            def capture(self, key):
                pass

        class Runner:
            def __init__(self, longest):
                self.table = Table()
                self.parts = tuple(n for n in PARTS if n // 2 < longest)

            def all(self):
                for size in (1, 2):
                    self.one(size)
                    for parts in self.parts:
                        self.one(size, parts=parts)

            def one(self, size, parts=0):
                self.table.capture(Key(size=size, variant=variant_of(parts) if parts else None))
                self.table.capture(Loose(variant="loose"))

        class Plain(Runner):
            def one(self, size, parts=0):
                self.table.capture(Key(size=size))

        class Open(Runner):
            def one(self, size, parts=0):
                self.table.capture(Key(size=size, variant=self.name))

        def run(longest):
            Runner(longest).all()
            Plain(longest).all()
            Open(longest).all()
"""


def test_fields_of_records_by_their_maker(tmp_path: Path) -> None:
    made = program(tmp_path, PROGRAM).linked.made
    key = "keys:Key"
    assert made["main:Runner", "main:Runner.one", key] == {"variant": {None, "parts:1", "parts:2", "parts:8"}}
    assert made["main:Plain", "main:Plain.one", key] == {"variant": {None}}
    # What a field may have besides texts is not known, and objects that change carry nothing from their maker.
    assert not [name for name in made if name[0] == "main:Open" or name[2] != key]
