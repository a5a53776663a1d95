"""Subscripts, and writes into containers that may be several or only partly known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.operators import lift
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.program import ClassV, FunctionV, Instance, ModuleV
from sgl_graph.analyzer.static.config.python_values import hashable, inner_deps
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    DictV,
    External,
    Fuzzy,
    Generic,
    ListV,
    Native,
    SetV,
    Value,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.operations import Operations


def subscript(machine: Operations, value: Value, index: Value) -> Value:
    """`value[index]`."""
    return lift(machine, lambda v, i: _subscript_single(machine, v, i), value, index)


def _subscript_single(machine: Operations, value: Value, index: Value) -> Value:
    kind = type(value)
    if kind is DictV:
        return _dict_item(machine, value, index)
    if kind is ListV:
        if not value.exact:
            return unknown(value.opaque or NO_DEPS, machine.place())
        if type(index) is slice:
            return ListV(value.items[index])
        sequence: Any = value.items
    else:
        sequence = value
    if kind in (ListV, tuple, str, bytes, range):
        plain = single(index)
        if plain is ABSENT:
            return unknown(deps_of(index), machine.place())
        try:
            return sequence[plain]
        except IndexError:
            raise machine.fail("IndexError", "index out of range") from None
        except TypeError as error:
            raise machine.fail("TypeError", str(error)) from None
    if kind is External or kind is ClassV or kind is Generic:
        return machine.subscript_type(value, index)
    if kind is Instance:
        return machine.subscript_object(value, index)
    if kind in (FunctionV, Native, ModuleV):
        return unknown(["source"], machine.place())
    raise machine.fail("TypeError", "not subscriptable")


def _dict_item(machine: Operations, value: DictV, index: Value) -> Value:
    key = hashable(index)
    if key is ABSENT:
        rest = [item for item in value.items.values() if item is not ABSENT]
        return fuzzy(rest, value.opaque is not None or not rest, inner_deps(value) | deps_of(index), machine.place())
    found = value.items.get(key, ABSENT)
    if found is ABSENT:
        if value.opaque is not None:
            return unknown(value.opaque, machine.place())
        if value.factory is not None:
            made = machine.call(value.factory, [], {})
            machine.touch(value)
            value.items[key] = made
            return made
        raise machine.fail("KeyError", str(key))
    if type(found) is Fuzzy and ABSENT in found.options:
        return fuzzy([o for o in found.options if o is not ABSENT], found.open, found.deps, found.place)
    return found


def store_item(machine: Operations, container: Value, index: Value, value: Value) -> None:
    """`container[index] = value` for a single container."""
    if machine.control:
        value = taint(value, machine.control, machine.place())
    if type(container) is DictV:
        key = hashable(index)
        machine.touch(container)
        if key is ABSENT:
            container.opaque = (container.opaque or NO_DEPS) | inner_deps(index) | deps_of(value)
        else:
            container.items[key] = value
            machine.keep(key)
    elif type(container) is ListV:
        machine.touch(container)
        plain = single(index)
        if plain is ABSENT or not container.exact:
            container.items, container.opaque = [], inner_deps(index)
        elif type(plain) is slice:
            replaced = machine.elements(value)
            if replaced is None:
                container.items, container.opaque = [], deps_of(value)
            else:
                container.items[plain] = replaced
        else:
            try:
                container.items[plain] = value
            except (IndexError, TypeError):
                raise machine.fail("IndexError", "assignment out of range") from None


def add_member(machine: Operations, container: SetV, value: Value) -> None:
    """`container.add(value)`."""
    key = hashable(value)
    machine.touch(container)
    if key is ABSENT:
        options, open_ = options_of(value)
        if open_ or any(type(option) in (ListV, DictV, SetV, tuple) for option in options):
            container.opaque = (container.opaque or NO_DEPS) | inner_deps(value)
        else:
            for option in options:
                container.items.setdefault(option, fuzzy((True, ABSENT), False, deps_of(value)))
        return
    deps = machine.control | deps_of(value)
    if key not in container.items or container.items[key] is not True:
        container.items[key] = taint(True, deps) if deps else True


def update(machine: Operations, container: DictV, other: Value) -> None:
    """`container.update(other)`."""
    options, open_ = options_of(other)
    machine.touch(container)
    deps = deps_of(other)
    if open_ or not all(type(option) is DictV for option in options):
        container.opaque = (container.opaque or NO_DEPS) | deps
        return
    names = dict.fromkeys(name for option in options for name in option.items)
    for name in names:
        before = container.items.get(name, ABSENT)
        found: list[Value] = []
        for option in options:
            item = option.items.get(name, ABSENT)
            if type(item) is Fuzzy and ABSENT in item.options:
                rest = [o for o in item.options if o is not ABSENT]
                item = fuzzy([*rest, before], item.open, item.deps)
            found.append(before if item is ABSENT else item)
        merged = found[0] if len(found) == 1 else fuzzy(found, False, deps)
        container.items[name] = taint(merged, deps | machine.control, machine.place())
    for option in options:
        if option.opaque is not None:
            container.opaque = (container.opaque or NO_DEPS) | option.opaque
