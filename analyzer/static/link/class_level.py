"""Class-level names seen through a receiver: methods are bound, properties and descriptors called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.link.objects import Container
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    NOTHING,
    Bound,
    ClassValue,
    Constant,
    FunctionValue,
    Instance,
    Value,
    Values,
    Wrapped,
    just,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: Lookups of one attribute through properties and `__getattr__` that may nest.
MOST_NESTED = 12


class ClassLevel:
    """What the class of an object gives for a name."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world
        self._sought = interpreter.world.project.sought
        #: Lookups under way inside one another, through properties and the like.
        self.nested = 0

    def find(self, cls: ClassValue, receiver: Value, name: str, after: ClassValue | None = None) -> Values:
        """Class-level attribute seen through a receiver."""
        self._sought.add(name)
        heap = self._world.heap
        skipping = after is not None
        for base in cls.line:
            if skipping:
                skipping = base is not after
                continue
            cell = base.own.get(name)
            values = self._in.attributes.resolve(heap.read(cell)) if cell is not None else NOTHING
            if not values:
                continue
            generated = "dataclass" in cls.marks and name in base.fields
            if generated and not any(isinstance(v, (FunctionValue, Wrapped)) for v in values):
                continue  # the generated constructor stores defaults where no argument was given
            return self._bound(values, receiver)
        self._world.missed(cls, name)
        return NOTHING

    def _bound(self, values: Values, receiver: Value) -> Values:
        if len(values) == 1:
            (only,) = values
            if type(only) is FunctionValue:
                return just(Bound.of(only, receiver))
        found: set[Value] = set()
        for value in values:
            if isinstance(value, FunctionValue):
                found.add(Bound.of(value, receiver))
            elif isinstance(value, Wrapped):
                found |= self._wrapped(value, receiver)
            elif isinstance(value, Instance) and self.has(value.cls, "__get__"):
                if self.nested > MOST_NESTED:
                    self._world.heap.volatile = True
                    return ANYTHING
                self.nested += 1
                try:
                    getter = self._in.attributes.of_instance(value, "__get__")
                    found |= self._in.implicit.call_simple(getter, [just(receiver), ANYTHING])
                finally:
                    self.nested -= 1
            elif isinstance(value, Container) and value.kind == "partialmethod":
                found |= frozenset(
                    Bound.of(inner, receiver) for inner in self._world.element(value, Constant.of("func"))
                )
            else:
                found.add(value)
        return frozenset(found)

    def _wrapped(self, value: Wrapped, receiver: Value) -> Values:
        if value.kind == "property":
            if self.nested > MOST_NESTED:
                self._world.heap.volatile = True
                return ANYTHING
            self.nested += 1
            try:
                return self._in.implicit.call_simple(just(Bound.of(value.function, receiver)), [])
            finally:
                self.nested -= 1
        if value.kind == "staticmethod":
            return just(value.function)
        if value.kind == "classmethod":
            owner = getattr(receiver, "cls", receiver)
            return just(Bound.of(value.function, owner))
        return just(Bound.of(value, receiver))

    def has(self, cls: ClassValue, name: str) -> bool:
        """Whether the class or a base of the checkout binds a name."""
        return any(name in base.own for base in cls.line)

    def dynamic(self, cls: ClassValue, receiver: Value, name: str) -> Values | None:
        """`__getattr__` of the class, asked for this one name."""
        if name.startswith("__") or self.nested > MOST_NESTED or not self.has(cls, "__getattr__"):
            return None
        getter = self.find(cls, receiver, "__getattr__")
        self.nested += 1
        try:
            return self._in.implicit.call_simple(getter, [just(Constant.of(name))], context=("getattr", name))
        finally:
            self.nested -= 1
