"""Objects that a class keeps on itself by name, as an enumeration its members: which one a launch has decides what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program

KINDS = """
        # file: kinds.py
        from typing import Optional

        class Kind:
            _by_name = {{}}

            def __init__(self, name, number):
                self.name = name
                self.number = number
                self.factory = None

            @classmethod
            def register(cls, name) -> "Kind":
                normal = name.upper()
                kind = cls(normal, len(cls._by_name))
                cls._by_name[normal] = kind
                {keeping}
                return kind

            @classmethod
            def serve(cls, kind, factory):
                cls.same(kind).factory = factory

            @classmethod
            def same(cls, kind) -> "Kind":
                if isinstance(kind, Kind):
                    return kind
                return cls.named(kind)

            @classmethod
            def named(cls, name: Optional[str]) -> "Kind":
                if name is None:
                    return cls.NONE
                return cls._by_name[name.upper()]

            def is_none(self):
                return self is Kind.NONE

            def make(self, **options):
                if self.factory is None:
                    return None
                return self.factory(**options)

        def wrapped(function):
            def made(**options):
                return function(**options)
            return made

        def register(name, function):
            try:
                kind = Kind.named(name)
            except KeyError:
                kind = Kind.register(name)
            Kind.serve(kind, wrapped(function))

        def make_fast():
            return Fast()

        def make_slow():
            return Slow()

        class Fast:
            def __init__(self):
                pass

        class Slow:
            def __init__(self):
                pass

        Kind.register("none")
        register("fast", make_fast)
        register("slow", make_slow)

        # file: main.py
        from kinds import Kind

        def plain():
            pass

        def run():
            kind = Kind.named({name})
            if kind.is_none():
                plain()
            else:
                kind.make()
"""
KEEPING = "setattr(cls, normal, kind)"


def _runs(tmp_path: Path, name: str, keeping: str = KEEPING) -> set[str]:
    reached = program(tmp_path, KINDS.format(name=name, keeping=keeping)).linked.reached
    watched = {"main:plain": "plain", "kinds:Fast.__init__": "Fast", "kinds:Slow.__init__": "Slow"}
    return {short for function, short in watched.items() if function in reached}


@pytest.mark.parametrize(("name", "runs"), [("None", {"plain"}), ("'fast'", {"Fast"}), ("'Slow'", {"Slow"})])
def test_objects_that_a_class_keeps_by_name_are_told_apart(tmp_path: Path, name: str, runs: set[str]) -> None:
    assert _runs(tmp_path, name) == runs


def test_any_of_them_may_be_meant_where_the_name_is_not_known(tmp_path: Path) -> None:
    assert _runs(tmp_path, "__import__('os').environ.get('KIND')") == {"plain", "Fast", "Slow"}


def test_objects_that_nothing_keeps_on_the_class_are_one(tmp_path: Path) -> None:
    # Two of them may bear one name.
    keeping = "cls.NONE = kind"
    assert _runs(tmp_path, "'fast'", keeping) == {"plain", "Fast", "Slow"}
