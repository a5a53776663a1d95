"""Rehearsals: a call of the checkout evaluated with what a path is known to pass, to see whether it can only raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.evaluator import Evaluator
from sgl_graph.analyzer.static.config.exceptions import describe
from sgl_graph.analyzer.static.config.journal import Level, Raised
from sgl_graph.analyzer.static.config.machine import Unsupported
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.resolve import lookup
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    ClassV,
    Deps,
    External,
    Instance,
    Native,
    Value,
    unknown,
)

_SERVER: Deps = frozenset({"server"})
_STEPS = 60_000
#: An assertion rests on values that a rehearsal may not have as the server has them.
_DOUBTFUL = "builtins.AssertionError"


@dataclass(frozen=True, slots=True)
class Failure:
    """The exception in which a call ends on every way through it, and the statement that raises it."""

    text: str
    place: Place


class Stage:
    """What a rehearsal passes: objects of the checkout of which only the class is known, and unknown values."""

    def __init__(self, machine: Evaluator) -> None:
        self._machine = machine

    def object(self, class_qualname: str, attributes: Mapping[str, Value] | None = None) -> Value:
        """An object of a class, of otherwise unknown content; ABSENT when the checkout has no such class."""
        cls = lookup(self._machine, class_qualname)
        return Instance(cls, dict(attributes or {}), _SERVER) if type(cls) is ClassV else ABSENT

    def member(self, class_qualname: str, name: str) -> Value:
        """A member of an enumeration; ABSENT when there is none."""
        cls = lookup(self._machine, class_qualname)
        return self._machine.members(cls).get(name, ABSENT) if type(cls) is ClassV else ABSENT

    def giving(self, value: Value) -> Value:
        """A function that gives a value whatever it is called with."""
        return Native("given", lambda machine, arguments, keywords: value)

    def unknown(self) -> Value:
        """A value that only the server has."""
        return unknown(_SERVER)


def failure_of(
    configuration: ResolvedConfiguration,
    class_qualname: str,
    method: str,
    arguments: Callable[[Stage], Mapping[str, Value]],
    construction: Callable[[Stage], Mapping[str, Value]] | None = None,
) -> Failure | None:
    """The failure of a method of a class, where every way through it ends in a `raise`; None where any does not.

    Only what the class and its ancestors raise themselves counts: other code may refuse what only a running server has.

    Args:
        arguments: values of the parameters by name.
        construction: those of its constructor, where the object is to be as that leaves it; else nothing is known of it.
    """
    machine = configuration.evaluator
    depth, frames = len(machine.levels), len(machine.frames)
    limit, control, line = machine.limit, machine.control, machine.line
    machine.levels.append(Level())
    machine.limit = machine.steps + _STEPS
    stage = Stage(machine)
    try:
        holder, given = stage.object(class_qualname), dict(arguments(stage))
        function = machine.get(holder, method) if holder is not ABSENT else ABSENT
        if function is ABSENT or any(value is ABSENT for value in given.values()):
            return None
        if construction is not None:
            _construct(machine, holder, construction(stage))
        machine.call(function, [], given)
    except Raised as raised:
        cls = raised.value.cls if type(raised.value) is Instance else None
        if raised.explicit and cls != External(_DOUBTFUL) and raised.place.file in _homes(machine, holder):
            return Failure(describe(raised.value), raised.place)
    except (Unsupported, RecursionError):
        return None
    finally:
        machine.abandon(depth)
        del machine.frames[frames:]
        machine.limit, machine.control, machine.line = limit, control, line
    return None


def _homes(machine: Evaluator, holder: Value) -> set[str]:
    """Files of an object's class and of its ancestors in the checkout."""
    return {cls.module.module.path for cls in machine.ancestry(holder.cls) if type(cls) is ClassV}


def _construct(machine: Evaluator, holder: Value, given: Mapping[str, Value]) -> None:
    """Run the constructor as far as it goes: what it stores is then known."""
    constructor = machine.get(holder, "__init__")
    frames = len(machine.frames)
    if constructor is not ABSENT:
        try:
            machine.call(constructor, [], dict(given))
        except (Raised, Unsupported):
            del machine.frames[frames:]


__all__ = ["Failure", "Stage", "failure_of"]
