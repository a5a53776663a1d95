"""What the outcome of a test says of the local names that it asks: `if x is not None:` leaves None out in its branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config.program import Frame
from sgl_graph.analyzer.static.config.values import Fuzzy, Value
from sgl_graph.analyzer.static.extract import facts as f

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.statements import Statements


def narrow(machine: Statements, test: f.Expression, outcome: bool) -> None:
    """Take from local names the possibilities under which a test would have come out otherwise."""
    frame = machine.frames[-1]
    for name, part, wanted in _asked(test, outcome):
        value = frame.names.get(name)
        if type(value) is not Fuzzy or len(value.options) + value.open < 2:
            continue
        kept = tuple(option for option in value.options if _may_be(machine, frame, name, option, part, wanted))
        if len(kept) < len(value.options) and (kept or value.open):
            machine.touch(frame)
            frame.names[name] = Fuzzy(kept, value.open, value.deps, value.place)


def _asked(test: f.Expression, outcome: bool) -> Iterator[tuple[str, f.Expression, bool]]:
    """Names of a test with the part that asks for each and how that part came out."""
    kind = test[0]
    if kind == "n":
        yield test[1], test, outcome
    elif kind == "u" and test[1] == "not":
        yield from _asked(test[2], not outcome)
    elif kind == "bo" and (test[1] == "or") is not outcome:
        # Only a true `and` and a false `or` say something of both sides.
        yield from _asked(test[2], outcome)
        yield from _asked(test[3], outcome)
    elif kind == "cmp" and test[1][0] == "n" and all(_constant(right) for _, right in test[2]):
        yield test[1][1], test, outcome


def _constant(item: f.Expression) -> bool:
    return item[0] == "v" or (item[0] in ("t", "L", "S") and all(part[0] == "v" for part in item[1]))


def _may_be(machine: Statements, frame: Frame, name: str, option: Value, part: f.Expression, wanted: bool) -> bool:
    before = frame.names[name]
    frame.names[name] = option  # for the length of one test that calls nothing
    try:
        truth, _ = machine.test(part)
    finally:
        frame.names[name] = before
    return truth is None or truth is wanted
