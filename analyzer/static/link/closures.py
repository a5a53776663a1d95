"""Which call made a closure, and who calls what it made: all closures of one function are one function by their names."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.linked import Closure

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.values import FunctionValue
    from sgl_graph.analyzer.static.link.world import CallRecord


class Closures:
    """Closures by the call expressions that make them."""

    def __init__(self) -> None:
        self._makers: dict[Hashable, CallRecord] = {}
        self._callers: dict[Hashable, set[str]] = {}

    def made(self, site: Hashable, record: CallRecord) -> None:
        """Note that a call of a function that returns closures stands here."""
        self._makers.setdefault(site, record)

    def called(self, function: FunctionValue, record: CallRecord) -> None:
        """Note who calls a function, if it is a closure that such a call made."""
        context = function.parent.context if function.parent is not None else None
        if isinstance(context, tuple) and context[:1] == ("factory",):
            self._callers.setdefault(context[1], set()).add(record.caller)

    def by_place(self) -> dict[tuple[str, int], list[Closure]]:
        """The closures made by calls, by function and line of the call."""
        found: dict[tuple[str, int], list[Closure]] = {}
        for site, record in self._makers.items():
            callers = frozenset(self._callers.get(site, ()))
            found.setdefault((record.caller, record.line), []).append(Closure(record.expression, callers))
        return found
