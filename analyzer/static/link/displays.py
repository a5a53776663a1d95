"""Displays and comprehensions: containers made where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.truth import truth_of
from sgl_graph.analyzer.static.link.values import ANYTHING, Constant, Values, just
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Displays:
    """Makes containers for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world

    def sequence(self, frame: Frame, e: Expression) -> Values:
        """A tuple, list or set display."""
        kind = {"t": "tuple", "L": "list", "S": "set"}[e[0]]
        world = self._in.world
        container = world.container(kind, (frame.activation, id(e)))
        starred = any(item[0] == "*" for item in e[1])
        container.length = None if starred or kind == "set" else len(e[1])
        for position, item in enumerate(e[1]):
            values = self._in.expressions.eval(frame, item)
            world.put(container, None if starred or kind == "set" else Constant.of(position), values)
        return just(container)

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
