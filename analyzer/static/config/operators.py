"""Arithmetic over values that may be several, and the text of f-strings."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.comparison import has_key
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.possibilities import (
    MAX_COMBINATIONS,
    deps_of,
    fuzzy,
    options_of,
    single,
    taint,
    unknown,
)
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.python_values import Inexact, from_python, inner_deps, is_mixed, to_python
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Deps,
    DictV,
    External,
    Fuzzy,
    Generic,
    ListV,
    SetV,
    Value,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.operations import Operations

_LONGEST = 100_000
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
    if size > MAX_COMBINATIONS:
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
        verdict, deps = has_key(b, key)
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
