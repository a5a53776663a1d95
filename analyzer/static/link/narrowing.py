"""Narrowing: what a name may still be where a test has held or failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.models import Wanted
from sgl_graph.analyzer.static.link.values import (
    FALSE,
    NONE,
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
        elif kind == "n":
            self._keep(frame, test[1], lambda v: _truth(v) is not (not positive))
        elif kind == "cmp" and test[1][0] == "n" and len(test[2]) == 1:
            op, right = test[2][0]
            if right == ["v", None] and op in ("is", "is not", "==", "!="):
                wants_none = (op in ("is", "==")) == positive
                self._keep(frame, test[1][1], lambda v: _may_be_none(v) if wants_none else v is not NONE)
        elif kind == "c" and test[1] == ["n", "isinstance"] and len(test[2]) == 2 and test[2][0][0] == "n":
            self.narrow_type(frame, test[2][0][1], test[2][1], positive)

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
