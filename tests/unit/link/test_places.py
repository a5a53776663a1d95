"""Items keep their places: sequences that are taken apart over parameters, put together, or changed in place."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program, targets

#: `take` calls what it is given, each through a function of its own.
TAKING = """
        # file: taking.py
        def a():
            pass

        def b():
            pass

        def c():
            pass

        def usual():
            pass

        def take(first, second, third=usual):
            one(first)
            two(second)
            three(third)

        def rest(first, *others):
            one(first)
            two(others[0])
            for other in others:
                three(other)

        def one(given):
            given()

        def two(given):
            given()

        def three(given):
            given()

        class Made:
            def __new__(cls, item, other=usual):
                one(item)
                two(other)
                return object.__new__(cls)

        class Box:
            def __init__(self, item):
                self.item = item
"""

TO = {"a": "taking:a", "b": "taking:b", "c": "taking:c", "u": "taking:usual"}


def given(tmp_path: Path, body: str) -> list[str]:
    """What reaches the three functions when `run(test, unknown)` has this body: the first letters of the functions."""
    lines = "".join(f"            {line}\n" for line in body.splitlines())
    found = program(
        tmp_path,
        f"{TAKING}\n        # file: main.py\n        from taking import *\n\n        def run(test, unknown):\n{lines}",
    )
    return [
        "".join(sorted(name.removeprefix("taking:")[0] for name in targets(found.edges(f"taking:{caller}"))))
        for caller in ("one", "two", "three")
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("take(*(a, b))", ["a", "b", "u"]),
        ("take(*(a, b, c))", ["a", "b", "c"]),
        # Either sequence, each item in its place; the default only where a sequence ends before.
        ("take(*((a, b) if test else (b, c)))", ["ab", "bc", "u"]),
        ("take(*((a, b) if test else (b, c, a)))", ["ab", "bc", "au"]),
        ("take(*((a, b, c) if test else (b, c, a)))", ["ab", "bc", "ac"]),
        # A sequence that the function cannot take ends in an error, and gives nothing.
        ("take(*((a, b) if test else (c,)))", ["a", "b", "u"]),
        ("take(*((a, b) if test else (c, c, c, c)))", ["a", "b", "u"]),
        ("take(a, *((b,) if test else (c, c, c)))", ["a", "b", "u"]),
        ("take(a, *((b,) if test else (c, c)), third=b)", ["a", "b", "b"]),
        ("take(*((a,) if test else (c, c)), second=b)", ["a", "b", "u"]),
        # Items of a list that grew may be in any place.
        ("grown = [c]\ngrown.append(c)\ntake(*((a, b) if test else grown))", ["ac", "bc", "cu"]),
        ("take(*((a, b) if test else (c, c)), *(a,))", ["abc", "abc", "abcu"]),
        ("rest(*((a, b) if test else (b, c, a)))", ["ab", "abc", "abc"]),
        ("import functools\nfunctools.partial(take, a)(*((b,) if test else (c, c)))", ["a", "bc", "cu"]),
        # A sequence of any length beside those that reach the last parameter may end before it.
        ("grown = [c]\ngrown.append(c)\ntake(*((a, b, a) if test else grown))", ["ac", "bc", "acu"]),
        ("Made(*((a,) if test else (b, c)))", ["ab", "cu", ""]),
        ("one(Box(*((a,) if test else (b,))).item)", ["ab", "", ""]),
    ],
)  # fmt: skip
def test_sequences_taken_apart_over_parameters(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert given(tmp_path, body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("take(*(a, *(b, c)))", ["a", "b", "c"]),
        ("take(*(a, b, *((c,) if test else ())))", ["a", "b", "cu"]),
        ("first, *others = (a, *(b, c))\none(first)\ntwo(others[0])", ["a", "bc", ""]),
        ("first, second = [*((a,) if test else (b,)), c]\none(first)\ntwo(second)", ["ab", "c", ""]),
        # Of unknown length: anywhere.
        ("grown = [c]\ngrown.append(c)\nfirst, second = (a, *grown)\none(first)\ntwo(second)", ["ac", "ac", ""]),
        ("x = (a,) if test else unknown()\nfirst, second = (*x, b)\none(first)\ntwo(second)", ["ab", "ab", ""]),
        # Too many combinations to tell apart.
        (
            "x = (a,) if test else (b, b) if unknown else (c, c, c)\nfirst, second, third = (*x, *x, *x)\n"
            + "one(first)\ntwo(second)\nthree(third)",
            ["abc", "abc", "abc"],
        ),
        ("(first, second) = (a,) + (b,)\none(first)\ntwo(second)", ["a", "b", ""]),
        ("(first, second) = ((a,) if test else (c,)) + (b,)\none(first)\ntwo(second)", ["abc", "abc", ""]),
        ("(first, second) = [a] * 2\none(first)\ntwo(second)", ["a", "a", ""]),
        ("found = {1: a} | {2: b}\none(found[1])\ntwo(found[2])", ["a", "b", ""]),
    ],
)  # fmt: skip
def test_sequences_put_together(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert given(tmp_path, body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A list changes where it is, for every name that it has.
        ("x = [a]\ny = x\nx += [b]\none(y[0])\none(y[1])", ["ab", "", ""]),
        ("x = {1: a}\ny = x\nx |= {2: b}\none(y[1])\ntwo(y[2])", ["a", "b", ""]),
        # A tuple does not; the name has another one.
        ("x = (a,)\ny = x\nx += (b,)\nfor item in y:\n    one(item)\ntwo(x[0])\nthree(x[1])", ["a", "a", "b"]),
        # What works on a tensor leaves the tuple that may be in its place as it is.
        ("x = (a, c) if test else unknown()\ny = x\nx += [b]\nx.add(b)\nx[0] = b\ntake(*y)", ["a", "c", "u"]),
        ("x = (a,) if test else unknown()\nx.append(b)\ndel x[0]\none(*x)", ["a", "", ""]),
        # A list that is put into another order, or part of which is replaced, keeps no places.
        ("x = [a, b]\nx.reverse()\none(x[0])\ntwo(*x[1:])", ["ab", "ab", ""]),
        ("x = [a, b]\nx.sort()\nrest(*x)", ["ab", "ab", "ab"]),
        ("x = [a]\nx[:] = [b, c]\none(x[0])\nfor item in x:\n    two(item)", ["abc", "abc", ""]),
        ("x = [a]\nx[1:] = (b, c)\ntake(*x)", ["abc", "abc", "abcu"]),
        ("x = (a,) if test else [b]\nx += [c]\ny = x\nfor item in y:\n    one(item)", ["bc", "", ""]),
    ],
)  # fmt: skip
def test_what_changes_in_place(tmp_path: Path, body: str, expected: list[str]) -> None:
    assert given(tmp_path, body) == expected


@pytest.mark.parametrize(
    ("value", "as_list", "other"),
    [
        # What else may be in the place of a container decides, too.
        ("(x if unknown else [1]) + (y if unknown else [2])", "true", "true"),
        ("(x if unknown else [1]) * 2", "true", "true"),
        ("[1] + [2]", "true", "no"),
        ("[1] + x", "true", "no"),
        ("x * [1]", "true", "no"),
        ("1 + 1", "no", "true"),
    ],
)
def test_a_sum_that_may_be_a_container_may_be_something_else(
    tmp_path: Path, value: str, as_list: str, other: str
) -> None:
    found = program(
        tmp_path,
        f"""
        # file: main.py
        def run(x, y, unknown):
            if isinstance({value}, list):
                as_list()
            else:
                other()

        def as_list():
            pass

        def other():
            pass
        """,
    )
    assert (found.reached("main:as_list"), found.reached("main:other")) == (as_list, other)
