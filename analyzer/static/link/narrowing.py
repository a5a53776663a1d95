"""Narrowing: what a name may still be where a test has held or failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import SETTLED, Frame
from sgl_graph.analyzer.static.link.latches import MAKING
from sgl_graph.analyzer.static.link.models import Wanted
from sgl_graph.analyzer.static.link.rowless import tested, without_rows
from sgl_graph.analyzer.static.link.truth import truth_of
from sgl_graph.analyzer.static.link.values import (
    BOTH,
    FALSE,
    NONE,
    NOTHING,
    TRUE,
    ClassValue,
    Constant,
    EnumMember,
    Instance,
    Unknown,
    Value,
    Values,
    just,
)
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Narrowing:
    """Leaves in the environment what a test lets through."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter

    def narrow(self, frame: Frame, test: Expression, positive: bool) -> None:
        kind = test[0]
        if kind == "u" and test[1] == "not":
            self.narrow(frame, test[2], not positive)
        elif kind == "bo" and (test[1] == "and") == positive:
            self.narrow(frame, test[2], positive)
            self.narrow(frame, test[3], positive)
        elif kind == "bo":
            self._one_of(frame, test, positive)
        elif kind == "a" and test[1][0] == "n":
            self._settle(frame, test, positive)
        elif kind == "n":
            self._keep(frame, test[1], lambda v: _truth(v) is not (not positive))
        elif kind == "cmp" and test[1][0] == "n" and len(test[2]) == 1:
            op, right = test[2][0]
            if right == ["v", None] and op in ("is", "is not", "==", "!="):
                wants_none = (op in ("is", "==")) == positive
                self._keep(frame, test[1][1], lambda v: _may_be_none(v) if wants_none else v is not NONE)
        elif kind == "cmp" and positive:
            for counted in tested(test):
                if counted[0] == "n" and counted[1] in frame.environment:
                    frame.environment[counted[1]] = without_rows(self._in.world, frame.environment[counted[1]])
        elif kind == "c" and test[1] == ["n", "isinstance"] and len(test[2]) == 2 and test[2][0][0] == "n":
            self.narrow_type(frame, test[2][0][1], test[2][1], positive)

    def _one_of(self, frame: Frame, test: Expression, positive: bool) -> None:
        """Of `a and b` that failed, or `a or b` that held: one part alone did so where the other surely did not."""
        other_than = Truth.TRUE if test[1] == "and" else Truth.FALSE
        for part, other in ((test[2], test[3]), (test[3], test[2])):
            if _is_plain(other) and truth_of(self._in.expressions.eval(frame, other))[0] is other_than:
                self.narrow(frame, part, positive)

    def _settle(self, frame: Frame, test: Expression, positive: bool) -> None:
        """Keep what a test says of an attribute of the receiver that has one truth value for the object's whole life.

        Objects of one class are not told apart, so the attribute holds what the constructors of all of them give; within one
        call of a method there is one of them. An attribute that other code stores may have changed by its next read.
        """
        function = frame.activation.function
        if not _of_receiver(frame, test) or function is None or function.facts.name in MAKING:
            return
        objects = frame.environment.get(test[1][1], NOTHING)
        if self._in.attributes.get(objects, test[2]) != BOTH:
            return
        if not all(isinstance(one, Instance) and self._is_kept(one, test[2]) for one in objects):
            return
        known = frame.environment.get(SETTLED, NOTHING)
        frame.environment[SETTLED] = known | just(_fact(test[2], positive))

    def _is_kept(self, instance: Instance, name: str) -> bool:
        """Whether constructors alone give an object this attribute: no other code stores it, and no class has it."""
        heap = self._in.world.heap
        return not any(
            heap.read(heap.cell(("turned", one.cls, name))) or self._in.class_level.find(one.cls, one, name)
            for one in self._in.world.concrete(instance)
        )

    def settled(self, frame: Frame, e: Expression, values: Values, facts: Values) -> Values:
        """What is read of an attribute of the receiver, given what tests have settled."""
        if values == BOTH and _of_receiver(frame, e):
            if _fact(e[2], True) in facts:
                return just(TRUE)
            if _fact(e[2], False) in facts:
                return just(FALSE)
        return values

    def narrow_type(self, frame: Frame, name: str, wanted: Expression, positive: bool) -> None:
        classes = self._in.expressions.eval(frame, wanted)
        wanted_classes = Wanted(self._in.world, classes)
        excluded = just(FALSE) if positive else just(TRUE)
        self._keep(frame, name, lambda v: self._in.models.is_instance(v, wanted_classes) != excluded)
        values = frame.environment.get(name)
        own = wanted_classes.own
        if positive and values and own and len(own) == wanted_classes.count:
            frame.environment[name] = _refined(values, own)

    def _keep(self, frame: Frame, name: str, wanted: Callable[[Value], Any]) -> None:
        values = frame.environment.get(name)
        if values:
            kept = frozenset(v for v in values if wanted(v))
            if len(kept) != len(values):
                frame.environment[name] = kept


#: Expressions whose evaluation leaves nothing behind.
_PLAIN = frozenset(("n", "a", "v", "u", "bo", "cmp"))


def _is_plain(e: Expression) -> bool:
    if e[0] == "cmp":
        return _is_plain(e[1]) and all(_is_plain(right) for _, right in e[2])
    return e[0] in _PLAIN and all(_is_plain(part) for part in e[1:] if isinstance(part, list))


def _of_receiver(frame: Frame, e: Expression) -> bool:
    """Whether an attribute is one of the object whose method runs."""
    function = frame.activation.function
    if function is None or function.owner is None or e[1][0] != "n" or not function.facts.parameters:
        return False
    return bool(e[1][1] == function.facts.parameters[0].name)


def _fact(attribute: str, positive: bool) -> Constant:
    return Constant.of(attribute if positive else f"not {attribute}")


def _refined(values: Values, classes: list[ClassValue]) -> Values:
    """Values of which a test says that they are instances of one of the classes."""
    if all(isinstance(v, Unknown) for v in values):
        return frozenset(Instance.of(cls, fuzzy=True) for cls in classes)
    found: set[Value] = set()
    for value in values:
        narrower: list[ClassValue] = []
        if isinstance(value, Instance) and value.fuzzy and not any(cls in value.cls.mro for cls in classes):
            narrower = [cls for cls in classes if value.cls in cls.mro]
        found.update([Instance.of(cls, fuzzy=True) for cls in narrower] or [value])
    return frozenset(found)


def _truth(value: Value) -> bool | None:
    if isinstance(value, Constant):
        return bool(value.value)
    return True if isinstance(value, (ClassValue, EnumMember)) else None


def _may_be_none(value: Value) -> bool:
    return value is NONE or isinstance(value, Unknown) or (isinstance(value, Constant) and value.value is None)
