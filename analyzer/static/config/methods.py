"""Methods of Python's own values and containers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config import comparison, containers, operators, python_values
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, is_open, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.python_values import Inexact, from_python, inner_deps, to_python
from sgl_graph.analyzer.static.config.runs import turned
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Alternatives,
    DictV,
    Fuzzy,
    IteratorV,
    ListV,
    Native,
    SetV,
    Value,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

_PLAIN_TYPES = (str, int, float, bool, bytes, tuple, range, frozenset, complex)
Method = Callable[["Calls", Any, list[Value], dict[str, Value]], Value]


def method(value: Value, name: str) -> Value:
    """A method (or plain attribute) of a single value that is no object of the checkout; ABSENT when it has none."""
    kind = type(value)
    table = _TABLES.get(kind)
    if table is not None:
        found = table.get(name)
        if found is None:
            return ABSENT
        return Native(name, lambda machine, arguments, keywords: found(machine, value, arguments, keywords))
    if kind in _PLAIN_TYPES and not name.startswith("__"):
        attribute = getattr(value, name, ABSENT)
        if attribute is ABSENT or not callable(attribute):
            return attribute
        return Native(name, lambda machine, arguments, keywords: apply_plain(machine, attribute, arguments, keywords))
    if name == "__class__":
        return unknown()
    return ABSENT


def apply_plain(
    machine: Calls, function: Callable[..., Any], arguments: list[Value], keywords: dict[str, Value]
) -> Value:
    """Call a pure Python function with every combination of plain arguments."""
    names = list(keywords)

    def work(*values: Value) -> Value:
        deps = frozenset().union(*(inner_deps(value) for value in values)) if values else NO_DEPS
        try:
            plain = [to_python(value) for value in values]
        except Inexact:
            return unknown(deps, machine.place())
        count = len(plain) - len(names)
        try:
            result = function(*plain[:count], **dict(zip(names, plain[count:], strict=True)))
        except Exception as error:  # noqa: BLE001 - whatever the function raises, the analysed program meets
            raise machine.fail(type(error).__name__, str(error)) from None
        return taint(from_python(result), deps)

    return operators.lift(machine, work, *arguments, *keywords.values())


# -- lists


def _append(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    if value.opaque is None:
        value.items.append(taint(arguments[0], machine.control, machine.place()))
    return None


def _extend(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    items = machine.runs(arguments[0])
    machine.touch(value)
    if items is None or value.opaque is not None:
        value.items, value.opaque = [], (value.opaque or NO_DEPS) | deps_of(arguments[0])
    else:
        deps = machine.control | deps_of(arguments[0])
        value.items += [taint(item, deps) if deps and type(item) is not Alternatives else item for item in items]
    return None


def _insert(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    position = single(arguments[0])
    if value.exact and type(position) is int:
        value.items.insert(position, taint(arguments[1], machine.control))
    else:
        value.items, value.opaque = [], inner_deps(arguments[1]) | (value.opaque or NO_DEPS)
    return None


def _list_pop(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    position = single(arguments[0]) if arguments else -1
    if not value.exact or type(position) is not int:
        return unknown(value.opaque or NO_DEPS, machine.place())
    machine.touch(value)
    try:
        return value.items.pop(position)
    except IndexError:
        raise machine.fail("IndexError", "pop from empty list") from None


def _list_remove(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    for position, item in enumerate(value.items):
        verdict, _ = comparison.compare(machine, "==", item, arguments[0])
        if verdict:
            del value.items[position]
            return None
        if verdict is None:
            value.items, value.opaque = [], inner_deps(arguments[0])
            return None
    if value.opaque is None:
        raise machine.fail("ValueError", "not in list")
    return None


def sort_values(machine: Calls, items: list[Value], keywords: dict[str, Value]) -> list[Value] | None:
    """Sorted elements; None where their order is not known."""
    key = keywords.get("key")
    reverse = comparison.truth(machine, keywords.get("reverse", False))[0]
    try:
        keys = [to_python(machine.call(key, [item], {}) if key is not None else item) for item in items]
        order = sorted(range(len(items)), key=lambda position: keys[position], reverse=bool(reverse))
    except (Inexact, TypeError):
        return None
    return [items[position] for position in order]


def _sort(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    ordered = sort_values(machine, value.items, keywords) if value.exact else None
    if ordered is None:
        value.items, value.opaque = [], inner_deps(value)
    else:
        value.items = ordered
    return None


def _reverse(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    value.items = turned(value.items)
    return None


def _clear(machine: Calls, value: Any, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    value.items.clear()
    value.opaque = None
    return None


def _list_copy(machine: Calls, value: ListV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return ListV(list(value.items), value.opaque)


def _through_python(name: str) -> Method:
    def call(machine: Calls, value: Any, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        def run(receiver: Any, *rest: Any) -> Any:
            return getattr(receiver, name)(*rest)

        return apply_plain(machine, run, [value, *arguments], keywords)

    return call


# -- dictionaries


def _get(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    default = arguments[1] if len(arguments) > 1 else keywords.get("default")

    def work(index: Value) -> Value:
        key = python_values.hashable(index)
        if key is ABSENT:
            return fuzzy([*value.items.values(), default], value.opaque is not None, inner_deps(index))
        found = value.items.get(key, ABSENT)
        if found is ABSENT:
            return default if value.opaque is None else unknown(value.opaque, machine.place())
        if type(found) is Fuzzy and ABSENT in found.options:
            rest = [option for option in found.options if option is not ABSENT]
            return fuzzy([*rest, default], found.open, found.deps, found.place)
        return found

    if is_open(arguments[0]):
        present = [option for item in value.items.values() for option in options_of(item)[0] if option is not ABSENT]
        unsettled = value.opaque is not None or any(map(is_open, value.items.values()))
        return fuzzy([*present, default], unsettled, deps_of(arguments[0]), machine.place())
    return operators.lift(machine, work, arguments[0])


def _keys(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    items = machine.runs(value)
    return ListV([], value.opaque) if items is None else ListV(items)


def _values(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return ListV([] if value.opaque is not None else list(value.items.values()), value.opaque)


def _items(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    if value.opaque is not None:
        return ListV([], value.opaque)
    pairs: list[Value] = []
    for key, item in value.items.items():
        if type(item) is Fuzzy and ABSENT in item.options:
            rest = fuzzy([o for o in item.options if o is not ABSENT], item.open, item.deps)
            pairs.append(fuzzy([(key, rest), ABSENT], False, item.deps))
        else:
            pairs.append((key, item))
    return ListV(pairs)


def _update(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    for argument in arguments:
        plain = single(argument)
        if type(plain) is DictV or type(argument) is Fuzzy:
            containers.update(machine, value, argument)
            continue
        pairs = machine.elements(argument)
        machine.touch(value)
        if pairs is None:
            value.opaque = (value.opaque or NO_DEPS) | deps_of(argument)
            continue
        for pair in pairs:
            parts = machine.elements(pair)
            if parts is not None and len(parts) == 2:
                containers.store_item(machine, value, parts[0], parts[1])
    for name, item in keywords.items():
        containers.store_item(machine, value, name, item)
    return None


def _dict_pop(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    found = _get(machine, value, arguments, keywords)
    key = python_values.hashable(arguments[0])
    if key is not ABSENT and len(arguments) == 1 and key not in value.items and value.opaque is None:
        raise machine.fail("KeyError", str(key))
    machine.touch(value)
    if key is not ABSENT:
        value.items.pop(key, None)
    return found


def _setdefault(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    default = arguments[1] if len(arguments) > 1 else None
    key = python_values.hashable(arguments[0])
    if key is ABSENT or (key not in value.items and value.opaque is not None):
        return fuzzy([*value.items.values(), default], True, inner_deps(arguments[0]))
    if key not in value.items:
        containers.store_item(machine, value, arguments[0], default)
    return value.items[key]


def _dict_copy(machine: Calls, value: DictV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return DictV(dict(value.items), value.opaque, value.factory)


# -- sets


def _add(machine: Calls, value: SetV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    containers.add_member(machine, value, arguments[0])
    return None


def _discard(machine: Calls, value: SetV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    key = python_values.hashable(arguments[0])
    if key is ABSENT:
        value.items, value.opaque = {}, inner_deps(arguments[0])
    else:
        value.items.pop(key, None)
    return None


def _set_update(machine: Calls, value: SetV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    machine.touch(value)
    for argument in arguments:
        items = machine.elements(argument)
        if items is None:
            value.opaque = (value.opaque or NO_DEPS) | deps_of(argument)
            continue
        for item in items:
            containers.add_member(machine, value, item)
    return None


def _union(machine: Calls, value: SetV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    result = SetV(dict(value.items), value.opaque)
    _set_update(machine, result, arguments, {})
    return result


def _set_binary(op: str) -> Method:
    def call(machine: Calls, value: SetV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        result: Value = value
        for argument in arguments:
            other = SetV({})
            _set_update(machine, other, [argument], {})
            result = operators.binary(machine, op, result, other)
        return result

    return call


def _set_copy(machine: Calls, value: SetV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return SetV(dict(value.items), value.opaque)


def _next(machine: Calls, value: IteratorV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    if value.position < len(value.items):
        machine.touch(value)
        value.position += 1
        return value.items[value.position - 1]
    raise machine.fail("StopIteration")


_TABLES: dict[type, dict[str, Method]] = {
    ListV: {
        "append": _append, "extend": _extend, "insert": _insert, "pop": _list_pop, "remove": _list_remove, "sort": _sort,
        "reverse": _reverse, "clear": _clear, "copy": _list_copy, "index": _through_python("index"),
        "count": _through_python("count"), "appendleft": lambda m, v, a, k: _insert(m, v, [0, a[0]], k),
    },
    DictV: {
        "get": _get, "keys": _keys, "values": _values, "items": _items, "update": _update, "pop": _dict_pop,
        "setdefault": _setdefault, "copy": _dict_copy, "clear": _clear,
    },
    SetV: {
        "add": _add, "discard": _discard, "remove": _discard, "update": _set_update, "union": _union, "copy": _set_copy,
        "intersection": _set_binary("&"), "difference": _set_binary("-"), "clear": _clear,
        "symmetric_difference": _set_binary("^"), "issubset": _through_python("issubset"),
        "issuperset": _through_python("issuperset"), "isdisjoint": _through_python("isdisjoint"),
    },
    IteratorV: {"__next__": _next},
}  # fmt: skip
