"""Statements: control flow with three-valued tests, bindings, and what each branch leaves in the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.frame import Environment, Frame, merge
from sgl_graph.analyzer.static.link.models import Wanted
from sgl_graph.analyzer.static.link.objects import Container
from sgl_graph.analyzer.static.link.raising import cannot_raise
from sgl_graph.analyzer.static.link.replay import SIMPLE
from sgl_graph.analyzer.static.link.rowless import items_without_rows
from sgl_graph.analyzer.static.link.truth import compare, truth_of
from sgl_graph.analyzer.static.link.values import ANYTHING, JUST_NONE, TRUE, Instance, Values
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Statements:
    """Interprets blocks. `block` returns whether control may reach its end."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        #: The test that a case of a `match` stands for, by its case.
        self._equalities: dict[int, Expression] = {}
        #: Items that have no rows where a test holds, by the test.
        self._without_rows: dict[int, frozenset[str]] = {}
        self._table: dict[str, Callable[[Frame, Statement], bool]] = {
            "=": self._assign, "+=": self._augmented, ":": self._annotated, "e": self._expression, "if": self._if,
            "for": interpreter.loops.over, "while": interpreter.loops.as_long_as, "with": self._with, "try": self._try, "return": self._return,
            "raise": self._raise, "assert": self._assert, "del": self._delete, "import": interpreter.imports.plain,
            "from": interpreter.imports.names, "def": self._def, "class": self._class, "match": self._match, "break": self._jump,
            "continue": self._jump, "global": self._nothing, "nonlocal": self._nothing,
        }  # fmt: skip

    def block(self, frame: Frame, statements: list[Statement]) -> bool:
        """Interpret statements in order; False when control cannot pass the end."""
        held = frame.guards
        table = self._table
        survey = self._in.world.survey
        remembers = frame.memories is not None
        for statement in statements:
            kind = statement[0]
            if remembers and kind in SIMPLE:
                passes = self._in.replay.run(frame, statement, table[kind])
            else:
                passes = table[kind](frame, statement)
            if not passes and not survey:
                frame.guards = held
                return False
        frame.guards = held
        return True

    def head(self, frame: Frame, e: Expression) -> Values:
        """An expression at the head of a statement."""
        if frame.memories is not None:
            return self._in.replay.run(frame, e, self._in.expressions.eval)
        return self._in.expressions.eval(frame, e)

    # -- simple statements

    def _assign(self, frame: Frame, s: Statement) -> bool:
        value = s[3]
        targets = s[2]
        if _pairwise(targets, value):
            results = [self._in.expressions.eval(frame, item) for item in value[1]]
            for target, values in zip(targets[0][1], results, strict=True):
                self._in.assignments.assign(frame, target, values)
            return True
        values = self._in.expressions.eval(frame, value)
        for target in targets:
            self._in.assignments.assign(frame, target, values)
        return True

    def _augmented(self, frame: Frame, s: Statement) -> bool:
        left = self._in.expressions.eval(frame, s[2])
        right = self._in.expressions.eval(frame, s[4])
        kept = self._in.combining.in_place(s[3], left, right)
        if not left or len(kept) < len(left):
            made = self._in.combining.binary(frame, s, s[3], left - kept, right)
            self._in.assignments.assign(frame, s[2], kept | made)
        return True

    def _annotated(self, frame: Frame, s: Statement) -> bool:
        target = s[2]
        declared = self._in.annotations.types(s[3], frame.activation, frame.cls)
        if declared:
            heap = self._in.world.heap
            if frame.cls is not None and target[0] == "n":
                heap.write(cell_in(frame.cls.declared, target[1]), declared)
            elif target[0] == "a" and target[1][0] == "n":
                for owner in self._in.expressions.eval(frame, target[1]):
                    if isinstance(owner, Instance):
                        heap.write(cell_in(owner.cls.declared, target[2]), declared)
        if s[4] is not None:
            values = self._in.expressions.eval(frame, s[4])
            if values == ANYTHING and declared:
                values = declared
            self._in.assignments.assign(frame, target, values)
        return True

    def _expression(self, frame: Frame, s: Statement) -> bool:
        self._in.expressions.eval(frame, s[2])
        return True

    def _return(self, frame: Frame, s: Statement) -> bool:
        values = self._in.expressions.eval(frame, s[2]) if s[2] is not None else JUST_NONE
        self._in.world.heap.write(frame.activation.returns, values)
        return False

    def _raise(self, frame: Frame, s: Statement) -> bool:
        sides = self._in.world.sides
        if sides.apart and not self._in.world.survey and sides.raised(frame.activation, frame.guards):
            self._in.world.heap.volatile = True
        if s[2] is not None:
            values = self._in.expressions.eval(frame, s[2])
            self._in.line = s[1]
            self._in.implicit.construct_raised(frame, values)
        return False

    def _assert(self, frame: Frame, s: Statement) -> bool:
        truth, depends = self.test(frame, s[2])
        if not self._in.world.survey:
            self._in.world.refusals.note(frame, s, truth)
        self._in.narrowing.narrow(frame, s[2], True)
        if truth is Truth.UNKNOWN:
            self.push(frame, s[2], False, s[1], truth, depends)
        return truth is not Truth.FALSE

    def _delete(self, frame: Frame, s: Statement) -> bool:
        for target in s[2]:
            if target[0] != "n":
                owners = self._in.expressions.eval(frame, target[1] if target[0] in ("a", "s") else target)
                for owner in owners if target[0] == "s" else ():
                    if isinstance(owner, Container) and owner.changeable:
                        owner.length = None
        return True

    def _jump(self, frame: Frame, s: Statement) -> bool:
        return False

    def _nothing(self, frame: Frame, s: Statement) -> bool:
        return True

    def _def(self, frame: Frame, s: Statement) -> bool:
        self._in.definitions.function(frame, s[2])
        return True

    def _class(self, frame: Frame, s: Statement) -> bool:
        self._in.definitions.cls(frame, s[2])
        return True

    # -- branches

    def test(self, frame: Frame, test: Expression) -> tuple[Truth | None, tuple[str, ...]]:
        if _is_typing(test):
            return Truth.TRUE, ()
        values = self.head(frame, test)
        truth, depends = truth_of(values)
        if truth is None:
            self._in.starved()
            if frame.activation.pessimistic:
                return Truth.UNKNOWN, ()
        return truth, depends

    def push(
        self, frame: Frame, test: Expression, negated: bool, line: int, truth: Truth, depends: tuple[str, ...]
    ) -> None:
        frame.guards = self._in.world.guard(frame.guards, test, negated, frame.file, line, truth, depends)

    def _if(self, frame: Frame, s: Statement) -> bool:
        test, body, orelse = s[2], s[3], s[4]
        truth, depends = self.test(frame, test)
        survey = self._in.world.survey
        if truth is None and not survey:
            return False
        shown = truth or Truth.UNKNOWN
        inverse = _inverse(shown)
        held = frame.guards
        before = frame.environment
        passes_then = passes_else = True
        then_environment: Environment | None = None
        else_environment: Environment | None = before
        if shown is not Truth.FALSE or survey:
            frame.environment = dict(before)
            self.push(frame, test, False, s[1], shown, depends)
            self._in.narrowing.narrow(frame, test, True)
            typing = _is_typing(test)
            self._in.imports.typing += typing
            around = frame.rowless
            frame.rowless = around | self._rowless(test, body)
            passes_then = self.block(frame, body)
            frame.rowless = around
            self._in.imports.typing -= typing
            then_environment = frame.environment
            frame.guards = held
        if shown is not Truth.TRUE or survey:
            frame.environment = dict(before)
            self._in.narrowing.narrow(frame, test, False)
            if orelse:
                self.push(frame, test, True, s[1], inverse, depends)
                passes_else = self.block(frame, orelse)
                frame.guards = held
            else_environment = frame.environment
        else:
            else_environment = None
            passes_else = False
        if then_environment is None:
            passes_then = False
        if passes_then and passes_else and then_environment is not None and else_environment is not None:
            frame.environment = merge(then_environment, else_environment)
            return True
        if passes_then and then_environment is not None:
            frame.environment = then_environment
            if shown is not Truth.TRUE:
                self.push(frame, test, False, s[1], shown, depends)
            return True
        if passes_else and else_environment is not None:
            frame.environment = else_environment
            if inverse is not Truth.TRUE:
                self.push(frame, test, True, s[1], inverse, depends)
            return True
        frame.environment = before
        return False

    def _rowless(self, test: Expression, body: list[Statement]) -> frozenset[str]:
        known = self._without_rows.get(id(test))
        if known is None:
            known = self._without_rows[id(test)] = items_without_rows(test, body)
        return known

    def _match(self, frame: Frame, s: Statement) -> bool:
        subject = self.head(frame, s[2])
        before = frame.environment
        held = frame.guards
        result: Environment | None = None
        exhaustive = False
        for case in s[3]:
            pattern, guard, body = case
            truth = self._matches(frame, pattern, subject)
            if truth is Truth.FALSE and not self._in.world.survey:
                continue
            frame.environment = dict(before)
            if pattern[0] == "isinstance" and s[2][0] == "n":
                self._in.narrowing.narrow_type(frame, s[2][1], pattern[1], True)
            shown_pattern = pattern if pattern[0] not in ("or", "isinstance", "any", "x") else ["x"]
            test = self._equalities.get(id(case))
            if test is None:
                test = self._equalities[id(case)] = ["cmp", s[2], [["==", shown_pattern]]]
            self.push(frame, test, False, s[1], truth, ())
            inner: Truth | None = Truth.TRUE
            if guard is not None:
                inner, depends = self.test(frame, guard)
                if inner is Truth.FALSE and not self._in.world.survey:
                    frame.guards = held
                    continue
                self.push(frame, guard, False, s[1], inner or Truth.UNKNOWN, depends)
                self._in.narrowing.narrow(frame, guard, True)
            if self.block(frame, body):
                result = frame.environment if result is None else merge(result, frame.environment)
            frame.guards = held
            if truth is Truth.TRUE and inner is Truth.TRUE:
                exhaustive = True
                if not self._in.world.survey:
                    break
        if not exhaustive:
            result = before if result is None else merge(result, before)
        frame.environment = result if result is not None else before
        return result is not None

    def _matches(self, frame: Frame, pattern: Expression, subject: Values) -> Truth:
        kind = pattern[0]
        if kind == "any":
            return Truth.TRUE
        if kind == "or":
            found = {self._matches(frame, item, subject) for item in pattern[1]}
            if Truth.TRUE in found:
                return Truth.TRUE
            return Truth.FALSE if found == {Truth.FALSE} else Truth.UNKNOWN
        if kind == "x":
            return Truth.UNKNOWN
        if kind == "isinstance":
            wanted = Wanted(self._in.world, self._in.expressions.eval(frame, pattern[1]))
            results: Values = frozenset().union(*(self._in.models.is_instance(value, wanted) for value in subject))
            return truth_of(results)[0] or Truth.UNKNOWN
        truth, _ = truth_of(compare("==", subject, self._in.expressions.eval(frame, pattern)))
        return truth or Truth.UNKNOWN

    def _with(self, frame: Frame, s: Statement) -> bool:
        for item in s[2]:
            values = self._in.implicit.enter(frame, item, s[1])
            if item[1] is not None:
                self._in.assignments.assign(frame, item[1], values)
        return self.block(frame, s[3])

    def _try(self, frame: Frame, s: Statement) -> bool:
        before = frame.environment
        frame.environment = dict(before)
        catches = any(_catches_imports(handler[0]) for handler in s[3])
        frame.tolerant += catches
        passes = self.block(frame, s[2])
        frame.tolerant -= catches
        after = frame.environment
        if passes and s[4]:
            passes = self.block(frame, s[4])
            after = frame.environment
        result: Environment | None = after if passes else None
        for kind, name, body, _line in () if cannot_raise(self._in, frame, s[2]) else s[3]:
            frame.environment = merge(before, after)
            if kind is not None:
                self._in.expressions.eval(frame, kind)
            if name is not None:
                self._in.assignments.bind(frame, name, ANYTHING)
            if self.block(frame, body):
                result = frame.environment if result is None else merge(result, frame.environment)
        if s[5]:
            frame.environment = result if result is not None else merge(before, after)
            if not self.block(frame, s[5]):
                return False
            if result is not None:
                result = frame.environment
        frame.environment = result if result is not None else after
        return result is not None


_IMPORT_ERRORS = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def _catches_imports(kind: Expression | None) -> bool:
    """Whether a handler is for imports that fail."""
    if kind is None:
        return True
    kinds = kind[1] if kind[0] == "t" else [kind]
    return any(item[-1 if item[0] == "n" else 2] in _IMPORT_ERRORS for item in kinds if item[0] in ("n", "a"))


def _is_typing(test: Expression) -> bool:
    name = test[1] if test[0] == "n" else test[2] if test[0] == "a" else None
    return bool(name == "TYPE_CHECKING")


def _pairwise(targets: list[Expression], value: Expression) -> bool:
    """Whether `a, b = x, y` assigns item by item."""
    if value[0] != "t" or len(targets) != 1 or targets[0][0] != "t" or len(targets[0][1]) != len(value[1]):
        return False
    return not any(item[0] == "*" for item in (*value[1], *targets[0][1]))


def _inverse(truth: Truth) -> Truth:
    if truth is Truth.TRUE:
        return Truth.FALSE
    return Truth.TRUE if truth is Truth.FALSE else Truth.UNKNOWN


__all__ = ["TRUE", "Statements"]
