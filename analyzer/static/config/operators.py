"""Operators over values that may be several: truth, comparison, arithmetic."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, same, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, Instance
from sgl_graph.analyzer.static.config.runs import holds_something, may_hold_something
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Deps,
    DictV,
    External,
    Fuzzy,
    Generic,
    IteratorV,
    ListV,
    SetV,
    Value,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.operations import Operations

_MAX_COMBINATIONS = 64
_PLAIN = (str, int, float, bool, type(None), bytes, range, complex)
_LONGEST = 100_000
Verdict = tuple[bool | None, Deps]


class Inexact(Exception):
    """A value is not a single plain Python value."""


def to_python(value: Value) -> Any:
    """A plain Python value.

    Raises:
        Inexact: there is none.
    """
    value = single(value)
    kind = type(value)
    if kind in _PLAIN or kind is slice:
        return value
    if kind is tuple:
        return tuple(to_python(item) for item in value)
    if kind is frozenset:
        return value
    if kind is ListV and value.exact:
        return [to_python(item) for item in value.items]
    if kind is DictV and value.opaque is None:
        return {to_python(key): to_python(item) for key, item in value.items.items()}
    if kind is SetV and value.opaque is None:
        if any(type(item) is Fuzzy and ABSENT in item.options for item in value.items.values()):
            raise Inexact
        return {to_python(item) for item in value.items}
    if kind is Instance and isinstance(value.payload, (str, int)) and is_mixed(value):
        return value.payload
    if kind is IteratorV:
        return [to_python(item) for item in value.items[value.position :]]
    raise Inexact


def to_python_or(value: Value, fallback: Any) -> Any:
    """A plain Python value, or something else where there is none."""
    try:
        return to_python(value)
    except Inexact:
        return fallback


def from_python(value: Any) -> Value:
    """The value of a plain Python object."""
    kind = type(value)
    if kind is list:
        return ListV([from_python(item) for item in value])
    if kind is dict:
        return DictV({key: from_python(item) for key, item in value.items()})
    if kind is set:
        return SetV(dict.fromkeys(value, True))
    if kind is tuple:
        return tuple(from_python(item) for item in value)
    return value


def inner_deps(value: Value) -> Deps:
    """What a value and the elements of a container rest on."""
    deps = deps_of(value)
    plain = single(value)
    if type(plain) is ListV:
        for item in plain.items:
            deps |= deps_of(item)
    elif type(plain) in (DictV, SetV):
        for item in plain.items.values():
            deps |= deps_of(item)
    return deps


# -- truth


def simple_truth(value: Value) -> Verdict:
    """Truth of a value made of booleans."""
    options, open_ = options_of(value)
    if open_ or not options:
        return None, deps_of(value)
    found = {bool(option) for option in options}
    return (found.pop() if len(found) == 1 else None), deps_of(value)


def truth(machine: Operations, value: Value) -> Verdict:
    """Three-valued truth of any value."""
    if type(value) is not Fuzzy:
        if type(value) in _PLAIN:
            return bool(value), NO_DEPS
        return _truth_of(machine, value)
    deps = value.deps
    if value.open or not value.options:
        return None, deps
    found: set[bool | None] = set()
    for option in value.options:
        verdict, more = _truth_of(machine, option)
        found.add(verdict)
        deps |= more
    return (found.pop() if len(found) == 1 else None), deps


def _truth_of(machine: Operations, value: Value) -> Verdict:
    kind = type(value)
    if kind in _PLAIN or kind is tuple or kind is frozenset:
        return bool(value), NO_DEPS
    if kind is ListV:
        if value.opaque is not None:
            return None, value.opaque
        if holds_something(value.items):
            return True, NO_DEPS
        deps: Deps = NO_DEPS
        for item in value.items:
            deps |= item.deps  # whatever is not certain to be there rests on something
        return (None if may_hold_something(value.items) else False), deps
    if kind is DictV or kind is SetV:
        certain = any(not (type(item) is Fuzzy and ABSENT in item.options) for item in value.items.values())
        if certain:
            return True, NO_DEPS
        if value.opaque is not None:
            return None, value.opaque
        if value.items:
            return None, frozenset().union(*(deps_of(item) for item in value.items.values()))
        return False, NO_DEPS
    if kind is Instance:
        return machine.truth_of_object(value)
    if kind is External and value.path.rsplit(".", 1)[-1].isupper():
        return None, frozenset({f"package:{value.path.split('.')[0]}"})
    return True, NO_DEPS


def restricted(machine: Operations, value: Value, wanted: bool) -> Value:
    """The possibilities of a value that are truthy (or falsy)."""
    options, open_ = options_of(value)
    kept = [option for option in options if _truth_of(machine, option)[0] is not (not wanted)]
    return fuzzy(kept, open_, deps_of(value))


# -- comparison


def compare(machine: Operations, op: str, left: Value, right: Value) -> Verdict:
    """Three-valued comparison."""
    deps = deps_of(left) | deps_of(right)
    ours, open_left = options_of(left)
    theirs, open_right = options_of(right)
    if len(ours) * len(theirs) > _MAX_COMBINATIONS:
        return None, deps
    found: set[bool | None] = set()
    if (open_left or open_right) and not (op in ("is", "is not") and (_sentinel(left) or _sentinel(right))):
        found.add(None)
    elif open_left or open_right:
        found.add(op == "is not")  # what is unknown comes from outside: it is never an object made here for comparison
    for a, b in itertools.product(ours, theirs):
        verdict, more = _compare_single(machine, op, a, b)
        deps |= more
        found.add(verdict)
        if len(found) > 1:
            return None, deps
    if not found:
        return None, deps
    return found.pop(), deps


_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _sentinel(value: Value) -> bool:
    plain = single(value)
    return type(plain) is Instance and plain.cls == External("builtins.object")


def _compare_single(machine: Operations, op: str, a: Value, b: Value) -> Verdict:
    if op == "is" or op == "is not":
        verdict, deps = _identical(a, b), NO_DEPS
        return (None if verdict is None else verdict is (op == "is")), deps
    if op == "==" or op == "!=":
        verdict, deps = equal(machine, a, b)
        return (None if verdict is None else verdict is (op == "==")), deps
    if op == "in" or op == "not in":
        verdict, deps = contains(machine, b, a)
        return (None if verdict is None else verdict is (op == "in")), deps
    try:
        return bool(_ORDER[op](to_python(a), to_python(b))), inner_deps(a) | inner_deps(b)
    except (Inexact, KeyError):
        return None, inner_deps(a) | inner_deps(b)
    except TypeError:
        raise machine.fail("TypeError", f"{op} between {type(a).__name__} and {type(b).__name__}") from None


def _identical(a: Value, b: Value) -> bool | None:
    if a is b:
        return True
    if type(a) is External and type(b) is External:
        return a.path == b.path
    if type(a) is Bound and type(b) is Bound:
        return same(a, b)
    plain = (bool, type(None))
    if type(a) in plain or type(b) in plain:
        return type(a) is type(b) and bool(a == b)
    if type(a) is type(b) and type(a) in _PLAIN:
        return bool(a == b)
    return False


def equal(machine: Operations, a: Value, b: Value) -> Verdict:
    """Three-valued equality of two single values."""
    if a is b:
        return True, NO_DEPS
    ka, kb = type(a), type(b)
    if ka in _PLAIN and kb in _PLAIN:
        return bool(a == b), NO_DEPS
    if (ka is tuple and kb is tuple) or (ka is ListV and kb is ListV):
        return _equal_sequences(machine, a, b)
    if ka is Instance or kb is Instance:
        return machine.equal_objects(a, b)
    if ka is External and kb is External:
        return a.path == b.path, NO_DEPS
    if ka is External or kb is External:
        other = b if ka is External else a
        named = a if ka is External else b
        # A module constant outside the checkout may be any string or number; a class or module equals none.
        last = named.path.rsplit(".", 1)[-1]
        if type(other) in (str, int, float) and (last.isupper() or last.startswith("__")):
            return None, frozenset({f"package:{named.path.split('.')[0]}"})
        return False, NO_DEPS
    if ka in (DictV, SetV) and kb in (DictV, SetV, frozenset):
        try:
            return bool(to_python(a) == to_python(b)), inner_deps(a) | inner_deps(b)
        except Inexact:
            return None, inner_deps(a) | inner_deps(b)
        except TypeError:
            return None, NO_DEPS
    if ka is Generic and kb is Generic:
        return (True if same(a.origin, b.origin) and a.arguments == b.arguments else None), NO_DEPS
    return False, NO_DEPS


def _equal_sequences(machine: Operations, a: Value, b: Value) -> Verdict:
    deps = NO_DEPS
    if type(a) is ListV:
        if not a.exact or not b.exact:
            return None, (a.opaque or NO_DEPS) | (b.opaque or NO_DEPS)
        a, b = a.items, b.items
    if len(a) != len(b):
        return False, deps
    result: bool | None = True
    for x, y in zip(a, b, strict=True):
        verdict, more = compare(machine, "==", x, y)
        deps |= more
        if verdict is False:
            return False, deps
        if verdict is None:
            result = None
    return result, deps


def contains(machine: Operations, container: Value, item: Value) -> Verdict:
    """Three-valued membership of a single value in a single container."""
    kind = type(container)
    if kind is str:
        if type(item) is str:
            return item in container, NO_DEPS
        try:
            return to_python(item) in container, NO_DEPS
        except (Inexact, TypeError):
            return None, deps_of(item)
    if kind is DictV or kind is SetV:
        return _has_key(container, item)
    if kind is range or kind is frozenset:
        try:
            return to_python(item) in container, NO_DEPS
        except (Inexact, TypeError):
            return None, NO_DEPS
    items = machine.runs(container) if kind is not IteratorV else list(container.items)
    if items is None:
        if kind is Instance:
            return machine.contains_object(container, item)
        return None, getattr(container, "opaque", None) or NO_DEPS
    result: bool | None = False
    deps = NO_DEPS
    for element in items:
        verdict, more = compare(machine, "==", element, item)
        deps |= more
        if type(element) is Fuzzy and ABSENT in element.options:
            verdict = None if verdict is not False else False
        if verdict is True:
            return True, deps
        if verdict is None:
            result = None
    return result, deps


def _has_key(container: Value, item: Value) -> Verdict:
    key = hashable(item)
    if key is ABSENT:
        return None, inner_deps(item)
    if key in container.items:
        value = container.items[key]
        if type(value) is Fuzzy and ABSENT in value.options:
            return None, value.deps
        return True, NO_DEPS
    if container.opaque is not None:
        return None, container.opaque
    return False, NO_DEPS


def hashable(value: Value) -> Any:
    """The dictionary key of a value, ABSENT when it is not a single one."""
    plain = single(value)
    if type(plain) is Instance and isinstance(plain.payload, (str, int)):
        return plain.payload if is_mixed(plain) else plain
    if type(plain) in (ListV, DictV, SetV):
        return ABSENT
    return plain


def is_mixed(member: Instance) -> bool:
    """Whether an enum member hashes like its value (string and integer enums)."""
    return bool(member.attrs.get("_mixed_", False))


# -- arithmetic


_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift, "&": operator.and_,
    "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def lift(machine: Operations, work: Callable[..., Value], *values: Value) -> Value:
    """Apply a function of single values to every combination of possibilities."""
    if not any(type(value) is Fuzzy for value in values):
        return work(*values)
    deps: Deps = frozenset().union(*(deps_of(value) for value in values))
    columns = []
    open_ = False
    size = 1
    for value in values:
        options, more = options_of(value)
        options = tuple(option for option in options if option is not ABSENT)
        open_ = open_ or more
        size *= len(options)
        columns.append(options)
    if size > _MAX_COMBINATIONS:
        return unknown(deps, machine.place())
    return fuzzy(_each(machine, work, columns, open_), open_, deps, machine.place())


def _each(
    machine: Operations, work: Callable[..., Value], columns: list[tuple[Value, ...]], open_: bool
) -> list[Value]:
    """Results for the combinations that have one: where nothing would catch it, an error of the others ends the launch."""
    results: list[Value] = []
    failed: Raised | None = None
    for combination in itertools.product(*columns):
        try:
            results.append(work(*combination))
        except Raised as raised:
            if raised.explicit or machine.try_depth:
                raise
            failed = raised
    if failed is not None and not results and not open_:
        raise failed
    return results


def binary(machine: Operations, op: str, left: Value, right: Value) -> Value:
    """A binary operation."""
    if type(left) in (int, float) and type(right) in (int, float) and op in "+-*":
        return _BINARY[op](left, right)
    return lift(machine, lambda a, b: _binary_single(machine, op, a, b), left, right)


def _binary_single(machine: Operations, op: str, a: Value, b: Value) -> Value:
    ka, kb = type(a), type(b)
    if op == "+" and ka is ListV and kb is ListV:
        opaque = a.opaque if a.opaque is not None else b.opaque
        return ListV([*a.items, *b.items], opaque)
    if op == "+" and ka is tuple and kb is tuple:
        return a + b
    if op == "*" and ka is ListV and kb is int and len(a.items) * b < _LONGEST:
        return ListV(a.items * b, a.opaque)
    if op in "|-&^" and ka in (SetV, DictV) and kb in (SetV, DictV):
        return _combine(machine, op, a, b)
    if op == "|" and (ka in (ClassV, External, Generic) or kb in (ClassV, External, Generic)):
        return Generic(External("types.UnionType"), (*_parts(a), *_parts(b)))
    if op == "/" and ka is Instance:
        found = machine.call_method(a, "__truediv__", [b])
        return unknown(["source"]) if found is ABSENT else found
    if ka is Instance or kb is Instance:
        found = machine.binary_objects(op, a, b)
        if found is not ABSENT:
            return found
    if op == "%" and ka is str:
        try:
            return a % to_python(b)
        except (Inexact, TypeError, ValueError):
            return unknown(inner_deps(b))
    try:
        x, y = to_python(a), to_python(b)
        if op == "*" and ((isinstance(x, str) and y > _LONGEST) or (isinstance(y, str) and x > _LONGEST)):
            return unknown()
        if op in ("**", "<<") and (abs(y) > 4096 or abs(x) > 1 << 64):
            return unknown()
        return from_python(_BINARY[op](x, y))
    except Inexact:
        return unknown(inner_deps(a) | inner_deps(b), machine.place())
    except ZeroDivisionError:
        raise machine.fail("ZeroDivisionError", "division by zero") from None
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise machine.fail("TypeError", str(error)) from None


def _parts(value: Value) -> tuple[Value, ...]:
    if type(value) is Generic and value.origin == External("types.UnionType"):
        return value.arguments
    return (External("builtins.NoneType"),) if value is None else (value,)


def _combine(machine: Operations, op: str, a: Value, b: Value) -> Value:
    opaque = a.opaque if a.opaque is not None else b.opaque
    if op == "|":
        result = DictV(dict(a.items), opaque) if type(a) is DictV else SetV(dict(a.items), opaque)
        for key, item in b.items.items():
            result.items[key] = item
        return result
    if opaque is not None:
        return SetV({}, opaque)
    kept = {}
    for key, item in a.items.items():
        verdict, deps = _has_key(b, key)
        keep = verdict if op == "&" else (None if verdict is None else not verdict)
        if keep is not False:
            kept[key] = item if keep else fuzzy((item, ABSENT), False, deps)
    if op == "^":
        kept.update({key: item for key, item in b.items.items() if key not in a.items})
    return SetV(kept)


def unary(machine: Operations, op: str, value: Value) -> Value:
    """A unary operation other than `not`."""

    def work(single_value: Value) -> Value:
        try:
            plain = to_python(single_value)
            return -plain if op == "-" else +plain if op == "+" else ~plain
        except (Inexact, TypeError):
            return unknown(deps_of(value), machine.place())

    return lift(machine, work, value)


def concatenate(parts: Sequence[Value]) -> Value:
    """The text of an f-string; unknown where a part has no single plain value."""
    deps: Deps = frozenset().union(*(deps_of(part) for part in parts)) if parts else NO_DEPS
    texts = []
    for part in parts:
        plain = single(part)
        if type(plain) is Instance and isinstance(plain.payload, (str, int)):
            plain = str(plain.payload) if is_mixed(plain) else ABSENT
        if type(plain) not in (str, int, float, bool, type(None)):
            return unknown(deps)
        texts.append(str(plain))
    return taint("".join(texts), deps)
