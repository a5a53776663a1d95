"""`next(value for row in TABLE if test)`: the first row that passes, row by row where the table is a tuple of known length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Container
from sgl_graph.analyzer.static.link.truth import truth_of
from sgl_graph.analyzer.static.link.values import NOTHING, Constant, Value, Values
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_LONGEST = 64


def is_selection(e: Expression) -> bool:
    """Whether a call takes the first item of a generator over one iterable."""
    return bool(
        e[1] == ["n", "next"]
        and e[2]
        and e[2][0][0] == "C"
        and e[2][0][1] == "G"
        and len(e[2][0][3]) == 1
        and all(argument[0] not in ("k", "*", "**") for argument in e[2])
    )


def select(interpreter: Interpreter, frame: Frame, e: Expression) -> Values | None:
    """What the first row that passes gives, or the default where none must; None where the rows are not known."""
    target, iterable, tests = e[2][0][3][0]
    if interpreter.world.survey:
        return None
    expressions = interpreter.expressions
    tables = expressions.eval(frame, iterable)
    if not tables:
        return NOTHING
    (table, *others) = tables
    if others or not isinstance(table, Container) or table.kind != "tuple" or table.length is None:
        return None
    if table.length > _LONGEST:
        return None
    environment, held = frame.environment, frame.guards
    found: set[Value] = set()
    passed: Truth | None = Truth.FALSE
    for position in range(table.length):
        frame.environment, frame.guards = dict(environment), held
        row = interpreter.world.element(table, Constant.of(position))
        if not row:
            passed = None
            break
        interpreter.assignments.assign_local(frame, target, row)
        passed = _passes(interpreter, frame, tests)
        if passed is None:
            break
        if passed is not Truth.FALSE:
            found |= expressions.eval(frame, e[2][0][2][0])
        if passed is Truth.TRUE:
            break
    frame.environment, frame.guards = environment, held
    if passed in (Truth.FALSE, Truth.UNKNOWN) and len(e[2]) > 1:
        found |= expressions.eval(frame, e[2][1])
    return frozenset(found)


def _passes(interpreter: Interpreter, frame: Frame, tests: list[Expression]) -> Truth | None:
    """Whether a row passes all tests; None while a test has nothing to go by."""
    result = Truth.TRUE
    for test in tests:
        truth, depends = truth_of(interpreter.expressions.eval(frame, test))
        if truth is None:
            interpreter.starved()
            if not frame.activation.pessimistic:
                return None
            truth = Truth.UNKNOWN
        if truth is Truth.FALSE:
            return truth
        frame.guards = interpreter.world.guard(frame.guards, test, False, frame.file, interpreter.line, truth, depends)
        interpreter.narrowing.narrow(frame, test, True)
        if truth is Truth.UNKNOWN:
            result = truth
    return result
