"""Calls that no call expression writes: properties, descriptors, decorators, context managers, callbacks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.binding import bind
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Container, Generated
from sgl_graph.analyzer.static.link.sets import traits
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    NOTHING,
    Bound,
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Value,
    Values,
    Wrapped,
    just,
)
from sgl_graph.analyzer.static.linked import Known

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class ImplicitCalls:
    """Makes the calls that the language makes, and those of code that is not seen."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world

    def call_simple(
        self, callees: Values, positional: list[Values], context: Hashable = None, known: Known = Known.DIRECT
    ) -> Values:
        """A call that the language makes: property, descriptor, `__getattr__`, `__enter__` ..."""
        frame = self._in.frame
        if frame is None or not callees:
            return NOTHING
        found: set[Value] = set()
        for callee in callees:
            record = self._world.record_implicit(frame, callee, self._in.line, known)
            if isinstance(callee, Bound) and isinstance(callee.function, FunctionValue) and context is not None:
                receiver = callee.receiver
                activation = self._in.activation(callee.function, receiver, context)
                record.add_target(callee.function.qualname)
                bind(self._world, activation, receiver, positional, Arguments(positional))
                self._in.calls.demand(activation)
                found |= self._world.heap.read(activation.returns)
                continue
            found |= self._in.calls.invoke(
                frame, callee, Arguments(positional), record, ("implicit", self._in.line, context)
            )
        return frozenset(found)

    def construct_raised(self, frame: Frame, values: Values) -> None:
        """`raise Error`: a class that is raised is instantiated."""
        classes = frozenset(v for v in values if isinstance(v, ClassValue))
        self.call_simple(classes, [])

    def call_decorator(
        self, frame: Frame, expression: Expression, callees: Values, target: Values, line: int
    ) -> Values:
        """`@decorator` applied to what it decorates."""
        self._in.line = line or self._in.line
        found: set[Value] = set()
        for callee in callees:
            record = self._world.record_implicit(frame, callee, self._in.line)
            site = (frame.activation.qualname, id(expression), "decorator")
            found |= self._in.calls.invoke(frame, callee, Arguments([target]), record, site)
        return frozenset(found) or target

    def call_hook(self, frame: Frame, cls: ClassValue) -> None:
        """`__init_subclass__` of the bases, as a class statement runs it."""
        for base in cls.mro[1:]:
            if isinstance(base, ClassValue):
                cell = base.own.get("__init_subclass__")
                if cell is not None:
                    for value in self._world.heap.read(cell):
                        inner = value.function if isinstance(value, Wrapped) else value
                        if isinstance(inner, FunctionValue):
                            record = self._world.record_implicit(frame, inner, cls.facts.line)
                            keywords = {
                                name: self._in.expressions.eval(frame, item) for name, item in cls.facts.keywords
                            }
                            self._in.calls.function(inner, cls, Arguments([], keywords), record, ("subclass", cls))
                    return

    def enter(self, frame: Frame, entered: list[Any], line: int) -> Values:
        """Enter a context manager given by an item of a `with`; what `as` binds."""
        item: Expression = entered[0]
        values = self._in.expressions.eval(frame, item)
        self._in.line = line
        record = self._world.record(
            frame,
            item,
            item[3] if item[0] == "c" else line,
            Known.DIRECT,
            entered=True,
            place=item if item[0] == "c" else entered,
        )
        if item[0] != "c":
            for value in values:
                if isinstance(value, External):
                    record.add_external(value.path)
            record.receive(values)
        return self.enter_values(frame, values)

    def enter_values(self, frame: Frame, values: Values) -> Values:
        """What entering any of the values yields."""
        found: set[Value] = set()
        for value in values:
            if isinstance(value, Generated):
                found |= self._world.heap.read(value.activation.yields)
            elif isinstance(value, Instance):
                for concrete in self._world.concrete(value):
                    enter = self._in.class_level.find(concrete.cls, concrete, "__enter__")
                    leave = self._in.class_level.find(concrete.cls, concrete, "__exit__")
                    enter |= self._in.class_level.find(concrete.cls, concrete, "__aenter__")
                    self.call_simple(leave, [ANYTHING, ANYTHING, ANYTHING])
                    found |= self.call_simple(enter, []) or just(concrete)
            elif isinstance(value, External):
                found.add(value)
            else:
                found |= ANYTHING
        return frozenset(found)

    def escape(self, frame: Frame, groups: Iterable[Values]) -> None:
        """Functions handed to code that is not seen: they may be called with anything."""
        for values in groups:
            for value in traits(values).callables if values else ():
                known = Known.DIRECT if isinstance(value, Container) else Known.TYPE
                record = self._world.record_implicit(frame, value, self._in.line, known)
                self._in.calls.invoke(frame, value, Arguments([], {}, ANYTHING, ANYTHING), record, ("escape",))

    def given_away(self, frame: Frame, owners: Values, values: Values) -> None:
        """Functions, and objects that are called like functions, kept by something that is not seen: it may call them."""
        if not owners or not traits(owners).unknown:
            return
        self.escape(frame, (values,))
        for value in values:
            if isinstance(value, Instance):
                for concrete in self._world.concrete(value):
                    self.escape(frame, (self._in.class_level.find(concrete.cls, concrete, "__call__"),))
