"""Elements that anything iterated gives, in order, as far as they are known."""

from __future__ import annotations

from sgl_graph.analyzer.static.config.machine import Machine
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, taint
from sgl_graph.analyzer.static.config.values import ABSENT, Alternatives, DictV, Fuzzy, IteratorV, ListV, SetV, Value

_MAX_ELEMENTS = 20_000


class Iteration(Machine):
    """The part of the evaluator that iterates."""

    def runs(self, value: Value) -> list[Value] | None:
        """Elements in order, `Alternatives` and possibly absent ones included; None when they are not known."""
        options, open_ = options_of(value)
        if open_ or not options:
            return None
        found = [self._runs_of(option) for option in options]
        if any(run is None for run in found):
            return None
        if len(found) == 1:
            return found[0]
        return [Alternatives(tuple(tuple(run or ()) for run in found), deps_of(value))]

    def _runs_of(self, value: Value) -> list[Value] | None:
        kind = type(value)
        if kind is ListV:
            return None if value.opaque is not None else list(value.items)
        if kind is tuple:
            return list(value)
        if kind is DictV or kind is SetV:
            if value.opaque is not None:
                return None
            return [
                (taint(key, deps_of(item)) if kind is SetV else key)
                if _certain(item)
                else fuzzy((key, ABSENT), False, deps_of(item))
                for key, item in value.items.items()
            ]
        if kind is str or kind is bytes or kind is range or kind is frozenset:
            return list(value) if len(value) <= _MAX_ELEMENTS else None
        if isinstance(value, IteratorV):
            self.touch(value)
            rest = value.items[value.position :]
            value.position = len(value.items)
            return rest
        return self.iterate_object(value)

    def iterate_object(self, value: Value) -> list[Value] | None:
        """Elements of an object or class of the checkout; None when they are not known."""
        raise NotImplementedError

    def elements(self, value: Value) -> list[Value] | None:
        """Elements in order where number and order are certain, else None."""
        items = self.runs(value)
        if items is None:
            return None
        deps = deps_of(value)
        result: list[Value] = []
        for item in items:
            if type(item) is Alternatives:
                return None
            if type(item) is Fuzzy and ABSENT in item.options:
                return None
            result.append(taint(item, deps) if deps else item)
        return result


def _certain(value: Value) -> bool:
    return not (type(value) is Fuzzy and ABSENT in value.options)
