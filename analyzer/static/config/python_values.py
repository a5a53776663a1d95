"""Plain Python values of values, values of plain Python values, and the keys under which values are kept."""

from __future__ import annotations

from typing import Any

from sgl_graph.analyzer.static.config.possibilities import deps_of, single
from sgl_graph.analyzer.static.config.program import Instance
from sgl_graph.analyzer.static.config.values import ABSENT, Deps, DictV, Fuzzy, IteratorV, ListV, SetV, Value

PLAIN = (str, int, float, bool, type(None), bytes, range, complex)


class Inexact(Exception):
    """A value is not a single plain Python value."""


def to_python(value: Value) -> Any:
    """A plain Python value.

    Raises:
        Inexact: there is none.
    """
    value = single(value)
    kind = type(value)
    if kind in PLAIN or kind is slice:
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
