"""The oracle of a resolved configuration: its answers in the linker's abstract values."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config import protocol as p
from sgl_graph.analyzer.static.link.objects import Configured, Foreign
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    Values,
    Wrapped,
    just,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.heap import Activation
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: What the evaluator names when it could not work a question out, or when the machine answers anew each time: no answer,
#: so the source is interpreted, and no configuration that a condition could rest on.
_NO_ANSWER = {"evaluation", "host"}
#: A call with more combinations of arguments than this is interpreted.
_MOST_QUESTIONS = 4
_SCALARS = (str, int, float, bool, type(None))


class ConfigurationOracle:
    """Answers the linker from a `Configuration`.

    Args:
        configuration: the resolved launch.
        asks: whether the resolution, not the source, says what a function returns (platform checks, accessors of
            configuration objects); a call of any other function is interpreted.
        classes: qualified names of the classes whose objects are configuration wherever they appear.
        settled_names: module to the name of its top level that the resolution settles.
        resolving: prefixes of modules whose code is the resolution itself: what it stores is in the answers.
        apart: attributes that differ between objects of one configuration class, so that no answer is given.
        views: classes whose attributes are those of a configuration class, by qualified name.
        reads: an attribute that a function which is asked about reads of configuration; where code that runs writes it,
            the resolution's answer is not the last word, and the source is interpreted.
        groups: classes whose objects are groups of ranks, by qualified name, with the attribute that holds how many.
        ranks: the configuration class, and those of its attributes that multiply to the ranks of a launch; where they give
            one rank, every group is of one.
    """

    def __init__(
        self,
        configuration: p.Configuration,
        *,
        asks: Callable[[str], bool],
        classes: frozenset[str],
        settled_names: Mapping[str, str] | None = None,
        resolving: tuple[str, ...] = (),
        apart: frozenset[str] = frozenset(),
        views: Mapping[str, str] | None = None,
        reads: Callable[[str], str | None] = lambda function: None,
        groups: Mapping[str, str] | None = None,
        ranks: tuple[str, tuple[str, ...]] = ("", ()),
    ) -> None:
        self._configuration = configuration
        self._asks = asks
        self._classes = classes
        self._settled_names = dict(settled_names or {})
        self._resolving = resolving
        self._apart = apart
        self._views = dict(views or {})
        self._reads = reads
        self._groups = dict(groups or {})
        self._ranks = ranks
        self._known: dict[Hashable, Values | None] = {}

    def configures(self, owner: str) -> bool:
        return owner in self._classes

    def field(self, interpreter: Interpreter, owner: str, name: str) -> Values | None:
        if self._groups.get(owner) == name and self._one_rank:
            return just(Constant.of(1))
        owner = self._views.get(owner, owner)
        if owner not in self._classes or name in self._apart:
            return None
        key = ("field", owner, name)
        if key not in self._known:
            self._known[key] = self._translate(interpreter, self._configuration.field(owner, name), (owner, name))
        return self._known[key]

    @cached_property
    def _one_rank(self) -> bool:
        """Whether the launch is surely of one rank; sizes that the configuration does not have count for nothing."""
        owner, names = self._ranks
        sizes = [size for name in names if (size := self._configuration.field(owner, name)) is not None]
        return bool(sizes) and all(size.known and size.constant == 1 for size in sizes)

    def settles(self, owner: str, name: str, writer: Activation) -> bool:
        if self._groups.get(owner) == name:
            return self._one_rank
        if owner not in self._classes or self._configuration.field(owner, name) is None:
            return False
        inside = writer.owner
        if inside is not None and any(isinstance(b, ClassValue) and b.qualname in self._classes for b in inside.mro):
            return True
        return writer.module.name.startswith(self._resolving)

    def attribute(self, interpreter: Interpreter, configured: Configured | Foreign, name: str) -> Values | None:
        key = ("attribute", configured, name)
        if key not in self._known:
            handle = configured.handle
            assert isinstance(handle, p.InstanceOf)
            found = self._configuration.attribute(handle, name)
            self._known[key] = self._translate(interpreter, found, (configured, name))
        return self._known[key]

    def is_instance(self, value: Configured | Foreign, cls: ClassValue) -> bool | None:
        handle = value.handle
        assert isinstance(handle, p.InstanceOf)
        return self._configuration.is_instance(handle, cls.qualname)

    def module_attribute(self, interpreter: Interpreter, module: str, name: str) -> Values | None:
        if self._settled_names.get(module) != name:
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
        if not self._asks(function):
            return None
        read = self._reads(function)
        if read is not None and interpreter.world.heap.read(interpreter.world.heap.cell(("rewritten", read))):
            return None
        choices = [self._argument(values) for values in arguments]
        if (
            any(choice is None for choice in choices)
            or prod(len(c) for c in choices if c is not None) > _MOST_QUESTIONS
        ):
            return None
        answers: set[Value] = set()
        for constants in product(*(choice for choice in choices if choice is not None)):
            key = ("call", function, tuple(map(repr, constants)))
            if key not in self._known:
                found = self._configuration.call(function, list(constants))
                self._known[key] = self._translate(interpreter, found, key)
            answer = self._known[key]
            if answer is None:
                return None
            answers |= answer
        return frozenset(answers) or None

    def _argument(self, values: Values) -> list[p.Constant] | None:
        """The constants that an argument may be; an object of a configuration class is the only one of its class."""
        owners = {value.cls.qualname if isinstance(value, Instance) else "" for value in values}
        if len(owners) == 1 and owners <= self._classes:
            only = self._configuration.only(owners.pop())
            return [only] if only is not None else None
        found = [_single(value) for value in values]
        return sorted(found, key=repr) if found and _MANY not in found else None

    # -- translation

    def _translate(self, interpreter: Interpreter, values: p.Values | None, key: Hashable) -> Values | None:
        if values is None:
            return None
        depends = tuple(name for name in values.depends if name not in _NO_ANSWER)
        if not (values.constants or depends):
            return None
        origin = depends if values.automatic or not values.complete else ()
        found: set[Value] = set()
        for position, constant in enumerate(values.constants):
            found.add(self._constant(interpreter, constant, origin, (key, position)))
        if not values.complete and not values.automatic:
            found.add(Unknown.of(depends))
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
            container.configured = True
            container.length = len(constant)
            for position, item in enumerate(constant):
                value = self._constant(interpreter, item, origin, (key, position))
                interpreter.world.put(container, Constant.of(position), just(value))
            return container
        return Unknown.of(origin)

    def _instance(self, interpreter: Interpreter, handle: p.InstanceOf) -> Value:
        cls = definition(interpreter, handle.qualname)
        if not isinstance(cls, ClassValue):
            return Foreign.of(handle, handle.qualname)
        if "enum" in cls.marks:
            name = self._configuration.attribute(handle, "name")
            if name is not None and name.known and isinstance(name.constant, str):
                return EnumMember.of(cls, name.constant)
            return Unknown.of(name.depends if name is not None else ())
        interpreter.world.instantiated(Instance.of(cls))
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


def _single(value: Value) -> object:
    """A value as the configuration takes it; `_MANY` when it is no constant."""
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, (Configured, Foreign)):
        return value.handle
    if isinstance(value, ClassValue):
        return p.ClassOf(value.qualname)
    return _MANY
