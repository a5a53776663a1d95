"""Rehearsals: a call of the checkout evaluated with what a path is known to pass, to see whether it can only raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.evaluator import Evaluator
from sgl_graph.analyzer.static.config.exceptions import describe
from sgl_graph.analyzer.static.config.journal import Level, Raised
from sgl_graph.analyzer.static.config.machine import Unsupported
from sgl_graph.analyzer.static.config.possibilities import unknown
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.resolve import lookup
from sgl_graph.analyzer.static.config.values import ABSENT, Deps, External, Native, Value

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

    Only what the class and its ancestors raise themselves counts.

    Args:
        arguments: values of the parameters by name.
        construction: those of its constructor, where the object is to be as that leaves it; else nothing is known of it.
    """

    def perform(machine: Evaluator, stage: Stage) -> None:
        holder, given = stage.object(class_qualname), dict(arguments(stage))
        function = machine.get(holder, method) if holder is not ABSENT else ABSENT
        if function is not ABSENT and not any(value is ABSENT for value in given.values()):
            if construction is not None:
                _construct(machine, holder, construction(stage))
            machine.call(function, [], given)

    return _failure(configuration, class_qualname, perform)


def failure_of_maker(
    configuration: ResolvedConfiguration,
    class_qualname: str,
    maker: str,
    arguments: Callable[[Stage], Mapping[str, Value]],
) -> Failure | None:
    """As `failure_of`, for a function that makes the object: it ends on every way in what the object's class raises."""

    def perform(machine: Evaluator, stage: Stage) -> None:
        function = lookup(machine, maker)
        if function is not ABSENT:
            machine.call(function, [], dict(arguments(stage)))

    return _failure(configuration, class_qualname, perform)


def _failure(
    configuration: ResolvedConfiguration, class_qualname: str, perform: Callable[[Evaluator, Stage], None]
) -> Failure | None:
    """What a performance ends in, where a class or an ancestor of it raises that; it leaves nothing behind."""
    machine = configuration.evaluator
    depth, frames = len(machine.levels), len(machine.frames)
    limit, control, line = machine.limit, machine.control, machine.line
    machine.levels.append(Level())
    machine.limit = machine.steps + _STEPS
    homes = _homes(machine, class_qualname)
    # Other code may refuse what only a running server has: that is unknown, and whatever raises after it counts.
    machine.raising = homes
    try:
        perform(machine, Stage(machine))
    except Raised as raised:
        cls = raised.value.cls if type(raised.value) is Instance else None
        if raised.explicit and cls != External(_DOUBTFUL) and raised.place.file in homes:
            return Failure(describe(raised.value), raised.place)
    except (Unsupported, RecursionError):
        return None
    finally:
        machine.abandon(depth)
        del machine.frames[frames:]
        machine.limit, machine.control, machine.line = limit, control, line
        machine.raising = None
    return None


def _homes(machine: Evaluator, class_qualname: str) -> set[str]:
    """Files of a class and of its ancestors in the checkout."""
    own = lookup(machine, class_qualname)
    return {c.module.module.path for c in machine.ancestry(own) if type(c) is ClassV} if type(own) is ClassV else set()


def _construct(machine: Evaluator, holder: Value, given: Mapping[str, Value]) -> None:
    """Run the constructor as far as it goes: what it stores is then known."""
    constructor = machine.get(holder, "__init__")
    frames = len(machine.frames)
    if constructor is not ABSENT:
        try:
            machine.call(constructor, [], dict(given))
        except (Raised, Unsupported):
            del machine.frames[frames:]


__all__ = ["Failure", "Stage", "failure_of", "failure_of_maker"]
