"""Definitions: functions with their decorators, classes with bases, bodies and generated constructors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Builtin
from sgl_graph.analyzer.static.link.values import (
    ClassValue,
    External,
    FunctionValue,
    Unknown,
    Value,
    Values,
    Wrapped,
    just,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_WRAPPERS = {
    "property": "property", "functools.cached_property": "property", "cached_property": "property",
    "abc.abstractproperty": "property", "torch.utils._device.cached_property": "property",
    "staticmethod": "staticmethod", "classmethod": "classmethod",
    "contextlib.contextmanager": "contextmanager", "contextlib.asynccontextmanager": "contextmanager",
}  # fmt: skip
#: Ends of the access paths of decorators that make a class a record.
_RECORDS = ("dataclass",)
_ENUMERATIONS = ("enum.Enum", "enum.IntEnum", "enum.StrEnum", "enum.Flag", "enum.IntFlag")


class Definitions:
    """Interprets `def` and `class` statements."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter

    def function(self, frame: Frame, index: int) -> None:
        """A `def` statement: bind the name to the function as its decorators leave it."""
        value = self.make(frame, index)
        facts = value.facts
        results: Values = just(value)
        for decorator in reversed(facts.decorators):
            if self._setter(frame, decorator, value):
                return
            results = self._decorate(frame, decorator, results)
        self._in.assignments.bind(frame, facts.name, results)

    def make(self, frame: Frame, index: int) -> FunctionValue:
        """The function value of a `def` or lambda, with its defaults evaluated where it is defined."""
        world = self._in.world
        activation = frame.activation
        parent = activation if activation.function is not None else None
        value = world.function(activation.module, index, parent, frame.cls)
        for parameter in value.facts.parameters:
            if parameter.default is not None:
                values = self._in.expressions.eval(frame, parameter.default)
                world.heap.write(cell_in(value.defaults, parameter.name), values)
        return value

    def _setter(self, frame: Frame, decorator: Expression, value: FunctionValue) -> bool:
        if decorator[0] == "a" and decorator[2] in ("setter", "deleter") and frame.cls is not None:
            if decorator[2] == "setter":
                cell = cell_in(frame.cls.setters, value.facts.name)
                self._in.world.heap.write(cell, just(value))
            return True
        return False

    def _decorate(self, frame: Frame, decorator: Expression, target: Values) -> Values:
        callee = self._in.expressions.eval(frame, decorator)
        found: set[Value] = set()
        for value in callee:
            if isinstance(value, (External, Builtin)):
                path = value.path if isinstance(value, External) else value.name
                kind = _WRAPPERS.get(path)
                if kind is None:
                    found |= target  # a decorator from outside returns something that calls the function
                else:
                    found.update(Wrapped.of(_bare(item), kind) for item in target)
            elif isinstance(value, Unknown):
                found |= target
            else:
                line = _line_of(decorator)
                result = self._in.implicit.call_decorator(frame, decorator, just(value), target, line)
                found |= result
                if any(isinstance(item, Unknown) for item in result):
                    found |= target  # it ends outside the checkout: what comes back calls the function
        if not callee:
            self._in.starved()
            return target
        return frozenset(found)

    def cls(self, frame: Frame, index: int) -> None:
        """A `class` statement."""
        world = self._in.world
        activation = frame.activation
        parent = activation if activation.function is not None else None
        value = world.class_value(activation.module, index, parent)
        facts = value.facts
        bases: list[ClassValue | External] = []
        for base in facts.bases:
            found = self._in.expressions.eval(frame, base)
            for item in sorted(found, key=repr):
                if isinstance(item, (ClassValue, External)) and item is not value:
                    bases.append(item)
                elif isinstance(item, Builtin):
                    bases.append(External.of(item.name))
            if not found:
                self._in.starved()
        if bases != value.bases:
            value.bases = bases
        value.resolve_in(_linearize(value))
        for ancestor in value.mro:
            if isinstance(ancestor, External):
                if ancestor.path in _ENUMERATIONS:
                    value.marks.add("enum")
                elif ancestor.path in ("typing.NamedTuple", "msgspec.Struct", "pydantic.BaseModel"):
                    value.marks.add("dataclass")
                    if ancestor.path == "typing.NamedTuple":
                        value.marks.add("namedtuple")
            else:
                ancestor.subclasses.add(value)
                if ancestor is not value:
                    value.marks |= ancestor.marks & {"enum"}
                    if "dataclass" in ancestor.marks:
                        value.marks.add("dataclass-base")
        results: Values = just(value)
        decorators = [(d, self._in.expressions.eval(frame, d)) for d in facts.decorators]
        for decorator, callee in decorators:
            # `@dataclass(frozen=True)`: what the call gives is unknown, what is called is not.
            called = self._in.expressions.eval(frame, decorator[1]) if decorator[0] == "c" else callee
            if any(isinstance(item, External) and item.path.endswith(_RECORDS) for item in called):
                value.marks.add("dataclass")
        for statement in facts.body:
            if statement[0] == ":" and statement[2][0] == "n":
                value.fields[statement[2][1]] = statement[4] is not None
        self._body(frame, value)
        if any(isinstance(ancestor, ClassValue) and ancestor is not value for ancestor in value.mro):
            self._in.implicit.call_hook(frame, value)
        for decorator, callee in reversed(decorators):
            inside = frozenset(v for v in callee if not isinstance(v, (External, Builtin, Unknown)))
            if inside:
                decorated = self._in.implicit.call_decorator(frame, decorator, inside, results, _line_of(decorator))
                results = results | frozenset(v for v in decorated if isinstance(v, ClassValue))
        self._in.assignments.bind(frame, facts.name, results)

    def _body(self, frame: Frame, value: ClassValue) -> None:
        inner = Frame(frame.activation, frame.captured, value)
        inner.environment = dict(frame.environment)
        inner.guards = frame.guards
        inner.imports = frame.imports
        held, self._in.frame = self._in.frame, inner
        self._in.statements.block(inner, value.facts.body)
        self._in.frame = held


def _bare(value: Value) -> Value:
    return value.function if isinstance(value, Wrapped) and value.kind != "contextmanager" else value


def _line_of(expression: Expression) -> int:
    kind = expression[0]
    if kind in ("c", "a", "s", "l"):
        return int(expression[-1])
    return 0


def _linearize(cls: ClassValue) -> tuple[ClassValue | External, ...]:
    """C3 linearization; depth first where the bases allow none."""
    sequences: list[list[ClassValue | External]] = []
    for base in cls.bases:
        sequences.append(list(base.mro) if isinstance(base, ClassValue) else [base])
    sequences.append(list(cls.bases))
    result: list[ClassValue | External] = [cls]
    while True:
        sequences = [s for s in sequences if s]
        if not sequences:
            return tuple(result)
        for sequence in sequences:
            head = sequence[0]
            if not any(head in other[1:] for other in sequences):
                break
        else:
            head = sequences[0][0]
        if head not in result:
            result.append(head)
        sequences = [[item for item in s if item is not head] for s in sequences]
