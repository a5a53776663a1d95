"""The two sides of a launch that speculates: objects for the draft model's worker are told apart from the target's.

One class of workers, and one of model runners, serves both models. A parameter of the constructor tells an object which of
the two it is for, and what that object does, captures among it, is done for that model. So objects that are made with the
parameter true are objects of their own, with attributes of their own, and a call that is given one of them alone is a call
of its own. All others stay one object for each class, as they are in a launch that does not speculate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.frame import GuardLink, guards_of
from sgl_graph.analyzer.static.link.values import (
    DRAFT,
    NOTHING,
    ClassValue,
    Constant,
    FunctionValue,
    Instance,
    Value,
)
from sgl_graph.analyzer.static.linked import Making, Step, Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.arguments import Arguments
    from sgl_graph.analyzer.static.link.heap import Activation, Heap
    from sgl_graph.analyzer.static.link.world import CallRecord

    #: Who called, and the record of the call.
    Origin = tuple[Activation, CallRecord]


def is_draft(value: Value | None) -> bool:
    """Whether a value is an object that was made for the draft model's worker."""
    return type(value) is Instance and value.place is DRAFT


class Sides:
    """Tells objects for the draft apart, and notes which side makes objects of which class.

    Args:
        parameters: names of the parameters by which a constructor is told that the object is for the draft.
    """

    def __init__(self, parameters: frozenset[str]) -> None:
        self._parameters = parameters
        self._told_by: dict[ClassValue, tuple[FunctionValue, str, int] | None] = {}
        #: Whether any object for the draft was made: without one there is nothing to tell apart.
        self.apart = False
        #: Who calls each activation that works for the draft.
        self._callers: dict[Activation, dict[Origin, None]] = {}
        self._makers: dict[tuple[str, bool], dict[Origin, None]] = {}
        #: Constructors that work for the draft, by the class of the object, who makes it, and where; those that raise for it.
        self._constructors: dict[tuple[str, Origin], set[Activation]] = {}
        self._constructing: set[Activation] = set()
        self._refusing: set[Activation] = set()

    def place(self, cls: ClassValue, arguments: Arguments, heap: Heap) -> Hashable:
        """The place of an object that is about to be made: that of the draft's if the constructor is told so."""
        told_by = self._parameter(cls)
        if told_by is None:
            return None
        function, name, position = told_by
        given = arguments.keywords.get(name, NOTHING)
        if not given and position < len(arguments.positional):
            given = arguments.positional[position]
        if not given and not arguments.star and not arguments.double:
            given = heap.read(cell_in(function.defaults, name))
        if len(given) != 1:
            return None
        (value,) = given
        if type(value) is not Constant or value.value is not True:
            return None
        self.apart = True
        return DRAFT

    def contexts(self, arguments: Arguments) -> tuple[tuple[int | str, Value], ...]:
        """Arguments that are an object for the draft and nothing else, with where they are given."""
        found: list[tuple[int | str, Value]] = []
        for position, values in enumerate(arguments.positional):
            if len(values) == 1 and is_draft(value := next(iter(values))):
                found.append((position, value))
        for name, values in arguments.keywords.items():
            if len(values) == 1 and is_draft(value := next(iter(values))):
                found.append((name, value))
        return tuple(found)

    def called(self, activation: Activation, caller: Activation | None, record: CallRecord) -> None:
        """Note a call, if what it calls works for the draft alone."""
        if caller is not None and works_for_draft(activation):
            self._callers.setdefault(activation, {})[caller, record] = None
            receiver, function = activation.receiver, activation.function
            if type(receiver) is Instance and function is not None and function.facts.name == "__init__":
                self._constructors.setdefault((receiver.cls.qualname, (caller, record)), set()).add(activation)
                self._constructing.add(activation)

    def made(self, cls: ClassValue, arguments: Arguments, caller: Activation | None, record: CallRecord) -> None:
        """Note for which sides an object is made: those whose objects its constructor is given."""
        if caller is None:
            return
        for values in arguments.every():
            for value in values:
                if type(value) is Instance and self._parameter(value.cls) is not None:
                    self._makers.setdefault((cls.qualname, value.place is DRAFT), {})[caller, record] = None

    def _parameter(self, cls: ClassValue) -> tuple[FunctionValue, str, int] | None:
        """The parameter by which a class's constructor is told, if it has one: its function, name and position."""
        if not self._parameters:
            return None
        if cls in self._told_by:
            return self._told_by[cls]
        found = None
        for base in cls.line:
            cell = base.own.get("__init__")
            initializers = [v for v in cell.peek() if isinstance(v, FunctionValue)] if cell is not None else []
            if initializers:
                names = [parameter.name for parameter in initializers[0].facts.parameters[1:]]
                found = next(((initializers[0], n, i) for i, n in enumerate(names) if n in self._parameters), None)
                break
        self._told_by[cls] = found
        return found

    def found(self, reached: Mapping[str, Truth]) -> dict[str, dict[bool, Making]]:
        """By class: for which sides its objects are made, for the draft (True) and for the target (False)."""
        certain = self._certain(reached)
        table: dict[str, dict[bool, Making]] = {}
        for (name, draft), noted in sorted(self._makers.items(), key=lambda item: item[0]):
            makers = [origin for origin in noted if not (draft and self._refused(name, origin))]
            if not makers:
                continue
            sure = any(
                _settled(record, caller)
                and (
                    certain.get(caller, False)
                    if caller in self._callers
                    else reached.get(caller.qualname) is Truth.TRUE
                )
                for caller, record in makers
            )
            ways = self._ways(makers) if draft else ()
            table.setdefault(name, {})[draft] = Making(Truth.TRUE if sure else Truth.UNKNOWN, ways)
        return table

    def raised(self, activation: Activation, guards: GuardLink | None) -> bool:
        """Note a `raise` that a constructor which works for the draft comes to because it does; whether there was one to note.

        What is come to while a value is still awaited counts the next time.
        """
        if activation not in self._constructing:
            return False
        while guards is not None:
            if _asks(guards.test, not guards.negated, self._parameters) and not activation.starved:
                self._refusing.add(activation)
            guards = guards.outer
        return True

    def _refused(self, name: str, origin: Origin) -> bool:
        """Whether no object comes of making one for the draft here: the constructor raises where it is told of one."""
        constructors = self._constructors.get((name, origin), ())
        return bool(constructors) and all(self._refuses(name, constructor) for constructor in constructors)

    def _refuses(self, name: str, constructor: Activation) -> bool:
        """Whether a constructor raises for the draft, or one of a base that it calls."""
        return constructor in self._refusing or any(
            self._refused(name, origin)
            for owner, origin in self._constructors
            if owner == name and origin[0] is constructor
        )

    def _certain(self, reached: Mapping[str, Truth]) -> dict[Activation, bool]:
        """Activations that work for the draft and certainly run: some way to them rests on nothing that is open."""
        return _closed(
            self._callers,
            start=lambda caller, record: reached.get(caller.qualname) is Truth.TRUE,
            follows=lambda caller, record: _settled(record, caller),
        )

    def _ways(self, makers: Iterable[Origin]) -> tuple[tuple[Step, ...], ...]:
        """For each function from which the draft's code is entered, the shortest calls from it to where something is made."""
        best: dict[Activation, tuple[Step, ...]] = {}
        ways: dict[str, tuple[Step, ...]] = {}
        queue: deque[Activation] = deque()

        def note(caller: Activation, record: CallRecord, rest: tuple[Step, ...]) -> None:
            way = (Step(caller.qualname, record.module.path, record.line), *rest)
            if caller in self._callers:
                if caller not in best:
                    best[caller] = way
                    queue.append(caller)
                return
            known = ways.get(caller.qualname)
            if known is None or (len(way), way) < (len(known), known):
                ways[caller.qualname] = way

        for caller, record in sorted(makers, key=_place):
            note(caller, record, ())
        while queue:
            at = queue.popleft()
            for caller, record in sorted(self._callers[at], key=_place):
                note(caller, record, best[at])
        return tuple(ways[name] for name in sorted(ways))


def _asks(test: Expression, held: bool, parameters: frozenset[str]) -> bool:
    """Whether a test that has held, or failed, says that something is for the draft: `self.runner.is_draft_worker and ...`."""
    while test[0] == "u" and test[1] == "not":
        test, held = test[2], not held
    if test[0] == "bo":
        return (test[1] == "and") == held and any(_asks(part, held, parameters) for part in test[2:])
    return held and test[0] in ("a", "n") and test[-2 if test[0] == "a" else -1] in parameters


def works_for_draft(activation: Activation) -> bool:
    """Whether a function is executed for the draft alone: its object, or an argument, is one of the draft's."""
    context = activation.context
    if is_draft(activation.receiver):
        return True
    return type(context) is tuple and any(
        type(part) is tuple and len(part) == 2 and is_draft(part[1]) for part in context
    )


def _closed(
    callers: Mapping[Activation, Iterable[Origin]],
    start: Callable[[Activation, CallRecord], bool],
    follows: Callable[[Activation, CallRecord], bool],
) -> dict[Activation, bool]:
    """Activations that calls which `follows` accepts lead to, from callers outside that `start` accepts."""
    calls: dict[Activation, list[Activation]] = {}
    stack: list[Activation] = []
    for callee, origins in callers.items():
        for caller, record in origins:
            if not follows(caller, record):
                continue
            if caller in callers:
                calls.setdefault(caller, []).append(callee)
            elif start(caller, record):
                stack.append(callee)
    found: dict[Activation, bool] = {}
    while stack:
        at = stack.pop()
        if at not in found:
            found[at] = True
            stack.extend(calls.get(at, ()))
    return found


def _settled(record: CallRecord, caller: Activation) -> bool:
    """Whether the conditions around a call rest, where this caller makes it, on nothing but what running code can tell."""
    guards = record.guards
    link: GuardLink | None = guards.get(caller) if isinstance(guards, dict) else guards
    return all(g.value is Truth.TRUE or (g.value is Truth.UNKNOWN and not g.depends) for g in guards_of(link))


def _place(origin: Origin) -> tuple[str, int]:
    return origin[0].qualname, origin[1].line
