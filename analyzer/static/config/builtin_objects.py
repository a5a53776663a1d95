"""Python's built-in functions on objects, classes and functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import operators
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, is_open, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.program import (
    Bound,
    ClassV,
    FunctionV,
    Instance,
    ModuleV,
    Partial,
    Super,
    Wrapped,
)
from sgl_graph.analyzer.static.config.python_values import inner_deps
from sgl_graph.analyzer.static.config.registry import native
from sgl_graph.analyzer.static.config.values import ABSENT, Deps, DictV, External, Fuzzy, ListV, Native, SetV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

Arguments = list[Value]
Keywords = dict[str, Value]


@native("builtins.isinstance")
def _isinstance(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return machine.is_instance(arguments[0], arguments[1])


@native("builtins.issubclass")
def _issubclass(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    plain = single(arguments[0])
    if type(plain) not in (ClassV, External):
        return unknown(deps_of(arguments[0])) if plain is ABSENT else False
    kinds = arguments[1] if type(arguments[1]) is tuple else (arguments[1],)
    ancestry = machine.ancestry(plain)
    if any(any(item == single(kind) for item in ancestry) for kind in kinds):
        return True
    return False if type(plain) is ClassV else unknown([f"package:{plain.path.split('.')[0]}"])


@native("builtins.type")
def _type(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) != 1:
        return unknown(["class"], machine.place())

    def work(value: Value) -> Value:
        if type(value) is Instance:
            return value.cls
        names = {
            ListV: "list",
            DictV: "dict",
            SetV: "set",
            type(None): "NoneType",
            ClassV: "type",
            FunctionV: "function",
        }
        if type(value) in names:
            return External(f"builtins.{names[type(value)]}")
        if type(value) in (str, int, float, bool, tuple, bytes, range):
            return External(f"builtins.{type(value).__name__}")
        return unknown(["class"], machine.place())

    return operators.lift(machine, work, arguments[0])


@native("builtins.callable")
def _callable(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    def work(value: Value) -> Value:
        if type(value) in (FunctionV, Bound, Native, ClassV, Partial, Wrapped):
            return True
        if type(value) is Instance:
            return type(value.cls) is ClassV and machine.inherited(value.cls, "__call__") is not ABSENT
        return unknown() if type(value) is External else False

    return operators.lift(machine, work, arguments[0])


@native("builtins.getattr")
def _getattr(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    names, open_ = options_of(arguments[1])
    if open_ or not all(isinstance(name, str) for name in names) or len(names) != 1:
        if len(arguments) > 2 or open_ or not names:
            return unknown(deps_of(arguments[0]) | deps_of(arguments[1]), machine.place())
        return operators.lift(machine, lambda name: machine.get(arguments[0], name), arguments[1])
    default = arguments[2] if len(arguments) > 2 else ABSENT
    if type(arguments[0]) is Fuzzy and default is not ABSENT:
        found: list[Value] = []
        for option in arguments[0].options:
            value = machine.get(option, names[0])
            found.append(default if value is ABSENT else value)
        deps = arguments[0].deps | deps_of(arguments[1])
        result = fuzzy(found, arguments[0].open, deps, machine.place())
    else:
        result = machine.get(arguments[0], names[0])
        if deps_of(arguments[1]):
            result = taint(result, deps_of(arguments[1])) if result is not ABSENT else result
    if result is ABSENT:
        if default is ABSENT:
            raise machine.fail("AttributeError", names[0])
        return default
    if type(result) is Fuzzy and ABSENT in result.options:
        kept = [option for option in result.options if option is not ABSENT]
        extra = [] if default is ABSENT else [default]
        return fuzzy([*kept, *extra], result.open, result.deps, result.place)
    return result


@native("builtins.hasattr")
def _hasattr(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    name = single(arguments[1])
    deps = deps_of(arguments[0]) | deps_of(arguments[1])
    if not isinstance(name, str):
        return unknown(deps, machine.place())

    def work(value: Value) -> Value:
        found = machine.get(value, name)
        if found is ABSENT:
            return False
        if type(found) is Fuzzy and (ABSENT in found.options or (is_open(found) and _may_lack(value, name))):
            return unknown(found.deps, machine.place())
        return True

    return operators.lift(machine, work, arguments[0])


def _may_lack(value: Value, name: str) -> bool:
    if type(value) is Instance:
        return name not in value.attrs
    return type(value) not in (ModuleV,)


@native("builtins.setattr")
def _setattr(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    names, open_ = options_of(arguments[1])
    value = arguments[2]
    if open_ or len(names) != 1:
        for option in options_of(arguments[0])[0]:
            if type(option) is Instance:
                machine.touch(option)
                for name in names or _writable(machine, option, deps_of(arguments[1])):
                    if isinstance(name, str):
                        machine.set_raw(option, name, value, weak=True, deps=deps_of(arguments[1]))
        return None
    machine.set(arguments[0], names[0], taint(value, deps_of(arguments[1])))
    return None


def _writable(machine: Calls, record: Instance, deps: Deps) -> list[str]:
    """Attributes that an assignment under an unknown name may mean: where the model decides the name, those of overrides."""
    names = list(record.attrs)
    if "model" in deps and isinstance(record.cls, ClassV) and record.cls.qualname == profile.ARGUMENT_CLASS:
        fields = set(machine.overridable())
        return [name for name in names if name in fields] or names
    return names


@native("builtins.object.__setattr__", "msgspec.Struct.__setattr__")
def _raw_setattr(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    name = single(arguments[1])
    for option in options_of(arguments[0])[0]:
        if isinstance(name, str):
            machine.set_raw(option, name, arguments[2], deps=machine.control)
    return None


@native("builtins.object.__getattribute__")
def _raw_getattr(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    name = single(arguments[1])

    def work(value: Value) -> Value:
        if type(value) is Instance and isinstance(name, str):
            if name in value.attrs:
                return value.attrs[name]
            if type(value.cls) is ClassV:
                found = machine.inherited(value.cls, name)
                if found is not ABSENT:
                    return machine.bind(found, value, value.cls, name)
            if value.opaque is None:
                raise machine.fail("AttributeError", name)
        return unknown(["class"], machine.place())

    return operators.lift(machine, work, arguments[0])


@native("builtins.object.__new__")
def _raw_new(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    cls = single(arguments[-1] if type(single(arguments[0])) is Super else arguments[0])
    return Instance(cls) if type(cls) is ClassV else unknown(["class"], machine.place())


@native("builtins.object")
def _object(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return Instance(External("builtins.object"))


@native("builtins.vars", "builtins.dir")
def _vars(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    plain = single(arguments[0]) if arguments else ABSENT
    if type(plain) is ClassV:
        return machine.class_names(plain)
    if type(plain) is Instance:
        return DictV(dict(plain.attrs), plain.opaque)
    return unknown(["source"], machine.place())


@native("builtins.globals")
def _globals(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return DictV({}, frozenset(["globals"]))


@native("builtins.super")
def _super(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if len(arguments) == 2 and type(single(arguments[0])) is ClassV:
        return Super(single(arguments[0]), single(arguments[1]))
    frame = machine.frames[-1]
    while frame.function is None and frame.parent is not None:
        frame = frame.parent
    if frame.owner is None:
        return unknown(["class"], machine.place())
    receiver = frame.receiver
    return Super(frame.owner, single(receiver))


def _wrap(kind: str) -> Any:
    def call(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
        return Wrapped(kind, arguments[0]) if arguments else unknown(["decorator"])

    return call


native("builtins.property")(_wrap("property"))
native("builtins.staticmethod")(_wrap("staticmethod"))
native("builtins.classmethod")(_wrap("classmethod"))
native("functools.cached_property")(_wrap("cached_property"))


@native("functools.lru_cache", "functools.cache")
def _cache(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if arguments and type(single(arguments[0])) in (FunctionV, Partial, Bound, Wrapped):
        return Wrapped("cached", single(arguments[0]))
    return Native("lru_cache", lambda inner, values, words: Wrapped("cached", single(values[0])))


@native("functools.partial")
def _partial(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return Partial(arguments[0], arguments[1:], dict(keywords))


@native("functools.wraps", "functools.update_wrapper")
def _wraps(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return Native("wraps", lambda inner, values, words: values[0])


@native("functools.reduce")
def _reduce(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    items = machine.elements(arguments[1])
    if items is None:
        return unknown(inner_deps(arguments[1]), machine.place())
    if len(arguments) > 2:
        items = [arguments[2], *items]
    if not items:
        raise machine.fail("TypeError", "empty reduce")
    total = items[0]
    for item in items[1:]:
        total = machine.call(arguments[0], [total, item], {})
    return total
