"""Comprehensions and generator expressions, over elements that may be several and tests that may be unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgl_graph.analyzer.static.config import containers, python_values
from sgl_graph.analyzer.static.config.iteration import Iteration
from sgl_graph.analyzer.static.config.journal import FELL_THROUGH, Signal
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, single, taint
from sgl_graph.analyzer.static.config.program import Frame
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Alternatives,
    Deps,
    DictV,
    Fuzzy,
    ListV,
    SetV,
    Value,
)
from sgl_graph.analyzer.static.extract import facts as f


class _Endless(Exception):
    def __init__(self, deps: Deps) -> None:
        super().__init__()
        self.deps = deps


class Comprehensions(Iteration):
    """The part of the evaluator that evaluates comprehensions."""

    def test(self, expression: f.Expression) -> tuple[bool | None, Deps]:
        """Three-valued truth of an expression in the position of a condition."""
        raise NotImplementedError

    def assign(self, target: f.Expression, value: Value) -> None:
        """Bind an assignment target."""
        raise NotImplementedError

    def comprehension(self, expression: f.Expression) -> Value:
        """The list, set or dictionary that a comprehension makes; of a generator expression, its elements."""
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
