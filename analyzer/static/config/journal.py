"""Both sides of an unknown test: a journal of writes, states that can be undone, and their join.

A `Level` remembers the state that objects had when it was opened. A branch runs inside a level, its writes are taken off as a
difference, and the differences of all branches are joined. A branch that leaves (return, break, raise) becomes an `Outcome`
pending on a level that stays open until the function, loop or `try` that it leaves is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.static.config.possibilities import fuzzy, same
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Alternatives,
    Deps,
    Heap,
    IteratorV,
    ListV,
    Value,
    moment,
)

#: How control left a block: "" fell through, else "return", "break", "continue" or "raise".
Signal = tuple[str, Value]
Difference = dict[int, tuple[Heap, Any]]
FELL_THROUGH: Signal = ("", None)
_MAX_RUNS = 8
_MAX_ELEMENTS = 400


class Raised(Exception):
    """The analysed program raised.

    Attributes:
        value: the exception object.
        explicit: a `raise` or `assert` statement did, not an operation that the evaluator models.
    """

    def __init__(self, value: Value, place: Place, explicit: bool) -> None:
        super().__init__(str(place))
        self.value = value
        self.place = place
        self.explicit = explicit


@dataclass(slots=True)
class Outcome:
    """One way in which a block ended, with what it had written by then."""

    kind: str
    value: Value
    difference: Difference


@dataclass(slots=True)
class Level:
    """States of objects as they were when the level was opened, and outcomes pending on it."""

    states: Difference = field(default_factory=dict)
    since: int = field(default_factory=moment)
    pending: list[Outcome] = field(default_factory=list)


class Journal:
    """The stack of open levels."""

    def __init__(self) -> None:
        self.levels: list[Level] = []
        #: Depth of enclosing `try` statements with handlers: outside all of them a raise ends the launch.
        self.try_depth = 0
        self.control: Deps = NO_DEPS
        #: Branches of unknown tests that are being run, one inside the other.
        self.forking = 0

    def touch(self, item: Heap) -> None:
        """Call before an object is changed."""
        if self.levels:
            level = self.levels[-1]
            if item.born < level.since and id(item) not in level.states:
                level.states[id(item)] = (item, item.state())

    def place(self) -> Place:
        """Where the analysed program stands."""
        raise NotImplementedError

    def fork(self, branches: Iterable[Callable[[], Signal]], deps: Deps) -> Signal:
        """Run every branch from the present state and go on with all of their outcomes."""
        outcomes: list[Outcome] = []
        held = self.control
        for branch in branches:
            depth = len(self.levels)
            self.levels.append(Level())
            self.control = held | deps
            self.forking += 1
            try:
                kind, value = branch()
            except Raised as raised:
                kind, value = "raise", raised
            except BaseException:
                self.abandon(depth)
                raise
            finally:
                self.control = held
                self.forking -= 1
            difference, pending = self.take(depth)
            outcomes.append(Outcome(kind, value, difference))
            outcomes += pending
        return self.merge(outcomes, deps)

    def take(self, depth: int) -> tuple[Difference, list[Outcome]]:
        """Close the levels above a depth, undo what was written in them and give it back with what was pending."""
        self._collapse(depth)
        level = self.levels.pop()
        difference = {key: (item, item.state()) for key, (item, _) in level.states.items()}
        for item, state in level.states.values():
            item.restore(state)
        return difference, level.pending

    def abandon(self, depth: int) -> None:
        """Undo everything above a depth."""
        while len(self.levels) > depth:
            for item, state in self.levels.pop().states.values():
                item.restore(state)

    def settle(self, depth: int, signal: Signal, absorbed: tuple[str, ...]) -> Signal:
        """End a function, loop or iteration: outcomes of the absorbed kinds join the fall-through."""
        kind, value = signal
        if len(self.levels) == depth:
            return ("", value) if kind in absorbed else signal
        difference, pending = self.take(depth)
        outcomes = [Outcome(kind, value, difference), *pending]
        for outcome in outcomes:
            if outcome.kind in absorbed:
                outcome.kind = ""
        return self.merge(outcomes, NO_DEPS)

    def merge(self, outcomes: list[Outcome], deps: Deps) -> Signal:
        """Go on with the outcomes that fell through (else those of the first kind); the others become pending."""
        alive = outcomes if self.try_depth else [o for o in outcomes if o.kind != "raise"]
        if not alive:
            raised = outcomes[0].value
            self._apply(outcomes[:1], deps)
            raise raised
        kinds = {outcome.kind for outcome in alive}
        kind = "" if "" in kinds else next((o.kind for o in alive if o.kind != "raise"), "raise")
        going = [outcome for outcome in alive if outcome.kind == kind]
        waiting = [outcome for outcome in alive if outcome.kind != kind]
        if waiting:
            self.levels.append(Level(pending=waiting))
        self._apply(going, deps)
        if kind == "raise":
            raise going[0].value
        place = self.place() if len(going) > 1 else None
        value = going[0].value if len(going) == 1 else fuzzy((o.value for o in going), False, deps, place)
        return kind, value

    def _apply(self, outcomes: list[Outcome], deps: Deps) -> None:
        items: dict[int, Heap] = {}
        for outcome in outcomes:
            for key, (item, _) in outcome.difference.items():
                items[key] = item
        for key, item in items.items():
            states = [o.difference[key][1] if key in o.difference else item.state() for o in outcomes]
            self.touch(item)
            item.restore(states[0] if len(states) == 1 else join_states(item, states, deps, self.place()))

    def _collapse(self, depth: int) -> None:
        while len(self.levels) > depth + 1:
            top = self.levels.pop()
            below = self.levels[-1]
            if top.pending:
                base = {
                    key: (item, top.states[key][1] if key in top.states else item.state())
                    for key, (item, _) in below.states.items()
                }
                for outcome in top.pending:
                    outcome.difference = {**base, **outcome.difference}
                below.pending += top.pending
            for key, entry in top.states.items():
                if entry[0].born < below.since:
                    below.states.setdefault(key, entry)


def join_states(item: Heap, states: list[Any], deps: Deps, place: Place) -> Any:
    """The state of an object that may be any of several."""
    if isinstance(item, IteratorV):
        return max(states)
    if isinstance(item, ListV):
        return _join_lists(states, deps)
    if isinstance(states[0], dict):
        return _join_names(states, deps, place)
    opaque = [state[1] for state in states if state[1] is not None]
    return _join_names([s[0] for s in states], deps, place), frozenset().union(*opaque) if opaque else None


def _join_names(states: list[dict[Any, Value]], deps: Deps, place: Place) -> dict[Any, Value]:
    result: dict[Any, Value] = {}
    first = states[0]
    for name in dict.fromkeys(name for state in states for name in state):
        value = first.get(name, ABSENT)
        others = [state.get(name, ABSENT) for state in states[1:]]
        if all(same(value, other) for other in others):
            result[name] = value
        else:
            result[name] = fuzzy((value, *others), False, deps, place)
    return result


def _join_lists(states: list[Any], deps: Deps) -> Any:
    opaque = [state[1] for state in states if state[1] is not None]
    if opaque:
        return [], frozenset().union(deps, *opaque)
    lists: list[list[Value]] = [state[0] for state in states]
    shortest = min(len(items) for items in lists)
    prefix = 0
    while prefix < shortest and all(same(lists[0][prefix], other[prefix]) for other in lists[1:]):
        prefix += 1
    tails = [tuple(items[prefix:]) for items in lists]
    if all(len(tail) == len(tails[0]) for tail in tails) and not any(type(x) is Alternatives for t in tails for x in t):
        merged = [fuzzy(column, False, deps) for column in zip(*tails, strict=True)]
        return [*lists[0][:prefix], *merged], None
    distinct: list[tuple[Value, ...]] = []
    for tail in tails:
        if not any(same(tail, known) for known in distinct):
            distinct.append(tail)
    if len(distinct) > _MAX_RUNS:
        return _each_apart(lists[0][:prefix], distinct, deps)
    return [*lists[0][:prefix], Alternatives(tuple(distinct), deps)], None


def _each_apart(prefix: list[Value], tails: list[tuple[Value, ...]], deps: Deps) -> Any:
    """Too many endings to tell apart: one order that holds them all, in which every element may be missing.

    An element that an ending repeats, or that stands in another order there, is taken once more.
    """
    merged: list[Value] = []
    for tail in tails:
        at = 0
        for item in tail:
            found = next((n for n in range(at, len(merged)) if same(merged[n], item)), None)
            if found is None:
                merged.insert(at, item)
                found = at
            at = found + 1
    if len(merged) > _MAX_ELEMENTS:
        return [], deps
    return [*prefix, *(item if _may_be_missing(item) else Alternatives(((item,), ()), deps) for item in merged)], None


def _may_be_missing(item: Value) -> bool:
    return type(item) is Alternatives and () in item.runs
