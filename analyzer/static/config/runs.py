"""Elements of lists of which some may be missing: what holds over all runs of an `Alternatives`, however deep."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sgl_graph.analyzer.static.config.values import ABSENT, Alternatives, Fuzzy, Value


def turned(items: Sequence[Value]) -> list[Value]:
    """The elements in reverse order."""
    return [_turned(item) for item in reversed(items)]


def _turned(item: Value) -> Value:
    if type(item) is not Alternatives:
        return item
    return Alternatives(tuple(tuple(turned(run)) for run in item.runs), item.deps)


def members(items: Sequence[Value]) -> Iterator[tuple[Value, bool]]:
    """Every element of every run, and whether it is certain to be there."""
    for item in items:
        if type(item) is Alternatives:
            yield from ((value, False) for run in item.runs for value, _ in members(run))
        else:
            yield item, not (type(item) is Fuzzy and ABSENT in item.options)


def holds_something(items: Sequence[Value]) -> bool:
    """Whether at least one element is certain to be there."""
    for item in items:
        if type(item) is Alternatives:
            if all(holds_something(run) for run in item.runs):
                return True
        elif not (type(item) is Fuzzy and ABSENT in item.options):
            return True
    return False


def may_hold_something(items: Sequence[Value]) -> bool:
    """Whether there can be an element."""
    return any(True for _ in members(items))
