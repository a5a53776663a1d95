"""Execution of statements, flow-sensitive: known tests take one branch, unknown ones run both and join."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sgl_graph.analyzer.static.config import comparison
from sgl_graph.analyzer.static.config.exceptions import matches
from sgl_graph.analyzer.static.config.journal import FELL_THROUGH, Level, Outcome, Raised, Signal
from sgl_graph.analyzer.static.config.loops import Loops
from sgl_graph.analyzer.static.config.machine import Exhausted, Unsupported, bound_names
from sgl_graph.analyzer.static.config.narrowing import narrow
from sgl_graph.analyzer.static.config.possibilities import deps_of, unknown
from sgl_graph.analyzer.static.config.values import NO_DEPS, Deps, Value
from sgl_graph.analyzer.static.extract import facts as f

_LEAVING = ("return", "break", "continue")


class Statements(Loops):
    """The part of the evaluator that runs statements."""

    def execute(self, body: Sequence[f.Statement]) -> Signal:
        for statement in body:
            self.steps += 1
            if self.steps > self.limit:
                raise Exhausted("step limit")
            self.line = statement[1]
            try:
                signal = _EXECUTE[statement[0]](self, statement)
            except Exhausted:
                raise
            except Unsupported as reason:
                self._give_up(statement, str(reason))
                continue
            except Raised as raised:
                # An error that the model of Python, not the program, meets outside every handler is no evidence.
                if raised.explicit or self.try_depth:
                    raise
                self._give_up(statement, str(raised.value.attrs.get("args", "")))
                continue
            if signal is not FELL_THROUGH and signal[0]:
                return signal
        return FELL_THROUGH

    def _give_up(self, statement: f.Statement, reason: str) -> None:
        """Forget what a statement that cannot be evaluated may write."""
        place = self.place()
        self.note(place, reason)
        forgotten = unknown([f"source:{place.file}:{statement[1]}"], place)
        targets = statement[2] if statement[0] == "=" else [statement[2]] if statement[0] in ("+=", ":") else []
        for target in targets:
            try:
                self.assign(target, forgotten)
            except (Raised, Unsupported):
                continue
        if statement[0] in ("for", "while", "with", "if", "try"):
            for name in bound_names(statement):
                self.store(name, forgotten)
        self.havoc_body([statement])

    def note(self, place: object, reason: str) -> None:
        """Record that a statement could not be evaluated."""

    def havoc_body(self, body: Sequence[f.Statement]) -> None:
        """Make unknown what statements may write beyond local names."""
        raise NotImplementedError

    # -- compound statements

    def _if(self, statement: f.Statement) -> Signal:
        truth, deps = self.test(statement[2])
        if truth is None:

            def branch(outcome: bool) -> Callable[[], Signal]:
                def run() -> Signal:
                    narrow(self, statement[2], outcome)
                    return self.execute(statement[3] if outcome else statement[4])

                return run

            return self.fork([branch(True), branch(False)], deps)
        body = statement[3] if truth else statement[4]
        if not deps:
            return self.execute(body)
        held = self.control
        self.control = held | deps
        try:
            signal = self.execute(body)
        finally:
            # What follows a branch that may have left rests on the test as well, until the function returns.
            if _leaves(statement[3]) or _leaves(statement[4]):
                self.control = held | deps
            else:
                self.control = held
        return signal

    def _with(self, statement: f.Statement) -> Signal:
        suppressed = False
        for expression, target in statement[2]:
            manager = self.evaluate(expression)
            entered, suppresses = self.enter(manager)
            suppressed = suppressed or suppresses
            if target is not None:
                self.assign(target, entered)
        if not suppressed:
            return self.execute(statement[3])
        return self._guarded(statement[3], [[None, None, [], statement[1]]], [], [])

    def enter(self, manager: Value) -> tuple[Value, bool]:
        """What a context manager gives, and whether it swallows exceptions."""
        raise NotImplementedError

    def _try(self, statement: f.Statement) -> Signal:
        return self._guarded(statement[2], statement[3], statement[4], statement[5])

    def _guarded(
        self, body: list[f.Statement], handlers: list[Any], orelse: list[f.Statement], final: list[f.Statement]
    ) -> Signal:
        if handlers and all(_raises_again(handler) for handler in handlers):
            handlers = []
        depth = len(self.levels)
        self.levels.append(Level())
        held, frames = self.control, len(self.frames)
        catching = 1 if handlers else 0
        self.try_depth += catching
        try:
            kind, value = self.execute(body)
            if not kind:
                kind, value = self.execute(orelse)
        except Raised as raised:
            kind, value = "raise", raised
        except BaseException:
            self.abandon(depth)
            raise
        finally:
            self.try_depth -= catching
            del self.frames[frames:]
            self.control = held
        difference, pending = self.take(depth)
        outcomes: list[Outcome] = []
        for outcome in [Outcome(kind, value, difference), *pending]:
            if outcome.kind == "raise" and handlers:
                outcomes += self._handle(outcome, handlers)
            else:
                outcomes.append(outcome)
        kind, value = self.merge(outcomes, NO_DEPS) if len(outcomes) > 1 else self._single(outcomes[0], final)
        if final:
            signal = self.execute(final)
            if signal[0]:
                return signal
        return kind, value

    def _single(self, outcome: Outcome, final: list[f.Statement]) -> Signal:
        """Go on with the only outcome; `finally` runs before an exception goes on."""
        for item, state in outcome.difference.values():
            self.touch(item)
            item.restore(state)
        if outcome.kind == "raise":
            if final:
                self.execute(final)
            raise outcome.value
        return outcome.kind, outcome.value

    def _handle(self, outcome: Outcome, handlers: list[Any]) -> list[Outcome]:
        """Run the handler that takes an exception, from the state at which it was raised."""
        depth = len(self.levels)
        self.levels.append(Level())
        for item, state in outcome.difference.values():
            self.touch(item)
            item.restore(state)
        raised: Raised = outcome.value
        kind, value = "raise", outcome.value
        frames = len(self.frames)
        try:
            for type_, name, body, line in handlers:
                verdict = True if type_ is None else matches(self, raised.value, self.evaluate(type_))
                if verdict is False:
                    continue
                self.line = line
                if name:
                    self.store(name, raised.value)
                self.handling.append(raised)
                try:
                    kind, value = self.execute(body)
                finally:
                    self.handling.pop()
                break
        except Raised as again:
            kind, value = "raise", again
        except BaseException:
            self.abandon(depth)
            raise
        finally:
            del self.frames[frames:]
        difference, pending = self.take(depth)
        return [Outcome(kind, value, difference), *pending]

    def _match(self, statement: f.Statement) -> Signal:
        subject = self.evaluate(statement[2])
        return self._match_cases(subject, statement[3], 0)

    def _match_cases(self, subject: Value, cases: list[Any], position: int) -> Signal:
        if position == len(cases):
            return FELL_THROUGH
        pattern, guard, body = cases[position]
        verdict, deps = self._pattern(subject, pattern)
        if guard is not None and verdict is not False:
            second, more = self.test(guard)
            deps |= more
            verdict = second if verdict or second is False else None
        if verdict is False:
            return self._match_cases(subject, cases, position + 1)
        if verdict is None:
            return self.fork(
                [lambda: self.execute(body), lambda: self._match_cases(subject, cases, position + 1)], deps
            )
        return self.execute(body)

    def _pattern(self, subject: Value, pattern: f.Expression) -> tuple[bool | None, Deps]:
        kind = pattern[0]
        if kind == "any":
            return True, NO_DEPS
        if kind == "x":
            return None, deps_of(subject)
        if kind == "or":
            found = [self._pattern(subject, item) for item in pattern[1]]
            deps: Deps = frozenset().union(*(item[1] for item in found))
            verdicts = [item[0] for item in found]
            return (True if True in verdicts else None if None in verdicts else False), deps
        if kind == "isinstance":
            return comparison.simple_truth(self.is_instance(subject, self.evaluate(pattern[1])))
        return comparison.compare(self, "==", subject, self.evaluate(pattern))

    def is_instance(self, value: Value, kind: Value) -> Value:
        """`isinstance(value, kind)`."""
        raise NotImplementedError


def _leaves(body: Sequence[f.Statement]) -> bool:
    return bool(body) and body[-1][0] in _LEAVING


def _raises_again(handler: list[Any]) -> bool:
    """Whether a handler only adds to an exception that goes on: it catches nothing."""
    body = handler[2]
    return bool(body) and body[-1][0] == "raise"


_EXECUTE: dict[str, Callable[[Any, f.Statement], Signal]] = {
    "=": Statements._assign, "+=": Statements._augmented, ":": Statements._annotated, "e": Statements._expression,
    "if": Statements._if, "for": Statements.run_for, "while": Statements.run_while, "with": Statements._with,
    "try": Statements._try, "return": Statements._return, "raise": Statements._raise, "assert": Statements._assert,
    "del": Statements._delete, "global": Statements._scope, "nonlocal": Statements._scope, "break": Statements._leave,
    "continue": Statements._leave, "import": Statements._import, "from": Statements._from, "def": Statements._define,
    "class": Statements._define, "match": Statements._match,
}  # fmt: skip
