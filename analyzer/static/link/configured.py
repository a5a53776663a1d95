"""The oracle of a resolved configuration: its answers in the linker's abstract values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config import protocol as p
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    Bound,
    ClassValue,
    Configured,
    Constant,
    Container,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    Values,
    Wrapped,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_SCALARS = (str, int, float, bool, type(None))


class ConfigurationOracle:
    """Answers the linker from a `Configuration`.

    Args:
        configuration: the resolved launch.
        predicates: qualified names of functions whose result the resolution settles (platform checks, accessors of
            configuration objects); a call of any other function is interpreted from its source.
        classes: qualified names of the classes whose objects are configuration.
        modules: dotted names of modules whose top-level names the resolution settles.
    """

    def __init__(
        self,
        configuration: p.Configuration,
        *,
        predicates: frozenset[str],
        classes: frozenset[str],
        modules: frozenset[str] = frozenset(),
    ) -> None:
        self._configuration = configuration
        self._predicates = predicates
        self._classes = classes
        self._modules = modules
        self._known: dict[Hashable, Values | None] = {}

    def field(self, interpreter: Interpreter, owner: str, name: str) -> Values | None:
        if owner not in self._classes:
            return None
        key = ("field", owner, name)
        if key not in self._known:
            self._known[key] = self._translate(interpreter, self._configuration.field(owner, name), (owner, name))
        return self._known[key]

    def attribute(self, interpreter: Interpreter, configured: Configured, name: str) -> Values | None:
        key = ("attribute", configured, name)
        if key not in self._known:
            handle = configured.handle
            assert isinstance(handle, p.InstanceOf)
            found = self._configuration.attribute(handle, name)
            self._known[key] = self._translate(interpreter, found, (configured, name))
        return self._known[key]

    def module_attribute(self, interpreter: Interpreter, module: str, name: str) -> Values | None:
        if module not in self._modules:
            return None
        key = ("module", module, name)
        if key not in self._known:
            found = self._configuration.module_attribute(module, name)
            self._known[key] = self._translate(interpreter, found, key)
        return self._known[key]

    def environment(self, interpreter: Interpreter, name: str) -> Values | None:
        key = ("environment", name)
        if key not in self._known:
            self._known[key] = self._translate(interpreter, self._configuration.environment(name), key)
        return self._known[key]

    def call(self, interpreter: Interpreter, function: str, arguments: Sequence[Values]) -> Values | None:
        if function not in self._predicates:
            return None
        constants: list[p.Constant] = []
        for values in arguments:
            constant = _single(values)
            if constant is _MANY:
                return None
            constants.append(constant)
        key = ("call", function, tuple(map(repr, constants)))
        if key not in self._known:
            found = self._configuration.call(function, constants)
            self._known[key] = self._translate(interpreter, found, key)
        return self._known[key]

    # -- translation

    def _translate(self, interpreter: Interpreter, values: p.Values | None, key: Hashable) -> Values | None:
        if values is None:
            return None
        origin = values.depends if values.automatic or not values.complete else ()
        found: set[Value] = set()
        for position, constant in enumerate(values.constants):
            found.add(self._constant(interpreter, constant, origin, (key, position)))
        if not values.complete and not values.automatic:
            found.add(Unknown.of(values.depends))
        if not found:
            return ANYTHING
        return frozenset(found)

    def _constant(
        self, interpreter: Interpreter, constant: p.Constant, origin: tuple[str, ...], key: Hashable
    ) -> Value:
        if isinstance(constant, _SCALARS):
            return Constant.of(constant, origin)
        if isinstance(constant, p.InstanceOf):
            return self._instance(interpreter, constant)
        if isinstance(constant, (p.ClassOf, p.FunctionOf)):
            return definition(interpreter, constant.qualname) or Unknown.of(origin)
        if isinstance(constant, tuple):
            container = interpreter.world.container("tuple", ("configuration", key))
            container.length = len(constant)
            for position, item in enumerate(constant):
                value = self._constant(interpreter, item, origin, (key, position))
                interpreter.world.put(container, Constant.of(position), frozenset((value,)))
            return container
        return Unknown.of(origin)

    def _instance(self, interpreter: Interpreter, handle: p.InstanceOf) -> Value:
        cls = definition(interpreter, handle.qualname)
        if not isinstance(cls, ClassValue):
            return External.of(f"{handle.qualname}()") if ":" not in handle.qualname else Unknown.of(())
        if "enum" in cls.marks:
            name = self._configuration.attribute(handle, "name")
            if name is not None and name.known and isinstance(name.constant, str):
                return EnumMember.of(cls, name.constant)
            return Unknown.of(name.depends if name is not None else ())
        interpreter.world.instantiated(cls)
        return Configured.of(cls, handle)


def definition(interpreter: Interpreter, qualname: str) -> Value | None:
    """The class or function of a qualified name, loading its module."""
    module, _, path = qualname.partition(":")
    parts = path.split(".")
    values = interpreter.attributes.of_module(module, parts[0])
    for part in parts[1:]:
        values = interpreter.attributes.get(values, part)
    for value in values:
        inner = value.function if isinstance(value, (Wrapped, Bound)) else value
        if isinstance(inner, (ClassValue, FunctionValue)) and inner.qualname == qualname:
            return inner
    return None


_MANY: object = object()


def _single(values: Values) -> object:
    """The one constant of a set of values, as the configuration takes it; `_MANY` when there is no such thing."""
    if len(values) != 1:
        return _MANY
    (value,) = values
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Configured):
        return value.handle
    if isinstance(value, ClassValue):
        return p.ClassOf(value.qualname)
    if isinstance(value, (Instance, Container)):
        return _MANY
    return _MANY
