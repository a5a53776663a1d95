"""The value domain of the evaluator: native constants, heap objects, and sets of possibilities with their provenance.

A value is a native constant (None, bool, int, float, str, tuple of values ...), a heap object, or a `Fuzzy`: what it may be,
whether it may be something else too (`open`), and the facts that this rests on (`deps`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from sgl_graph.analyzer.static.config.protocol import Place

Value = Any
Deps = frozenset[str]
NO_DEPS: Deps = frozenset()


class _Absent:
    """An attribute, key or local that may not exist."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<absent>"


ABSENT = _Absent()


class Fuzzy:
    """A set of possible values; with one option and not `open` a known value that rests on facts."""

    __slots__ = ("deps", "open", "options", "place")

    def __init__(self, options: tuple[Value, ...], open_: bool, deps: Deps, place: Place | None = None) -> None:
        self.options = options
        self.open = open_
        self.deps = deps
        #: The statement at which the value began to rest on these facts.
        self.place = place

    def __repr__(self) -> str:
        tail = "|..." if self.open else ""
        return f"<{'|'.join(map(repr, self.options))}{tail} {sorted(self.deps)}>"


_births = itertools.count(1)


def moment() -> int:
    """A point in time, later than all earlier ones."""
    return next(_births)


class Heap:
    """Base of objects with mutable state; `state`/`restore` serve the journal of the evaluator.

    `born` orders objects in time: one that is younger than a level did not exist when the level was opened.
    """

    __slots__ = ("born",)
    born: int

    def state(self) -> Any:
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        raise NotImplementedError


class Alternatives:
    """An element of a list that stands for one of several runs of elements."""

    __slots__ = ("deps", "runs")

    def __init__(self, runs: tuple[tuple[Value, ...], ...], deps: Deps) -> None:
        self.runs = runs
        self.deps = deps


class ListV(Heap):
    """A list; `opaque` holds the provenance once its content is not known."""

    __slots__ = ("items", "opaque")

    def __init__(self, items: list[Value], opaque: Deps | None = None) -> None:
        self.born = next(_births)
        self.items = items
        self.opaque = opaque

    def state(self) -> Any:
        return list(self.items), self.opaque

    def restore(self, state: Any) -> None:
        self.items, self.opaque = list(state[0]), state[1]

    @property
    def exact(self) -> bool:
        """Whether length and order of the elements are known."""
        return self.opaque is None and not any(type(item) is Alternatives for item in self.items)


class DictV(Heap):
    """A dict; a value with the option ABSENT may be missing, `opaque` tells that other keys may exist."""

    __slots__ = ("factory", "items", "opaque")

    def __init__(self, items: dict[Any, Value], opaque: Deps | None = None, factory: Value = None) -> None:
        self.born = next(_births)
        self.items = items
        self.opaque = opaque
        self.factory = factory

    def state(self) -> Any:
        return dict(self.items), self.opaque

    def restore(self, state: Any) -> None:
        self.items, self.opaque = dict(state[0]), state[1]


class SetV(Heap):
    """A set; members map to True, or to a Fuzzy with ABSENT when they may be missing."""

    __slots__ = ("items", "opaque")

    def __init__(self, items: dict[Any, Value], opaque: Deps | None = None) -> None:
        self.born = next(_births)
        self.items = items
        self.opaque = opaque

    def state(self) -> Any:
        return dict(self.items), self.opaque

    def restore(self, state: Any) -> None:
        self.items, self.opaque = dict(state[0]), state[1]


class External:
    """Something outside the checkout, by access path; a call of it is written `path()`."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<external {self.path}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


class Native:
    """A function that the evaluator implements itself: `call(evaluator, arguments, keywords)`."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[[Any, list[Value], dict[str, Value]], Value]) -> None:
        self.name = name
        self.call = call

    def __repr__(self) -> str:
        return f"<native {self.name}>"


class Generic:
    """A subscripted type: `Optional[int]`, `Annotated[T, ...]`, `int | None`."""

    __slots__ = ("arguments", "origin")

    def __init__(self, origin: Value, arguments: tuple[Value, ...]) -> None:
        self.origin = origin
        self.arguments = arguments


class IteratorV(Heap):
    """An iterator over elements that are known."""

    __slots__ = ("items", "position")

    def __init__(self, items: list[Value]) -> None:
        self.born = next(_births)
        self.items = items
        self.position = 0

    def state(self) -> Any:
        return self.position

    def restore(self, state: Any) -> None:
        self.position = state
