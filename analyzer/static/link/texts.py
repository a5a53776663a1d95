"""Texts that reached code passes on: what parameters are given, and what immutable records are made with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import Constant, Instance, Value
from sgl_graph.analyzer.static.link.world import World

Key = TypeVar("Key")
Texts = dict[str, frozenset[str | None]]


def arguments(world: World) -> dict[tuple[str, str], Texts]:
    """Parameters of reached functions that are only ever given texts or None, by class of the receiver and function."""
    values: dict[tuple[str, str], dict[str, set[Value]]] = {}
    for activation in world.activations.values():
        if activation.runs:
            table = values.setdefault((_owner(activation), activation.qualname), {})
            for name, cell in activation.parameters.items():
                table.setdefault(name, set()).update(cell.peek())
    return _only_texts(values)


def records_made() -> dict[tuple[str, str, str], Texts]:
    """Fields of immutable records that are only ever given texts or None: by who makes the records, and their class."""
    values: dict[tuple[str, str, str], dict[str, set[Value]]] = {}
    for instance in Instance.placed():
        maker = instance.place[0] if isinstance(instance.place, tuple) else None
        if isinstance(maker, Activation) and maker.runs and instance.cls.fields:
            table = values.setdefault((_owner(maker), maker.qualname, instance.cls.qualname), {})
            for name, cell in instance.attributes.items():
                table.setdefault(name, set()).update(cell.peek())
    return _only_texts(values)


def _owner(activation: Activation) -> str:
    receiver = activation.receiver
    return receiver.cls.qualname if isinstance(receiver, Instance) else ""


def _only_texts(values: Mapping[Key, Mapping[str, set[Value]]]) -> dict[Key, Texts]:
    found: dict[Key, Texts] = {}
    for key, table in values.items():
        texts: Texts = {}
        for name, items in table.items():
            constants = [
                i.value for i in items if isinstance(i, Constant) and (i.value is None or type(i.value) is str)
            ]
            if items and len(constants) == len(items):
                texts[name] = frozenset(v for v in constants if v is None or isinstance(v, str))
        if texts:
            found[key] = texts
    return found
