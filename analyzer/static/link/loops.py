"""Loops: their bodies are interpreted twice where the first time around left more than there was before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.link.frame import Environment, Frame, merge
from sgl_graph.analyzer.static.link.objects import Container
from sgl_graph.analyzer.static.link.sets import ordered
from sgl_graph.analyzer.static.link.values import (
    NOTHING,
    ClassValue,
    FunctionValue,
    ImportReference,
    Value,
    Values,
    just,
)
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


#: Tables with more rows are gone through all at once.
_MOST_ROWS = 16


class Loops:
    """Interprets `for` and `while`."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter

    def over(self, frame: Frame, s: Statement) -> bool:
        """`for target in iterable`."""
        statements = self._in.statements
        iterable = statements.head(frame, s[3])
        values = self._in.models.iterate(iterable)
        before = frame.environment
        frame.environment = dict(before)
        if not values and not self._in.world.survey:
            if not _may_be_empty(iterable):
                self._in.starved()
            values = NOTHING
            # An empty display iterates nothing; anything else may still receive elements later.
            frame.environment = before
            statements.block(frame, s[5])
            return True
        held_turn = frame.turn
        rows = _rows(s[2], values)
        for turn in range(2):
            started = frame.environment
            after = before
            for number, row in enumerate(rows):
                frame.turn = held_turn * 4 * _MOST_ROWS + turn * _MOST_ROWS + number + 1
                frame.environment = dict(started)
                self._in.assignments.assign(frame, s[2], row)
                statements.block(frame, s[4])
                after = merge(after, frame.environment)
            if not _grew(before, after):
                break
            frame.environment = dict(after)
        frame.turn = held_turn
        frame.environment = after
        statements.block(frame, s[5])
        return True

    def as_long_as(self, frame: Frame, s: Statement) -> bool:
        """`while test`."""
        statements = self._in.statements
        truth, depends = statements.test(frame, s[2])
        if truth in (Truth.FALSE, None) and not self._in.world.survey:
            return statements.block(frame, s[4])
        before = frame.environment
        held = frame.guards
        if truth is not Truth.TRUE:
            statements.push(frame, s[2], False, s[1], truth or Truth.UNKNOWN, depends)
        held_turn = frame.turn
        for turn in range(2):
            frame.turn = held_turn * 4 + turn + 1
            frame.environment = dict(frame.environment)
            statements.block(frame, s[3])
            after = merge(before, frame.environment)
            if not _grew(before, after):
                break
            frame.environment = after
        frame.turn = held_turn
        frame.environment = after
        frame.guards = held
        if truth is Truth.TRUE and not _breaks(s[3]):
            return False
        statements.block(frame, s[4])
        return True


def _rows(target: Expression, values: Values) -> list[Values]:
    """What the loop is over, row by row where it is a small table of classes or functions and the target takes rows apart.

    What stands together in a row belongs together: a class and what handles its objects.
    """
    rows = [value for value in ordered(values) if isinstance(value, Container) and value.kind == "tuple"]
    if target[0] not in ("t", "L") or not 2 <= len(rows) == len(values) <= _MOST_ROWS:
        return [values]
    apart = all(row.length == len(target[1]) and any(map(_is_code, row.peek())) for row in rows)
    return [just(row) for row in rows] if apart else [values]


def _is_code(value: Value) -> bool:
    return isinstance(value, (ClassValue, FunctionValue, ImportReference))


def _grew(before: Environment, after: Environment) -> bool:
    return any(after[name] is not values and after[name] != values for name, values in before.items())


def _breaks(statements: list[Statement]) -> bool:
    for statement in statements:
        kind = statement[0]
        if kind == "break":
            return True
        if kind == "if" and (_breaks(statement[3]) or _breaks(statement[4])):
            return True
        if kind == "with" and _breaks(statement[3]):
            return True
        if kind == "try" and (
            _breaks(statement[2]) or any(_breaks(h[2]) for h in statement[3]) or _breaks(statement[4])
        ):
            return True
        if kind == "match" and any(_breaks(case[2]) for case in statement[3]):
            return True
    return False


def _may_be_empty(values: Values) -> bool:
    return bool(values) and all(isinstance(v, Container) for v in values)
