"""Process groups as a live server would have them: their sizes follow from the resolved arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.possibilities import single
from sgl_graph.analyzer.static.config.program import FunctionV, Instance
from sgl_graph.analyzer.static.config.values import ABSENT, External, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

GROUP_CLASS = External("process group")


def group_of(machine: Calls, function: FunctionV) -> Value:
    """The group that an accessor gives, or its size; ABSENT when it gives neither, or nothing settles the size."""
    name = profile.SIZE_ACCESSORS.get(function.qualname)
    if name is not None and machine.record is not None:
        size = _size(machine, name)
        return ABSENT if size is None else size
    if function.module.name != profile.GROUP_MODULE or machine.record is None:
        return ABSENT
    name = profile.GROUP_SIZES.get(function.facts.name)
    size = _size(machine, name) if name is not None else None
    if size is None:
        return ABSENT
    return Instance(GROUP_CLASS, {"world_size": size}, frozenset({"server"}))


def _size(machine: Calls, field: str) -> int | None:
    if field != profile.ATTENTION_TP:
        return _number(machine, field)
    ranks, replicas, contexts = (_number(machine, name) for name in profile.ATTENTION_TP_OF)
    apart = single(_result(machine, profile.ATTENTION_DP_FIELD))
    if ranks is None or replicas is None or not isinstance(apart, bool):
        return None
    return ranks // ((replicas if apart else 1) * (contexts or 1)) or None


def _number(machine: Calls, field: str) -> int | None:
    found = single(_result(machine, field))
    return found if type(found) is int else None


def _result(machine: Calls, field: str) -> Value:
    """What resolution decided for an argument so far."""
    from sgl_graph.analyzer.static.config.resolve import lookup

    assert machine.record is not None
    decide = lookup(machine, profile.RESULT_FUNCTION)  # type: ignore[arg-type]
    if decide is not ABSENT:
        return machine.call(decide, [machine.record, field], {})
    return machine.get(machine.record, field)
