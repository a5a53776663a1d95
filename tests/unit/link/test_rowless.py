"""An array of which a test says that it has no rows gives no items to whoever takes it apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program

_PROGRAM = """
        # file: main.py
        import torch
        from typing import NamedTuple

        class Shaped:
            @property
            def shape(self):
                return (0,)

            def __iter__(self):
                return iter((usual, usual))

        class Plain:
            pass

        class Pair(NamedTuple):
            one: object
            two: object

        def usual():
            pass

        def special(plan):
            pass

        def prepare(x, other):
            if {test}:
                {body}
            return usual, None

        def consume(x, other):
            first, plan = prepare(x, other)
            if plan is not None:
                special(plan)

        def run(argument, other):
            consume({given}, other)
"""


def reached(tmp_path: Path, test: str, body: str = "return x", given: str = "argument") -> str:
    """Whether the branch runs that only what the empty array gives may lead to."""
    return program(tmp_path, _PROGRAM.format(test=test, body=body, given=given)).reached("main:special")


@pytest.mark.parametrize(
    ("test", "body"),
    [
        ("x.shape[0] == 0", "return x"),
        ("x.size(0) == 0", "return x"),
        ("other and x.shape[0] == 0", "return x"),
        ("x[0].shape[0] == 0", "return x[0]"),
        ("x['states'].shape[0] == 0 and other", "return x['states']"),
        ("isinstance(x, tuple) and x[0].shape[0] == 0", "assert other, 'text'; return x[0]"),
    ],
)
def test_what_has_no_rows_cannot_be_taken_apart(tmp_path: Path, test: str, body: str) -> None:
    assert reached(tmp_path, test, body) == "no"


@pytest.mark.parametrize(
    ("test", "body"),
    [
        ("other", "return x"),
        ("x.shape[1] == 0", "return x"),  # rows without columns are rows
        ("x.shape[0] != 0", "return x"),
        ("x.shape[0] == 1", "return x"),
        ("x.shape[0] == 0 or other", "return x"),
        ("not x.shape[0] == 0", "return x"),
        ("x.numel() == 0", "return x"),
        ("x.shape[0] == 0", "return x.shape"),
        ("x.shape[0] == 0", "return x[None]"),
        ("x.shape[0] == 0", "return x.tolist() or other"),
        ("x.shape[0] == 0", "x = other(x); return x"),
        ("x[0].shape[0] == 0", "return x"),
        ("x[0].shape[0] == 0", "return x[1]"),
        ("x[other].shape[0] == 0", "return x[other]"),
        # A name that is bound anew in the block may hold something else.
        ("x[0].shape[0] == 0", "x = other(x); return x[0]"),
        ("x[0].shape[0] == 0", "(x := other(x)); return x[0]"),
        ("x[0].shape[0] == 0", "x[0] = other(x); return x[0]"),
    ],
)
def test_whatever_else_may_be_taken_apart(tmp_path: Path, test: str, body: str) -> None:
    assert reached(tmp_path, test, body) == "true"


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("Shaped()", "true"),  # an object that has a shape of its own has items of its own
        ("Plain()", "no"),
        ("torch.ones(2)", "no"),
        ("[usual, usual]", "no"),
        ("Pair(usual, usual)", "no"),
        ("(Shaped() if other else argument)", "true"),
    ],
)
def test_objects_of_the_checkout(tmp_path: Path, given: str, answer: str) -> None:
    assert reached(tmp_path, "x.shape[0] == 0", given=given) == answer


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ("Plain()", "no"),  # no items, no second one
        ("Shaped()", "true"),
        ("Pair(usual, usual)", "true"),
        ("torch.ones(2)", "true"),
    ],
)
def test_objects_that_give_no_items(tmp_path: Path, given: str, answer: str) -> None:
    assert reached(tmp_path, "other", given=given) == answer


@pytest.mark.parametrize("item", ["x", "x[0]"])
def test_a_test_that_failed_says_nothing(tmp_path: Path, item: str) -> None:
    body = f"return usual, None\n            return {item}"
    text = _PROGRAM.format(test=f"{item}.shape[0] == 0", body=body, given="argument")
    assert program(tmp_path, text).reached("main:special") == "true"
