"""Builtins: `getattr`, `isinstance`, `super`, `map` and the rest; the last of the models of what is not the checkout."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.construction import none_made
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Builtin, Configured, Container, Generated, Pattern, Super, Typed
from sgl_graph.analyzer.static.link.truth import truth_of, truth_of_one
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    BOTH,
    FALSE,
    JUST_NONE,
    NOTHING,
    TRUE,
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    ModuleValue,
    Unknown,
    Value,
    Values,
    Wrapped,
    depends_of,
    just,
)
from sgl_graph.analyzer.static.link.world import CallRecord, World
from sgl_graph.analyzer.static.linked import Truth

_WRAPPERS = {"property": "property", "staticmethod": "staticmethod", "classmethod": "classmethod"}
_PASSING = {"reversed", "sorted", "iter"}
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}


from sgl_graph.analyzer.static.link.library import Library


class Wanted:
    """The classes of an `isinstance`, sorted by what they are."""

    __slots__ = ("count", "externals", "names", "own", "protocol")

    def __init__(self, world: World, classes: Iterable[Value]) -> None:
        flat: set[Value] = set()
        for value in classes:
            if isinstance(value, Container):
                flat |= world.all_elements(value)
            else:
                flat.add(value)
        self.count = len(flat)
        self.names = {v.name for v in flat if isinstance(v, Builtin)}
        self.externals = {v.path for v in flat if isinstance(v, External)}
        self.own = [v for v in flat if isinstance(v, ClassValue)]
        self.protocol = any(
            isinstance(b, External) and b.path.endswith("Protocol") for cls in self.own for b in cls.mro
        )


class Models(Library):
    """Semantics of values that are no code of the checkout."""

    def builtin(self, frame: Frame, name: str, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """A call of a builtin."""
        first = arguments.get(0, "object")
        if name == "getattr":
            return self._getattr(first, arguments)
        if name == "setattr":
            self._setattr(first, arguments)
            return JUST_NONE
        if name == "hasattr":
            return self._hasattr(first, arguments.get(1, "name"))
        if name == "isinstance":
            return self._isinstance(first, arguments.get(1, "cls"))
        if name == "issubclass":
            return ANYTHING
        if name == "callable":
            return (
                BOTH
                if any(isinstance(v, Unknown) for v in first)
                else frozenset(
                    TRUE if isinstance(v, (FunctionValue, Bound, ClassValue, Wrapped)) else FALSE for v in first
                )
            )
        if name == "super":
            return self._super(frame, arguments)
        if name == "object.__new__":
            made = frozenset(Instance.of(v) for v in first if isinstance(v, ClassValue))
            for instance in made:
                self._world.instantiated(instance)
            return made or ANYTHING
        if name in _WRAPPERS:
            return frozenset(Wrapped.of(v, _WRAPPERS[name]) for v in first)
        if name in ("list", "tuple", "set", "frozenset"):
            return self._sequence_call(frame, arguments, record, (site, name))
        if name == "dict":
            return self._dict_call(frame, arguments, record, site)
        if name in _PASSING:
            self._in.implicit.escape(frame, arguments.keywords.values())
            result = self._new("list", site, frame)
            self._world.put(result, None, self.iterate(first))
            return just(result)
        if name in ("next", "min", "max"):
            self._in.implicit.escape(frame, arguments.keywords.values())
            return self._next(name, first, arguments)
        if name == "enumerate":
            return self._pairs(frame, site, [ANYTHING, self.iterate(first)])
        if name == "zip":
            return self._pairs(frame, site, [self.iterate(values) for values in arguments.positional])
        if name in ("map", "filter"):
            elements = [self.iterate(values) for values in arguments.positional[1:]]
            result = self._new("list", site, frame)
            returned: set[Value] = set()
            for callee in first:
                returned |= self._in.calls.invoke(frame, callee, Arguments(list(elements)), record, (site, name))
            self._world.put(
                result, None, frozenset(returned) if name == "map" else elements[0] if elements else NOTHING
            )
            if name == "filter" and returned:
                every = truth_of(frozenset(returned))[0] is Truth.TRUE
                result.length = self.common_length(arguments.get(1, "iterable")) if every else None
            return just(result)
        if name == "type":
            return self._type(first, arguments)
        if name in _TYPES:
            return self._convert(_TYPES[name], first, arguments)
        if name in ("any", "all"):
            return self._quantifier(name, first)
        if name == "len":
            lengths = [v.length for v in first if isinstance(v, Container)]
            if lengths and len(lengths) == len(first) and all(n is not None for n in lengths):
                return frozenset(Constant.of(n) for n in lengths)
            return ANYTHING
        if name == "vars" or name == "globals":
            return ANYTHING
        if name == "__import__":
            return self._import_module(frame, arguments, record, site)
        if name == "print":
            return JUST_NONE
        self._in.implicit.escape(frame, arguments.every())
        return ANYTHING

    def _getattr(self, owners: Values, arguments: Arguments) -> Values:
        names = arguments.get(1, "name")
        default = arguments.get(2, "default")
        found: set[Value] = set()
        for name in names:
            if isinstance(name, Constant) and isinstance(name.value, str):
                for owner in owners:
                    exists = self._exists(owner, name.value) if default and isinstance(owner, Instance) else True
                    if exists is False:
                        found |= default
                        continue
                    found |= self._in.attributes.get(just(owner), name.value) or default
                    if exists is None:
                        found |= default
            elif isinstance(name, Pattern):
                found |= self._matching(owners, name)
                found |= default
            else:
                found.add(Unknown.of(depends_of(names)))
        if default and not names:
            return NOTHING
        return frozenset(found)

    def _exists(self, owner: Instance, name: str) -> bool | None:
        """Whether anything gives this attribute, None where only an unseen base may; a read that finds nothing waits for it."""
        heap = self._world.heap
        settled = self._world.oracle.field(self._in, owner.cls.qualname, name)
        if settled is not None:
            return True
        for concrete in self._world.concrete(owner):
            if heap.read(cell_in(concrete.attributes, name)):
                return True
            if self._in.class_level.find(concrete.cls, concrete, name):
                return True
            if self._in.class_level.has(concrete.cls, "__getattr__"):
                return True
            if any(isinstance(b, External) and not b.path.startswith(("abc.", "typing.")) for b in concrete.cls.mro):
                return None
        return False

    def _matching(self, owners: Values, pattern: Pattern) -> Values:
        found: set[Value] = set()
        self._world.project.patterns.add((pattern.prefix, pattern.suffix))
        for owner in owners:
            if isinstance(owner, Instance):
                for concrete in self._world.concrete(owner):
                    for base in concrete.cls.mro:
                        if isinstance(base, ClassValue):
                            for name in _defined_names(base):
                                if name.startswith(pattern.prefix) and name.endswith(pattern.suffix):
                                    found |= self._in.attributes.of_instance(concrete, name)
            elif isinstance(owner, ModuleValue):
                self._world.enumerated(owner.name)
                for name in list(self._world.globals.get(owner.name, {})):
                    if name.startswith(pattern.prefix) and name.endswith(pattern.suffix):
                        found |= self._in.attributes.of_module(owner.name, name)
        return frozenset(found)

    def _setattr(self, owners: Values, arguments: Arguments) -> None:
        values = arguments.get(2, "value")
        for name in arguments.get(1, "name"):
            if isinstance(name, Constant) and isinstance(name.value, str):
                self._in.stores.put(owners, name.value, values)

    def _hasattr(self, owners: Values, names: Values) -> Values:
        found: set[Value] = set()
        for owner in owners:
            for name in names:
                if isinstance(owner, Instance) and isinstance(name, Constant) and isinstance(name.value, str):
                    own = self._in.class_level.find(owner.cls, owner, name.value)
                    if own and not owner.fuzzy:
                        found.add(TRUE)
                        continue
                    if self._exists(owner, name.value) is False:
                        found.add(FALSE)
                        continue
                found |= ANYTHING
        return frozenset(found)

    def _isinstance(self, owners: Values, classes: Values) -> Values:
        wanted = Wanted(self._world, classes)
        found: set[Value] = set()
        for owner in owners:
            found |= self.is_instance(owner, wanted)
        return frozenset(found)

    def is_instance(self, owner: Value, wanted: Wanted) -> Values:
        """Whether one value is an instance of any of the classes."""
        if isinstance(owner, Unknown):
            return just(FALSE if none_made(self._world, wanted.own, wanted.count) else owner)
        names, own = wanted.names, wanted.own
        if "object" in names:
            return just(TRUE)
        if wanted.protocol:
            return BOTH  # a protocol asks for attributes, not for a base
        if isinstance(owner, (Instance, EnumMember, Configured)):
            mro = owner.cls.mro
            if any(cls in mro for cls in own):
                return just(TRUE)
            externals = {b.path for b in mro if isinstance(b, External)}
            if externals and not (names.isdisjoint(externals) and wanted.externals.isdisjoint(externals)):
                return just(TRUE)
            if isinstance(owner, Instance) and owner.fuzzy:
                return just(FALSE) if none_made(self._world, own, wanted.count) else BOTH
            # A class from outside may stand above a base from outside, not above one of the checkout alone.
            return just(FALSE) if len(own) == wanted.count or not externals else BOTH
        if len(own) + len(names) != wanted.count:
            return BOTH
        kinds = _builtin_kinds(owner)
        if kinds is None:
            return BOTH if names else just(FALSE) if not isinstance(owner, (External, Typed)) else BOTH
        return just(FALSE if names.isdisjoint(kinds) else TRUE)

    def _super(self, frame: Frame, arguments: Arguments) -> Values:
        owner = frame.activation.owner
        receiver: Value | None = frame.activation.receiver
        if arguments.positional:
            owners = [v for v in arguments.positional[0] if isinstance(v, ClassValue)]
            owner = owners[0] if owners else owner
        function = frame.activation.function
        parent = frame.activation.parent
        while owner is None and parent is not None:  # a nested function of a method
            owner, receiver, function = parent.owner, parent.receiver, parent.function
            parent = parent.parent
        if owner is None or function is None:
            return ANYTHING
        if receiver is None:
            parameters = function.facts.parameters
            values = self._world.heap.read(frame.activation.parameter(parameters[0].name)) if parameters else NOTHING
            return frozenset(Super.of(owner, v) for v in values if isinstance(v, (Instance, ClassValue)))
        return just(Super.of(owner, receiver))

    def _next(self, name: str, first: Values, arguments: Arguments) -> Values:
        if name == "next":
            return self.iterate(first) | arguments.get(1, "default")
        groups = [self.iterate(first)] if len(arguments.positional) == 1 else arguments.positional
        if len(groups) > 1:
            constants = [[v.value for v in g if isinstance(v, Constant)] for g in groups]
            if all(len(c) == len(g) == 1 for c, g in zip(constants, groups, strict=True)):
                try:
                    chosen = (min if name == "min" else max)(c[0] for c in constants)  # type: ignore[type-var]
                    return just(Constant.of(chosen))
                except TypeError:
                    return ANYTHING
        found: set[Value] = set()
        for group in groups:
            found |= {v for v in group if not isinstance(v, Constant)} or (ANYTHING if group else NOTHING)
        return frozenset(found)

    def _pairs(self, frame: Frame, site: Hashable, columns: list[Values]) -> Values:
        pair = self._new("tuple", (site, "row"), frame)
        pair.length = len(columns)
        for position, values in enumerate(columns):
            self._world.put(pair, Constant.of(position), values)
        result = self._new("list", site, frame)
        if all(columns):
            self._world.put(result, None, just(pair))
        return just(result)

    def _type(self, first: Values, arguments: Arguments) -> Values:
        if len(arguments.positional) > 1:
            return ANYTHING
        found: set[Value] = set()
        for value in first:
            if isinstance(value, (Instance, EnumMember, Configured)):
                found.add(value.cls)
            elif isinstance(value, Unknown):
                found.add(value)
            else:
                found |= ANYTHING
        return frozenset(found)

    def _convert(self, kind: type, first: Values, arguments: Arguments) -> Values:
        if not arguments.positional:
            return just(Constant.of(kind()))
        found: set[Value] = set()
        for value in first:
            if isinstance(value, Constant) and len(arguments.positional) == 1:
                try:
                    found.add(Constant.of(kind(value.value), value.origin))
                except (TypeError, ValueError, OverflowError):
                    continue
            elif isinstance(value, Unknown):
                found.add(value)
            elif kind is bool:
                truth = truth_of_one(value)
                found |= BOTH if truth is None else just(Constant.of(truth))
            else:
                found |= ANYTHING
        return frozenset(found)

    def _quantifier(self, name: str, first: Values) -> Values:
        elements = self.iterate(first)
        truths = {truth_of_one(v) for v in elements}
        stops = name == "any"
        if truths == {not stops}:
            return just(Constant.of(not stops))
        if all(isinstance(v, Container) and v.length for v in first) and truths == {stops}:
            return just(Constant.of(stops))
        if not elements:
            return NOTHING if not first else ANYTHING
        depends = depends_of(elements)
        return just(Unknown.of(depends)) if depends else ANYTHING


def _builtin_kinds(value: Value) -> set[str] | None:
    """Names of the builtin types that a value is an instance of; None when that is not known."""
    if isinstance(value, Constant):
        kind = type(value.value).__name__
        return {"bool", "int"} if kind == "bool" else {kind}
    if isinstance(value, Container):
        return {value.kind} if value.kind in ("list", "tuple", "dict", "set") else set()
    if isinstance(value, ClassValue):
        return {"type"}
    if isinstance(value, Typed):
        return {"dict"} if value.mapping else None
    if isinstance(value, (FunctionValue, Bound, ModuleValue, Super, Generated)):
        return set()
    return None


def _defined_names(cls: ClassValue) -> list[str]:
    functions = cls.module.facts.functions
    names = [functions[s[2]].name for s in cls.facts.body if s[0] == "def"]
    names += [s[2][0][1] for s in cls.facts.body if s[0] == "=" and s[2][0][0] == "n"]
    return names
