"""Displays and comprehensions: containers made where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.truth import truth_of
from sgl_graph.analyzer.static.link.values import ANYTHING, NOTHING, Constant, Value, Values, just
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: A display that may have more combinations of `*x` in it than these has no fixed length.
_MOST_ROWS = 8


class Displays:
    """Makes containers for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world

    def sequence(self, frame: Frame, e: Expression) -> Values:
        """A tuple, list or set display."""
        kind = {"t": "tuple", "L": "list", "S": "set"}[e[0]]
        world = self._in.world
        if kind != "set" and any(item[0] == "*" for item in e[1]):
            return self._spread(frame, e, kind)
        container = world.container(kind, (frame.activation, id(e)))
        container.length = None if kind == "set" else len(e[1])
        for position, item in enumerate(e[1]):
            values = self._in.expressions.eval(frame, item)
            world.put(container, None if kind == "set" else Constant.of(position), values)
        return just(container)

    def _spread(self, frame: Frame, e: Expression, kind: str) -> Values:
        """A tuple or list display with `*x` in it: one for each length that it may have, or one of unknown length."""
        world = self._in.world
        rows: list[list[Values]] = [[]]
        every: list[Values] = []
        fixed = True
        for item in e[1]:
            values = self._in.expressions.eval(frame, item[1] if item[0] == "*" else item)
            if item[0] != "*":
                rows = [[*row, values] for row in rows]
                every.append(values)
                continue
            if not values and not self._in.starved():
                return NOTHING
            parts, others = self._in.models.rows(values)
            every.append(self._in.models.iterate(values))
            fixed = fixed and bool(parts) and not others and len(rows) * len(parts) <= _MOST_ROWS
            rows = [[*row, *part] for row in rows for part in parts] if fixed else rows
        if not fixed:
            container = world.container(kind, (frame.activation, id(e)))
            container.length = None
            for values in every:
                world.put(container, None, values)
            return just(container)
        found: set[Value] = set()
        for row in rows:
            container = world.container(kind, (frame.activation, id(e), len(row)))
            container.length = len(row)
            for position, values in enumerate(row):
                world.put(container, Constant.of(position), values)
            found.add(container)
        return frozenset(found)

    def mapping(self, frame: Frame, e: Expression) -> Values:
        """A dictionary display."""
        world = self._in.world
        container = world.container("dict", (frame.activation, id(e)))
        for key, item in e[1]:
            values = self._in.expressions.eval(frame, item)
            if key is None:
                self._in.models.update(container, values)
                continue
            self._in.models.store(container, self._in.expressions.eval(frame, key), values)
        return just(container)

    def comprehension(self, frame: Frame, e: Expression) -> Values:
        """A comprehension or generator."""
        world = self._in.world
        environment = frame.environment
        held = frame.guards
        frame.environment = dict(environment)
        kind = {"L": "list", "S": "set", "G": "list", "D": "dict"}[e[1]]
        container = world.container(kind, (frame.activation, id(e)))
        runs = True
        for target, iterable, tests in e[3]:
            sequences = self._in.expressions.eval(frame, iterable)
            values = self._in.models.iterate(sequences)
            if not values and not world.survey:
                runs = False
                break
            self._in.assignments.assign_local(frame, target, values or ANYTHING)
            for test in tests:
                truth, depends = truth_of(self._in.expressions.eval(frame, test))
                if truth is Truth.FALSE and not world.survey:
                    runs = False
                    break
                frame.guards = self._in.world.guard(
                    frame.guards, test, False, frame.file, self._in.line, truth or Truth.UNKNOWN, depends
                )
                self._in.narrowing.narrow(frame, test, True)
        if runs:
            every = kind == "list" and len(e[3]) == 1 and not e[3][0][2]
            container.length = self._in.models.common_length(sequences) if every else None
            if e[1] == "D":
                keys = self._in.expressions.eval(frame, e[2][0])
                self._in.models.store(container, keys, self._in.expressions.eval(frame, e[2][1]))
            else:
                world.put(container, None, self._in.expressions.eval(frame, e[2][0]))
        frame.environment = environment
        frame.guards = held
        return just(container)
