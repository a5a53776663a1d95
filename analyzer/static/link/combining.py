"""Operators where a side may be a container: `a + b`, `a * n`, `a | b`, and `a += b` and the like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Container
from sgl_graph.analyzer.static.link.truth import fold_binary
from sgl_graph.analyzer.static.link.values import NOTHING, Constant, Value, Values, just

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: Operators that make a container of containers.
_JOINING = ("+", "*", "|")
#: Changed in place by `+=` and the like; a tuple is not, and neither is what only runs as a tensor.
_MUTABLE = ("list", "set", "dict")
#: Longer sequences keep no place for each item.
_LONGEST = 64


class Combining:
    """Combines values for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world

    def binary(self, frame: Frame, place: Expression, op: str, left: Values, right: Values) -> Values:
        """`left op right`: whatever any two of the values give; `place` is the expression or statement that does it."""
        containers = [v for v in (*left, *right) if isinstance(v, Container)] if op in _JOINING else []
        if not containers:
            return fold_binary(op, left, right)
        others = (_others(left), _others(right))
        found: set[Value] = set(fold_binary(op, *others)) if all(others) else set()
        for kind in sorted({container.kind for container in containers}):
            sides = (_of_kind(left, kind), _of_kind(right, kind))
            if self._meet(op, sides, others):
                result = self._world.container(kind, (frame.activation, id(place)))
                self._join(result, op, sides, others)
                found.add(result)
        return frozenset(found)

    def in_place(self, op: str, left: Values, right: Values) -> Values:
        """What of `left` `left op= right` changes, and leaves where it is: lists, sets and dictionaries."""
        changed = [v for v in left if isinstance(v, Container) and (v.kind in _MUTABLE or v.configured)]
        if changed and op in _JOINING:
            elements = self._in.models.iterate(right) if op != "*" else NOTHING
            for container in changed:
                if container.kind == "dict":
                    self._in.models.update(container, right)
                else:
                    container.length = None
                    self._world.put(container, None, elements)
        return frozenset(changed)

    @staticmethod
    def _meet(op: str, sides: tuple[list[Container], ...], others: tuple[Values, ...]) -> bool:
        """Whether a container of this kind has something on the other side that it can be combined with."""
        if op == "*":
            return bool((sides[0] and others[1]) or (sides[1] and others[0]))
        return bool((sides[0] and sides[1]) or (sides[0] and _open(others[1])) or (sides[1] and _open(others[0])))

    def _join(self, result: Container, op: str, sides: tuple[list[Container], ...], others: tuple[Values, ...]) -> None:
        world = self._world
        rows = self._rows(op, sides, others)
        if rows is not None:
            result.length = len(rows)
            for position, values in enumerate(rows):
                world.put(result, Constant.of(position), values)
            return
        result.length = None
        for container in (*sides[0], *sides[1]):
            if result.kind == "dict":
                self._in.models.update(result, just(container))
            else:
                world.put(result, None, world.all_elements(container))
        for mine, theirs in zip(sides, reversed(others), strict=True):
            if mine and op != "*":
                opened = _open(theirs)
                if result.kind == "dict":
                    self._in.models.update(result, opened)
                else:
                    world.put(result, None, self._in.models.iterate(opened))

    def _rows(self, op: str, sides: tuple[list[Container], ...], others: tuple[Values, ...]) -> list[Values] | None:
        """The items in their places, where there is one sequence of fixed length on each side of a `+`."""
        if op != "+" or len(sides[0]) != 1 or len(sides[1]) != 1 or any(map(_open, others)):
            return None
        found: list[Values] = []
        for (container,) in sides:
            length = container.length
            if container.kind not in ("list", "tuple") or length is None or length > _LONGEST:
                return None
            found += [self._world.element(container, Constant.of(position)) for position in range(length)]
        return found


def _others(values: Values) -> Values:
    return frozenset(value for value in values if not isinstance(value, Container))


def _of_kind(values: Values, kind: str) -> list[Container]:
    return [value for value in values if isinstance(value, Container) and value.kind == kind]


def _open(values: Values) -> Values:
    """Those that may be a container: not a number, a text, or nothing."""
    return frozenset(value for value in values if not isinstance(value, (Constant, Container)))
