"""The operations of the evaluator that its parts call on each other, declared in one place."""

from __future__ import annotations

from collections.abc import Sequence

from sgl_graph.analyzer.static.config.journal import Journal, Raised, Signal
from sgl_graph.analyzer.static.config.program import ClassV, Frame, Instance
from sgl_graph.analyzer.static.config.values import Deps, Value
from sgl_graph.analyzer.static.extract import facts as f


class Operations(Journal):
    """What every part of the evaluator may ask of the whole; the parts implement it."""

    def evaluate(self, expression: f.Expression) -> Value:
        """The value of an expression in the current frame."""
        raise NotImplementedError

    def execute(self, body: Sequence[f.Statement]) -> Signal:
        """Run statements in the current frame."""
        raise NotImplementedError

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Call a value."""
        raise NotImplementedError

    def get(self, value: Value, name: str) -> Value:
        """Attribute of a value; ABSENT when it certainly has none."""
        raise NotImplementedError

    def set(self, value: Value, name: str, new: Value) -> None:
        """Assign an attribute."""
        raise NotImplementedError

    def class_attribute(self, cls: ClassV, name: str) -> Value:
        """An attribute of a class's own body; ABSENT when it has none."""
        raise NotImplementedError

    def define_function(self, index: int, frame: Frame, owner: ClassV | None) -> Value:
        """The function object that a `def` makes, decorators applied."""
        raise NotImplementedError

    def define_class(self, index: int, frame: Frame) -> Value:
        """The class object that a `class` statement makes, decorators applied."""
        raise NotImplementedError

    def fail(self, kind: str, message: str = "") -> Raised:
        """An error that an operation of the analysed program meets (not a `raise` of its own)."""
        raise NotImplementedError

    def keep(self, item: object) -> None:
        """Keep an object alive whose identity is used as a key."""
        raise NotImplementedError

    def runs(self, value: Value) -> list[Value] | None:
        """Elements in order, `Alternatives` and possibly absent ones included; None when they are not known."""
        raise NotImplementedError

    def elements(self, value: Value) -> list[Value] | None:
        """Elements in order where number and order are certain, else None."""
        raise NotImplementedError

    def ancestry(self, cls: Value) -> list[Value]:
        """The class and its bases in the order of attribute lookup."""
        raise NotImplementedError

    def call_method(self, instance: Instance, name: str, arguments: list[Value]) -> Value:
        """Call a method that the object's class defines; ABSENT when it defines none."""
        raise NotImplementedError

    def truth_of_object(self, value: Instance) -> tuple[bool | None, Deps]:
        """Truth of an object."""
        raise NotImplementedError

    def equal_objects(self, a: Value, b: Value) -> tuple[bool | None, Deps]:
        """Equality where one side is an object."""
        raise NotImplementedError

    def binary_objects(self, op: str, a: Value, b: Value) -> Value:
        """A binary operator where one side is an object; ABSENT when it defines none."""
        raise NotImplementedError

    def contains_object(self, container: Instance, item: Value) -> tuple[bool | None, Deps]:
        """`item in container` for an object."""
        raise NotImplementedError

    def subscript_object(self, value: Instance, index: Value) -> Value:
        """`value[index]` for an object."""
        raise NotImplementedError

    def subscript_type(self, value: Value, index: Value) -> Value:
        """`value[index]` for a class or a type."""
        raise NotImplementedError
