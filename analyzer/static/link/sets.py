"""Sets of values: one object for each, and what is asked of a set again and again, worked out once."""

from __future__ import annotations

from sgl_graph.analyzer.static.link.objects import Configured, Container, Foreign, Method, Scanned, Super, Typed
from sgl_graph.analyzer.static.link.values import (
    FALSE,
    NONE,
    TRUE,
    Bound,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    ImportReference,
    Instance,
    Unknown,
    Value,
    Values,
    Wrapped,
)


class Traits:
    """What is known of a set by its members alone.

    Attributes:
        callables: functions that are called where the set is handed to code that is not seen.
        constant: whether all are constants.
        externals: whether any lies outside the checkout.
        imports: whether any is the reference of an import.
        unknown: whether any is unknown.
    """

    __slots__ = ("callables", "constant", "externals", "imports", "ordered", "unknown", "values")

    def __init__(self, values: Values) -> None:
        kinds = {type(value) for value in values}
        self.values = values
        self.constant = kinds == _CONSTANT
        self.externals = External in kinds
        self.imports = ImportReference in kinds
        self.unknown = Unknown in kinds
        self.callables: tuple[Value, ...] = ()
        if not kinds.isdisjoint(_CALLED):
            self.callables = tuple(v for v in values if type(v) in _FUNCTIONS or _is_partial(v))
        self.ordered: tuple[Value, ...] | None = None


_CONSTANT = {Constant}
_FUNCTIONS = (FunctionValue, Bound, Wrapped)
_CALLED = {*_FUNCTIONS, Container}
_known: dict[Values, Traits] = {}


def _is_partial(value: Value) -> bool:
    return type(value) is Container and value.kind == "partial"


def traits(values: Values) -> Traits:
    """The traits of a set."""
    known = _known.get(values)
    if known is None:
        known = _known[values] = Traits(values)
    return known


def interned(values: Values) -> Values:
    """The one object for a set."""
    return traits(values).values


def ordered(values: Values) -> tuple[Value, ...]:
    """Members in an order that does not hang on where objects lie in memory."""
    known = traits(values)
    if known.ordered is None:
        known.ordered = tuple(sorted(values, key=repr))
    return known.ordered


def reset() -> None:
    """Forget sets, and interned values that hold on to a project; called before each link so that runs share no state."""
    _known.clear()
    for kind in (
        Constant,
        External,
        Instance,
        EnumMember,
        Bound,
        Wrapped,
        Method,
        Super,
        Typed,
        Scanned,
        Configured,
        Foreign,
    ):
        kind._known.clear()
    for constant in (NONE, TRUE, FALSE):
        Constant._known[(type(constant.value), constant.value, ())] = constant
