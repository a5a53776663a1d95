"""Three-valued truth of abstract values, and the folding of operators over constants."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link.latches import is_state
from sgl_graph.analyzer.static.link.objects import Configured, Container, Foreign
from sgl_graph.analyzer.static.link.sets import traits
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    BOTH,
    FALSE,
    NOTHING,
    TRUE,
    UNKNOWN,
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
    depends_of,
    is_named,
    just,
    resting_on,
)
from sgl_graph.analyzer.static.linked import Truth

#: More pairs than this are not folded.
_MOST_PAIRS = 144

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_, "|": operator.or_,
    "^": operator.xor,
}  # fmt: skip
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip
_LONGEST_TEXT = 2000
_LARGEST_INTEGER = 1 << 62
_WIDE = re.compile(r"%[^a-zA-Z%]*\d{4}")


def truth_of(values: Values) -> tuple[Truth | None, tuple[str, ...]]:
    """Whether a test holds, and the configuration that an unknown rests on; None when nothing has arrived yet."""
    if not values:
        return None, ()
    truth: bool | None = None
    for position, value in enumerate(values):
        one = truth_of_one(value)
        if one is None or (position and one is not truth):
            depends = depends_of(values)
            if UNKNOWN in values and any(map(is_state, depends)):
                # A switch is not what keeps a test open that only running code can tell.
                depends = tuple(name for name in depends if not is_state(name))
            return Truth.UNKNOWN, depends
        truth = one
    return (Truth.TRUE if truth else Truth.FALSE), ()


def truth_of_one(value: Value) -> bool | None:
    """Truth of one abstract value."""
    if isinstance(value, Constant):
        return bool(value.value)
    if isinstance(value, (FunctionValue, ClassValue, ModuleValue, Bound)):
        return True
    if isinstance(value, EnumMember):
        return _truth_of_member(value)
    if isinstance(value, (Instance, Configured)):
        # An object is true unless its class says otherwise by a length or a truth method.
        methods = ("__bool__", "__len__")
        for base in value.cls.mro:
            if not isinstance(base, ClassValue) or any(name in _method_names(base) for name in methods):
                return None
        return True
    if isinstance(value, Container) and value.length is not None and value.kind == "tuple":
        return value.length > 0
    return None


def _truth_of_member(member: EnumMember) -> bool | None:
    """A member is true unless it is a number or a text as well, or its class says otherwise."""
    if any("__bool__" in _method_names(base) for base in member.cls.line):
        return None
    if not is_mixed(member.cls):
        return True
    payload = payload_of(member)
    return None if payload is None else bool(payload)


def _method_names(cls: ClassValue) -> set[str]:
    functions = cls.module.facts.functions
    return {functions[s[2]].name for s in cls.facts.body if s[0] == "def"}


def negate(values: Values) -> Values:
    """`not x`."""
    truth, depends = truth_of(values)
    if truth is None:
        return NOTHING
    if truth is Truth.TRUE:
        return just(FALSE)
    if truth is Truth.FALSE:
        return just(TRUE)
    if not depends and all(isinstance(value, Constant) for value in values):
        return BOTH
    return just(Unknown.of(depends)) if depends else ANYTHING


def fold_binary(op: str, left: Values, right: Values) -> Values:
    """A binary operator over constants; unknown where any operand is."""
    if not left or not right:
        return NOTHING
    function = _BINARY.get(op)
    depends = resting_on(left, right)
    unknown: Values = just(Unknown.of(depends)) if depends else ANYTHING
    if function is None or len(left) * len(right) > _MOST_PAIRS:
        return unknown
    if not traits(left).constant or not traits(right).constant:
        return unknown
    found: set[Value] = set()
    for a in left:
        for b in right:
            if not isinstance(a, Constant) or not isinstance(b, Constant):
                return unknown
            if op == "*" and (isinstance(a.value, str) or isinstance(b.value, str)):
                return unknown
            if op == "<<" and isinstance(b.value, int) and b.value > 64:
                return unknown
            if op == "%" and isinstance(a.value, str) and _WIDE.search(a.value):
                return unknown
            try:
                result = function(a.value, b.value)
            except (TypeError, ValueError, ArithmeticError):
                continue
            if not isinstance(result, (str, int, float, bool)) or (
                isinstance(result, str) and len(result) > _LONGEST_TEXT
            ):
                return unknown
            if isinstance(result, int) and abs(result) > _LARGEST_INTEGER:
                return unknown
            found.add(Constant.of(result, _origins(a, b)))
    return frozenset(found)


def _origins(a: Constant, b: Constant) -> tuple[str, ...]:
    if not a.origin and not b.origin:
        return ()
    return tuple(sorted({*a.origin, *b.origin}))


def compare(op: str, left: Values, right: Values) -> Values:
    """A comparison other than membership."""
    if not left or not right:
        return NOTHING
    depends = resting_on(left, right)
    unknown: Values = just(Unknown.of(depends)) if depends else ANYTHING
    if len(left) * len(right) > _MOST_PAIRS or traits(left).unknown or traits(right).unknown:
        return unknown
    found: set[Value] = set()
    for a in left:
        for b in right:
            result = _compare_one(op, a, b)
            if result is None:
                return unknown
            origin = _origins(a, b) if isinstance(a, Constant) and isinstance(b, Constant) else ()
            found.add(Constant.of(result, origin))
    return frozenset(found)


_IDENTITIES = (EnumMember, ClassValue, FunctionValue, ModuleValue)
_OBJECTS = (*_IDENTITIES, Instance, Configured, Foreign, Container, Bound)


def _compare_one(op: str, a: Value, b: Value) -> bool | None:
    equality = op in ("==", "!=", "is", "is not")
    positive = op in ("==", "is")
    if isinstance(a, Constant) and isinstance(b, Constant):
        if op in ("is", "is not"):
            same = type(a.value) is type(b.value) and a.value == b.value
            return same == positive
        try:
            return bool(_COMPARE[op](a.value, b.value))
        except TypeError:
            return None
    if not equality:
        return _in_order(op, a, b)
    if isinstance(a, _IDENTITIES) and isinstance(b, _IDENTITIES):
        return (a is b) == positive
    if op in ("is", "is not") and is_named(a) and is_named(b):
        return (a is b) == positive
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, Constant):
            continue
        if one.value is None:  # None is no object
            return not positive if isinstance(other, _OBJECTS) else None
        if isinstance(other, EnumMember):
            if op in ("is", "is not") or not is_mixed(other.cls):
                return not positive
            payload = payload_of(other)
            return None if payload is None else (payload == one.value) == positive
    return None


_ORDERS = {"<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}


def _in_order(op: str, a: Value, b: Value) -> bool | None:
    """`a < b` and the like where a side is a member of an enumeration that is ordered by its members' values."""
    sides: list[Any] = []
    for value in (a, b):
        if isinstance(value, EnumMember) and op in _ORDERS and _ordered_by_value(value.cls, op):
            sides.append(payload_of(value))
        elif isinstance(value, Constant) and any(isinstance(v, EnumMember) and is_mixed(v.cls) for v in (a, b)):
            sides.append(value.value)
        else:
            return None
    if None in sides:
        return None
    try:
        return bool(_COMPARE[op](*sides))
    except TypeError:
        return None


def _ordered_by_value(cls: ClassValue, op: str) -> bool:
    """Whether members compare as their values: they are numbers or texts, or the class says so in one line."""
    name = _ORDERS[op]
    for base in cls.line:
        for statement in base.facts.body:
            if statement[0] == "def" and base.module.facts.functions[statement[2]].name == name:
                return _compares_values(base, statement[2], op)
    return is_mixed(cls)


def _compares_values(cls: ClassValue, index: int, op: str) -> bool:
    body = cls.module.function_body(index)
    if len(body) != 1 or body[0][0] != "return" or body[0][2] is None:
        return False
    values = [f"{parameter.name}.value" for parameter in cls.module.facts.functions[index].parameters]
    return render(body[0][2]) == f" {op} ".join(values)


_FLAGS = {"enum.Flag", "enum.IntFlag"}
_MIXINS = ("enum.IntEnum", "enum.StrEnum", "enum.IntFlag", "str", "int")


def is_mixed(cls: ClassValue) -> bool:
    """Whether members of an enumeration are also strings or integers."""
    return any(isinstance(base, External) and base.path in _MIXINS for base in cls.mro)


def payload_of(member: EnumMember) -> str | int | float | bool | None:
    """The value of an enumeration's member, where its class body gives a literal or `auto()`; None where that is not known."""
    bases = {base.path for base in member.cls.mro if isinstance(base, External)}
    own_way = any("_generate_next_value_" in _method_names(base) for base in member.cls.line)
    last: Any = 0
    highest: Any = 0
    for statement in member.cls.facts.body:
        if statement[0] != "=" or statement[2][0][0] != "n":
            continue
        name, value = statement[2][0][1], statement[3]
        if value[0] == "v":
            last = value[1]
        elif value[0] != "c" or value[1][-1 if value[1][0] == "n" else 2] != "auto" or own_way:
            last = None
        elif "enum.StrEnum" in bases:
            last = name.lower()
        elif not isinstance(last, int) or last != highest:
            last = None  # behind a lower value than one before, it hangs on Python's version
        else:
            last = 1 << last.bit_length() if bases & _FLAGS else last + 1
        highest = max(highest, last) if isinstance(last, int) and isinstance(highest, int) else None
        if name == member.name:
            return last  # type: ignore[no-any-return]
    return None
