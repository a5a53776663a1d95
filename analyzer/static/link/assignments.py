"""Assignments: where a value goes that is assigned to a name, an attribute, an item, or several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Container
from sgl_graph.analyzer.static.link.values import Constant, Value, Values, just

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Assignments:
    """Assigns to targets."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter

    def bind(self, frame: Frame, name: str, values: Values) -> None:
        """`name = values` in the scope of a frame."""
        heap = self._in.world.heap
        if frame.cls is not None:
            heap.write(self._in.world.class_cell(frame.cls, name), values)
            frame.environment[name] = values
            return
        activation = frame.activation
        if frame.locals is None:
            cell = self._in.global_cell(activation.module.name, name)
            if not self._in.withheld.keep(activation.module, name, cell, values):
                heap.write(cell, values)
            return
        if name in frame.locals:
            frame.environment[name] = values
            if frame.captured:
                heap.write(activation.variable(name), values)
            return
        parent = activation.parent
        while parent is not None:
            if parent.function is not None and name in parent.function.facts.locals:
                heap.write(parent.variable(name), values)
                return
            parent = parent.parent
        heap.write(self._in.global_cell(activation.module.name, name), values)

    def assign(self, frame: Frame, target: Expression, values: Values) -> None:
        """Assign to any target expression."""
        kind = target[0]
        if kind == "n":
            self.bind(frame, target[1], values)
        elif kind == "a":
            owner = self._in.expressions.eval(frame, target[1])
            self._in.stores.put(owner, target[2], values)
            self._in.implicit.given_away(frame, owner, values)
        elif kind == "s":
            owner = self._in.expressions.eval(frame, target[1])
            keys = self._in.expressions.index(frame, target[2])
            if len(target[2]) == 1 and target[2][0][0] == "sl":
                owner = self._in.models.store_slice(owner, values)
            self._in.models.store_item(frame, owner, keys, values)
            self._in.implicit.given_away(frame, owner, values)
        elif kind in ("t", "L"):
            self._unpack(frame, target[1], values)
        elif kind == "*":
            self.assign(frame, target[1], self._in.models.list_of(frame, target, values))

    def _unpack(self, frame: Frame, targets: list[Expression], values: Values) -> None:
        """Item by item where the length is known; a starred target takes what is left between the others."""
        star = next((position for position, target in enumerate(targets) if target[0] == "*"), None)
        for position, target in enumerate(targets):
            found: set[Value] = set()
            for value in values:
                fields = self._in.models.tuple_fields(value)
                if fields is not None and star is None:
                    if len(fields) == len(targets):
                        found |= self._in.attributes.get(just(value), fields[position])
                elif not isinstance(value, Container) or value.length is None:
                    found |= self._in.models.iterate(just(value))
                elif star is None:
                    if value.length == len(targets):
                        found |= self._in.world.element(value, Constant.of(position))
                elif value.length >= len(targets) - 1:
                    surplus = value.length - len(targets)
                    first = position if position <= star else position + surplus
                    for place in range(first, first + (surplus + 1 if position == star else 1)):
                        found |= self._in.world.element(value, Constant.of(place))
            self.assign(frame, target, frozenset(found))

    def assign_local(self, frame: Frame, target: Expression, values: Values) -> None:
        """Bind a comprehension's target: it lives in the environment alone."""
        if target[0] == "n":
            frame.environment[target[1]] = values
            return
        if target[0] in ("t", "L"):
            for position, item in enumerate(target[1]):
                found: set[Value] = set()
                for value in values:
                    if isinstance(value, Container) and value.length == len(target[1]):
                        found |= self._in.world.element(value, Constant.of(position))
                    else:
                        found |= self._in.models.iterate(just(value))
                self.assign_local(frame, item, frozenset(found))
