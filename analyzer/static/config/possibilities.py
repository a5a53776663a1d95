"""Values that may be several: made, joined and merged, and what they may be and rest on."""

from __future__ import annotations

from collections.abc import Iterable

from sgl_graph.analyzer.static.config.program import Bound, ClassV, Instance
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Alternatives,
    Deps,
    DictV,
    External,
    Fuzzy,
    ListV,
    Value,
)

#: More possibilities than this are no longer told apart.
MAX_OPTIONS = 12
#: More objects of one record class than this are merged into one whose fields hold the possibilities.
MAX_RECORDS = 4
#: Nor are more lists than possibilities, as long as they hold no more different elements than this.
MAX_MEMBERS = 100
#: More combinations of possibilities than this are not gone through.
MAX_COMBINATIONS = 64
_ATOMS = (str, int, float, bool, type(None), bytes)


def unknown(deps: Iterable[str] = (), place: Place | None = None) -> Fuzzy:
    """A value of which nothing is known."""
    return Fuzzy((), True, frozenset(deps), place)


def same(a: Value, b: Value) -> bool:
    """Whether two values are the same possibility: one object, or equal constants of one type."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in _ATOMS or kind is External:
        return bool(a == b)
    if kind is tuple:
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if kind is Fuzzy:
        return (
            a.open == b.open
            and a.deps == b.deps
            and len(a.options) == len(b.options)
            and all(same(x, y) for x, y in zip(a.options, b.options, strict=True))
        )
    if kind is Bound:
        return same(a.function, b.function) and same(a.receiver, b.receiver)
    return False


def fuzzy(options: Iterable[Value], open_: bool, deps: Deps, place: Place | None = None) -> Value:
    """Normalise possibilities: flat, without doubles, few; a single one that rests on nothing is itself."""
    flat: list[Value] = []
    for option in options:
        parts: tuple[Value, ...]
        if type(option) is Fuzzy:
            parts = option.options
            open_ = open_ or option.open
            deps |= option.deps
            place = place or option.place
        else:
            parts = (option,)
        for part in parts:
            if not any(same(part, known) for known in flat):
                flat.append(part)
    if len(flat) > MAX_RECORDS:
        flat = _merge_records(flat)
    if len(flat) > MAX_OPTIONS:
        flat = _merge_tables(_merge_lists(flat))
    if len(flat) > MAX_OPTIONS:
        flat, open_ = [], True
    if len(flat) == 1 and not open_ and not deps:
        return flat[0]
    return Fuzzy(tuple(flat), open_, deps, place)


def taint(value: Value, deps: Deps, place: Place | None = None) -> Value:
    """The value, resting on more facts."""
    if not deps:
        return value
    if type(value) is Fuzzy:
        if deps <= value.deps:
            return value
        return Fuzzy(value.options, value.open, value.deps | deps, value.place or place)
    return Fuzzy((value,), False, deps, place)


def join(a: Value, b: Value, deps: Deps = NO_DEPS, place: Place | None = None) -> Value:
    """Either of two values."""
    if same(a, b):
        return a
    return fuzzy((a, b), False, deps, place)


def deps_of(value: Value) -> Deps:
    """What a value rests on, elements of tuples included."""
    if type(value) is Fuzzy:
        return value.deps
    if type(value) is tuple:
        found = NO_DEPS
        for item in value:
            found |= deps_of(item)
        return found
    return NO_DEPS


def single(value: Value) -> Value:
    """The one value that is possible, without its provenance; ABSENT where there is no such one."""
    if type(value) is Fuzzy:
        if value.open or len(value.options) != 1:
            return ABSENT
        value = value.options[0]
    if type(value) is tuple and any(type(item) in (Fuzzy, tuple) for item in value):
        items = tuple(single(item) for item in value)
        return ABSENT if any(item is ABSENT for item in items) else items
    return value


def options_of(value: Value) -> tuple[tuple[Value, ...], bool]:
    """Known possibilities and whether there may be others."""
    if type(value) is Fuzzy:
        return value.options, value.open
    return (value,), False


def is_open(value: Value) -> bool:
    """Whether a value may be something that is not among its options."""
    return type(value) is Fuzzy and value.open


def _merge_records(options: list[Value]) -> list[Value]:
    groups: dict[int, list[Instance]] = {}
    for option in options:
        if type(option) is Instance and type(option.cls) is ClassV and option.cls.kind == "record":
            groups.setdefault(id(option.cls), []).append(option)
    merged: dict[int, Instance] = {}
    for key, group in groups.items():
        if len(group) < 2:
            continue
        names = dict.fromkeys(name for item in group for name in item.attrs)
        attrs = {n: fuzzy((item.attrs.get(n, ABSENT) for item in group), False, NO_DEPS) for n in names}
        opaque = next((item.opaque for item in group if item.opaque is not None), None)
        merged[key] = Instance(group[0].cls, attrs, opaque)
    result: list[Value] = []
    for option in options:
        summary = merged.get(id(option.cls)) if type(option) is Instance else None
        if summary is None:
            result.append(option)
        elif not any(item is summary for item in result):
            result.append(summary)
    return result


def _merge_lists(options: list[Value]) -> list[Value]:
    """Too many lists to tell apart: one that may hold any of their elements, in which each may be missing."""
    lists = [option for option in options if type(option) is ListV]
    if len(lists) < 2 or any(not item.exact for item in lists):
        return options
    members: list[Value] = []
    for item in lists:
        members += [element for element in item.items if not any(same(element, known) for known in members)]
    if len(members) > MAX_MEMBERS:
        return options
    rest = [option for option in options if type(option) is not ListV]
    return [ListV([Alternatives(((element,), ()), NO_DEPS) for element in members]), *rest]


def _merge_tables(options: list[Value]) -> list[Value]:
    """Too many dictionaries to tell apart: one that may hold what any of them holds under each key."""
    tables = [option for option in options if type(option) is DictV]
    if len(tables) < 2 or any(item.opaque is not None or item.factory is not None for item in tables):
        return options
    keys = dict.fromkeys(key for item in tables for key in item.items)
    if len(keys) > MAX_MEMBERS:
        return options
    merged = {key: fuzzy((item.items.get(key, ABSENT) for item in tables), False, NO_DEPS) for key in keys}
    return [DictV(merged), *(option for option in options if type(option) is not DictV)]
