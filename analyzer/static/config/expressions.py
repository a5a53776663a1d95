"""Evaluation of expressions: names, attributes, calls, literals, and tests in three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sgl_graph.analyzer.static.config import comparison, containers, operators, python_values
from sgl_graph.analyzer.static.config.comprehensions import Comprehensions
from sgl_graph.analyzer.static.config.journal import Signal
from sgl_graph.analyzer.static.config.machine import Unsupported
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.values import ABSENT, NO_DEPS, Deps, DictV, Fuzzy, ListV, SetV, Value
from sgl_graph.analyzer.static.extract import facts as f


class Expressions(Comprehensions):
    """The part of the evaluator that turns an expression into a value."""

    def evaluate(self, expression: f.Expression) -> Value:
        kind = expression[0]
        if kind == "v":
            return expression[1]
        if kind == "n":
            value = self.load(expression[1])
            return unknown([f"name:{expression[1]}"], self.place()) if value is ABSENT else value
        return _EVALUATE[kind](self, expression)

    # -- tests

    def test(self, expression: f.Expression) -> tuple[bool | None, Deps]:
        """Three-valued truth of an expression in the position of a condition."""
        kind = expression[0]
        if kind == "u" and expression[1] == "not":
            truth, deps = self.test(expression[2])
            return (None if truth is None else not truth), deps
        if kind == "bo":
            return self._test_both(expression[1] == "or", expression[2], expression[3])
        return self.truth(self.evaluate(expression))

    def _test_both(self, stop: bool, left: f.Expression, right: f.Expression) -> tuple[bool | None, Deps]:
        truth, deps = self.test(left)
        if truth is stop:
            return stop, deps
        if truth is not None:
            second, more = self.test(right)
            return second, deps | more

        def run_right() -> Signal:
            second, more = self.test(right)
            return "", unknown(more) if second is None else taint(second, more)

        _, value = self.fork([lambda: ("", stop), run_right], deps)
        second, more = comparison.simple_truth(value)
        return second, deps | more

    def truth(self, value: Value) -> tuple[bool | None, Deps]:
        """Three-valued truth of a value."""
        return comparison.truth(self, value)

    # -- single kinds

    def _attribute(self, expression: f.Expression) -> Value:
        owner = self.evaluate(expression[1])
        value = self.get(owner, expression[2])
        if value is ABSENT:
            raise self.fail("AttributeError", expression[2])
        if type(value) is Fuzzy and ABSENT in value.options:
            return fuzzy([o for o in value.options if o is not ABSENT], value.open, value.deps, value.place)
        return value

    def _call(self, expression: f.Expression) -> Value:
        line = self.line
        function = self.evaluate(expression[1])
        arguments: list[Value] = []
        keywords: dict[str, Value] = {}
        for argument in expression[2]:
            kind = argument[0]
            if kind == "k":
                keywords[argument[1]] = self.evaluate(argument[2])
            elif kind == "*":
                items = self.elements(self.evaluate(argument[1]))
                if items is None:
                    raise Unsupported("unknown positional arguments")
                arguments += items
            elif kind == "**":
                self._expand_keywords(self.evaluate(argument[1]), keywords, function)
            else:
                arguments.append(self.evaluate(argument))
        self.line = expression[3] or line
        result = self.call(function, arguments, keywords)
        self.line = line
        return result

    def _expand_keywords(self, value: Value, keywords: dict[str, Value], function: Value) -> None:
        options, open_ = options_of(value)
        if open_ or not all(type(option) is DictV and option.opaque is None for option in options):
            fields = self.recordable(function)
            if fields is None:
                raise Unsupported("unknown keyword arguments")
            rest = unknown(python_values.inner_deps(value), self.place())
            for option in options:
                if type(option) is DictV:
                    for name, item in option.items.items():
                        keywords[str(name)] = fuzzy((item, ABSENT), True, deps_of(value))
            for name in fields:
                keywords.setdefault(name, fuzzy((rest, ABSENT), True, NO_DEPS))
            return
        deps = deps_of(value)
        names = dict.fromkeys(name for option in options for name in option.items)
        for name in names:
            found = [option.items.get(name, ABSENT) for option in options]
            keywords[str(name)] = taint(found[0] if len(found) == 1 else fuzzy(found, False, deps), deps)

    def recordable(self, function: Value) -> Sequence[str] | None:
        """Fields that a call with unknown keywords may record; None when the function records nothing."""
        raise NotImplementedError

    def _subscript(self, expression: f.Expression) -> Value:
        value = self.evaluate(expression[1])
        indexes = [self.evaluate(item) for item in expression[2]]
        index = indexes[0] if len(indexes) == 1 else tuple(indexes)
        return containers.subscript(self, value, index)

    def _slice(self, expression: f.Expression) -> Value:
        parts = [self.evaluate(item) if item is not None else None for item in expression[1:4]]
        plain = [single(part) for part in parts]
        if any(part is ABSENT for part in plain):
            return unknown(frozenset().union(*(deps_of(part) for part in parts)))
        deps: Deps = frozenset().union(*(deps_of(part) for part in parts))
        return taint(slice(*plain), deps)

    def _format(self, expression: f.Expression) -> Value:
        parts = [self.evaluate(item) for item in expression[1]]
        return operators.concatenate(parts)

    def _lambda(self, expression: f.Expression) -> Value:
        return self.define_function(expression[1], self.frames[-1], self.frames[-1].owner)

    def _conditional(self, expression: f.Expression) -> Value:
        truth, deps = self.test(expression[1])
        if truth is None:
            branches: list[Callable[[], Signal]] = [
                lambda: ("", self.evaluate(expression[2])),
                lambda: ("", self.evaluate(expression[3])),
            ]
            return self.fork(branches, deps)[1]
        value = self.evaluate(expression[2] if truth else expression[3])
        return taint(value, deps, self.place()) if deps else value

    def _boolean(self, expression: f.Expression) -> Value:
        stop = expression[1] == "or"
        left = self.evaluate(expression[2])
        truth, deps = self.truth(left)
        if truth is stop:
            return left
        if truth is not None:
            value = self.evaluate(expression[3])
            return taint(value, deps, self.place()) if deps else value
        kept = comparison.restricted(self, left, stop)
        _, value = self.fork([lambda: ("", kept), lambda: ("", self.evaluate(expression[3]))], deps)
        return value

    def _unary(self, expression: f.Expression) -> Value:
        if expression[1] == "not":
            truth, deps = self.test(expression[2])
            return unknown(deps, self.place()) if truth is None else taint(not truth, deps, self.place())
        return operators.unary(self, expression[1], self.evaluate(expression[2]))

    def _binary(self, expression: f.Expression) -> Value:
        left = self.evaluate(expression[2])
        return operators.binary(self, expression[1], left, self.evaluate(expression[3]))

    def _comparison(self, expression: f.Expression) -> Value:
        left = self.evaluate(expression[1])
        result: bool | None = True
        deps = NO_DEPS
        for operator, other in expression[2]:
            right = self.evaluate(other)
            truth, more = comparison.compare(self, operator, left, right)
            deps |= more
            if truth is False:
                return taint(False, deps, self.place()) if deps else False
            if truth is None:
                result = None
            left = right
        if result is None:
            return unknown(deps, self.place())
        return taint(result, deps, self.place()) if deps else result

    def _tuple(self, expression: f.Expression) -> Value:
        return tuple(self._items(expression[1]))

    def _list(self, expression: f.Expression) -> Value:
        return ListV(self._items(expression[1]))

    def _set(self, expression: f.Expression) -> Value:
        result = SetV({})
        for item in self._items(expression[1]):
            containers.add_member(self, result, item)
        return result

    def _items(self, expressions: list[f.Expression]) -> list[Value]:
        items: list[Value] = []
        for item in expressions:
            if item[0] == "*":
                more = self.elements(self.evaluate(item[1]))
                if more is None:
                    raise Unsupported("unknown elements")
                items += more
            else:
                items.append(self.evaluate(item))
        return items

    def _dict(self, expression: f.Expression) -> Value:
        result = DictV({})
        for key, item in expression[1]:
            if key is None:
                containers.update(self, result, self.evaluate(item))
            else:
                name = self.evaluate(key)
                containers.store_item(self, result, name, self.evaluate(item))
        return result

    def _walrus(self, expression: f.Expression) -> Value:
        value = self.evaluate(expression[2])
        frame = self.frames[-1]
        while frame.function is None and frame.parent is not None and frame.body_of is None:
            frame = frame.parent
        self.frames.append(frame)
        try:
            self.store(expression[1], value)
        finally:
            self.frames.pop()
        return value

    def _yield(self, expression: f.Expression) -> Value:
        frame = self.frames[-1]
        value = self.evaluate(expression[1]) if expression[1] is not None else None
        if frame.yielded is not None:
            self.touch(frame.yielded)
            frame.yielded.items.append(value)
        return None

    def _yield_from(self, expression: f.Expression) -> Value:
        items = self.elements(self.evaluate(expression[1]))
        frame = self.frames[-1]
        if items is None:
            raise Unsupported("unknown generator")
        if frame.yielded is not None:
            self.touch(frame.yielded)
            frame.yielded.items += items
        return None

    def _await(self, expression: f.Expression) -> Value:
        self.evaluate(expression[1])
        return unknown(["await"], self.place())

    def _star(self, expression: f.Expression) -> Value:
        return self.evaluate(expression[1])

    def _nothing(self, expression: f.Expression) -> Value:
        return unknown(["source"], self.place())


_EVALUATE: dict[str, Callable[[Any, f.Expression], Value]] = {
    "a": Expressions._attribute, "c": Expressions._call, "s": Expressions._subscript, "sl": Expressions._slice,
    "f": Expressions._format, "l": Expressions._lambda, "i": Expressions._conditional, "bo": Expressions._boolean,
    "u": Expressions._unary, "b": Expressions._binary, "cmp": Expressions._comparison, "t": Expressions._tuple,
    "L": Expressions._list, "S": Expressions._set, "d": Expressions._dict, "w": Expressions._walrus,
    "C": Expressions.comprehension, "y": Expressions._yield, "yf": Expressions._yield_from, "aw": Expressions._await,
    "*": Expressions._star, "x": Expressions._nothing,
}  # fmt: skip
