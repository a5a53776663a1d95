"""Evaluation of expressions: names, attributes, calls, literals, comprehensions, and tests in three-valued logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sgl_graph.analyzer.static.config import comparison, containers, operators, python_values
from sgl_graph.analyzer.static.config.journal import FELL_THROUGH, Raised, Signal
from sgl_graph.analyzer.static.config.machine import Machine, Unsupported
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, is_open, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Frame, FunctionV
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Alternatives,
    Deps,
    DictV,
    Fuzzy,
    Generic,
    IteratorV,
    ListV,
    SetV,
    Value,
)
from sgl_graph.analyzer.static.extract import facts as f

_MAX_ELEMENTS = 20_000


class _Endless(Exception):
    def __init__(self, deps: Deps) -> None:
        super().__init__()
        self.deps = deps


class Expressions(Machine):
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

    # -- comprehensions

    def _comprehension(self, expression: f.Expression) -> Value:
        kind, elements, loops = expression[1], expression[2], expression[3]
        outer = self.frames[-1]
        frame = Frame(outer.module, outer, outer.qualname)
        frame.owner, frame.receiver = outer.owner, outer.receiver
        result: Any = DictV({}) if kind == "D" else SetV({}) if kind == "S" else ListV([])
        self.frames.append(frame)
        held = self.control
        try:
            self._comprehend(loops, 0, lambda: self._collect(kind, elements, result))
        except _Endless as endless:
            result.items.clear()
            result.opaque = endless.deps
        finally:
            self.control = held
            self.frames.pop()
        return result

    def _collect(self, kind: str, elements: list[f.Expression], result: Any) -> None:
        if kind == "D":
            key = self.evaluate(elements[0])
            containers.store_item(self, result, key, self.evaluate(elements[1]))
        elif kind == "S":
            containers.add_member(self, result, self.evaluate(elements[0]))
        else:
            value = self.evaluate(elements[0])
            if self.control:
                value = taint(value, self.control, self.place())
            self.touch(result)
            result.items.append(value)

    def _comprehend(self, loops: list[Any], depth: int, collect: Callable[[], None]) -> None:
        if depth == len(loops):
            collect()
            return
        target, iterable, tests = loops[depth]
        source = self.evaluate(iterable)
        deps = deps_of(source)
        runs = self.runs(source)
        if runs is None:
            raise _Endless(
                python_values.inner_deps(source) | deps | (getattr(single(source), "opaque", None) or NO_DEPS)
            )
        held = self.control
        self.control = held | deps

        def visit(item: Value) -> None:
            self.step()
            self.assign(target, item)
            conditions = NO_DEPS
            verdict: bool | None = True
            for test in tests:
                truth, more = self.test(test)
                conditions |= more
                if truth is False:
                    return
                if truth is None:
                    verdict = None
            if verdict is None:

                def inside() -> Signal:
                    self._comprehend(loops, depth + 1, collect)
                    return FELL_THROUGH

                self.fork([inside, lambda: FELL_THROUGH], conditions)
                return
            before = self.control
            self.control = before | conditions
            self._comprehend(loops, depth + 1, collect)
            self.control = before

        def walk(items: list[Value] | tuple[Value, ...]) -> None:
            for item in items:
                if type(item) is Alternatives:

                    def branch(run: tuple[Value, ...]) -> Callable[[], Signal]:
                        def run_one() -> Signal:
                            walk(run)
                            return FELL_THROUGH

                        return run_one

                    self.fork([branch(run) for run in item.runs], item.deps)
                elif type(item) is Fuzzy and ABSENT in item.options:
                    present = fuzzy([o for o in item.options if o is not ABSENT], item.open, item.deps)

                    def one(value: Value = present) -> Signal:
                        visit(value)
                        return FELL_THROUGH

                    self.fork([one, lambda: FELL_THROUGH], item.deps)
                else:
                    visit(item)

        walk(runs)
        self.control = held

    # -- iteration

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

    def assign(self, target: f.Expression, value: Value) -> None:
        """Bind an assignment target."""
        raise NotImplementedError


def _certain(value: Value) -> bool:
    return not (type(value) is Fuzzy and ABSENT in value.options)


def _generic(machine: Expressions, expression: f.Expression) -> Value:
    raise Unsupported(f"expression {expression[0]}")


_EVALUATE: dict[str, Callable[[Any, f.Expression], Value]] = {
    "a": Expressions._attribute, "c": Expressions._call, "s": Expressions._subscript, "sl": Expressions._slice,
    "f": Expressions._format, "l": Expressions._lambda, "i": Expressions._conditional, "bo": Expressions._boolean,
    "u": Expressions._unary, "b": Expressions._binary, "cmp": Expressions._comparison, "t": Expressions._tuple,
    "L": Expressions._list, "S": Expressions._set, "d": Expressions._dict, "w": Expressions._walrus,
    "C": Expressions._comprehension, "y": Expressions._yield, "yf": Expressions._yield_from, "aw": Expressions._await,
    "*": Expressions._star, "x": Expressions._nothing,
}  # fmt: skip

__all__ = ["Expressions", "FunctionV", "Generic", "Raised", "is_open"]
