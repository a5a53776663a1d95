"""Readers' view of evaluated values: constants with provenance, JSON values, and the objects that stay alive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sgl_graph.analyzer.static.config.possibilities import single
from sgl_graph.analyzer.static.config.program import Bound, ClassV, FunctionV, Instance, ModuleV, Partial, Wrapped
from sgl_graph.analyzer.static.config.protocol import ClassOf, Constant, FunctionOf, InstanceOf, Values
from sgl_graph.analyzer.static.config.python_values import is_mixed
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    Alternatives,
    DictV,
    External,
    Fuzzy,
    ListV,
    Native,
    SetV,
    Value,
)

_ATOMS = (str, int, float, bool, type(None))


class Opaque(Exception):
    """A value that has no constant form."""


class View:
    """Turns values into constants and back; remembers which object an identity means."""

    def __init__(self) -> None:
        self._objects: dict[str, Instance] = {}
        self._names: dict[int, str] = {}

    def values(self, value: Value) -> Values:
        """Possibilities and provenance of a value."""
        options: tuple[Value, ...] = value.options if type(value) is Fuzzy else (value,)
        complete = not (type(value) is Fuzzy and value.open)
        deps = set(value.deps) if type(value) is Fuzzy else set()
        constants: list[Constant] = []
        for option in options:
            if option is ABSENT:
                continue
            try:
                constant = self.constant(option, deps)
            except Opaque:
                complete = False
                continue
            if not any(type(constant) is type(known) and constant == known for known in constants):
                constants.append(constant)
        automatic = any(dep.startswith("package:") for dep in deps)
        place = value.place if type(value) is Fuzzy else None
        return Values(tuple(constants), complete, automatic, tuple(sorted(deps)), place)

    def constant(self, value: Value, deps: set[str]) -> Constant:
        """The constant of a single value; what its parts rest on is added to `deps`.

        Raises:
            Opaque: it has none.
        """
        if type(value) is Fuzzy:
            deps |= value.deps
            value = single(value)
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is tuple:
            return tuple(self.constant(item, deps) for item in value)
        if kind is ListV:
            if not value.exact:
                deps |= value.opaque or frozenset()
                raise Opaque
            return tuple(self.constant(item, deps) for item in value.items)
        if kind is DictV or kind is SetV:
            if value.opaque is not None:
                deps |= value.opaque
                raise Opaque
            if kind is SetV:
                return tuple(self.constant(item, deps) for item in value.items)
            return tuple((self.constant(key, deps), self.constant(item, deps)) for key, item in value.items.items())
        if kind is Instance:
            if is_mixed(value) and isinstance(value.payload, (str, int)):
                return value.payload
            return InstanceOf(_class_name(value), self.identity(value))
        if kind is ClassV:
            return ClassOf(value.qualname)
        if kind is External:
            return ClassOf(value.path)
        if kind is FunctionV:
            return FunctionOf(value.qualname)
        if kind is Bound or kind is Wrapped or kind is Partial:
            return self.constant(value.function, deps)
        raise Opaque

    def identity(self, value: Instance) -> str:
        """A name for an object, the same each time."""
        name = self._names.get(id(value))
        if name is None:
            label = value.attrs.get("_name_")
            name = f"{label}" if isinstance(label, str) else f"object-{len(self._names) + 1}"
            if name in self._objects:
                name = f"{name}-{len(self._names) + 1}"
            self._names[id(value)] = name
            self._objects[name] = value
        return name

    def back(self, constant: Constant) -> Value:
        """The value of a constant that a reader gives back."""
        if isinstance(constant, InstanceOf):
            found = self._objects.get(constant.identity)
            return found if found is not None else Instance(External(constant.qualname), {}, frozenset({"object"}))
        if isinstance(constant, tuple):
            return tuple(self.back(item) for item in constant)
        if isinstance(constant, (ClassOf, FunctionOf)):
            return External(constant.qualname)
        return constant


def _class_name(value: Instance) -> str:
    return value.cls.qualname if isinstance(value.cls, ClassV) else value.cls.path


def to_json(value: Value) -> Any:
    """A JSON value for reports; None where it is not known."""
    plain = single(value)
    if plain is ABSENT:
        return None
    kind = type(plain)
    if kind in _ATOMS:
        return plain
    if kind is tuple:
        return [to_json(item) for item in plain]
    if kind is ListV:
        return [to_json(item) for item in plain.items] if plain.exact else None
    if kind is SetV:
        return sorted((to_json(item) for item in plain.items), key=str) if plain.opaque is None else None
    if kind is DictV:
        return {str(to_json(key)): to_json(item) for key, item in plain.items.items()} if plain.opaque is None else None
    if kind is Instance:
        if is_mixed(plain) and isinstance(plain.payload, (str, int)):
            return plain.payload
        if "_name_" in plain.attrs:
            return plain.attrs["_name_"]
        if isinstance(plain.cls, ClassV) and plain.cls.kind == "record":
            return {name: to_json(item) for name, item in plain.attrs.items() if not name.startswith("_")}
        return None
    if kind is ClassV or kind is FunctionV:
        return plain.qualname
    return plain.path if kind is External else None


def reachable(roots: list[Value]) -> Iterator[Instance]:
    """Objects of the checkout's classes that can be reached from some values."""
    seen: set[int] = set()
    stack: list[Any] = list(roots)
    while stack:
        value = stack.pop()
        kind = type(value)
        if kind in _ATOMS or kind in (Native, External, ModuleV, FunctionV):
            continue
        if kind is Fuzzy:
            stack += value.options
            continue
        if kind is tuple:
            stack += value
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        if kind is Instance:
            if "_name_" not in value.attrs:
                yield value
            stack += value.attrs.values()
            if value.payload is not None:
                stack.append(value.payload)
        elif kind is ListV:
            stack += value.items
        elif kind is DictV:
            stack += value.items.values()
            stack += value.items
        elif kind is Alternatives:
            for run in value.runs:
                stack += run
        elif kind is Bound:
            stack += [value.function, value.receiver]
