"""Switches of objects that start-up may turn: a constructor gives a truth value, and other code the opposite one.

What such an attribute holds where it is read depends on what ran before, and writes are not ordered here. A test of one that
only start-up turns is as good as a test of configuration that is not settled: it holds for the whole life of the process,
and the source does not say which way. One that is turned while serving holds either way in its time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.link.values import BOTH, FALSE, TRUE, Bound, Constant, Values

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.heap import Activation
    from sgl_graph.analyzer.static.link.values import ClassValue, FunctionValue, Value

#: Functions that make an object.
MAKING = ("__init__", "__post_init__", "__new__")
#: Begins the names by which tests rest on one; no configuration is named so.
_MARK = "state "


class Latches:
    """Which attributes are switches, and who turns them."""

    def __init__(self) -> None:
        #: By attribute: what its constructors give, and the functions that give the opposite.
        self._given: dict[tuple[ClassValue, str], set[Values]] = {}
        self._turned: dict[tuple[ClassValue, str], dict[FunctionValue | str, Values]] = {}
        #: Who assigns to a property, by the function that sets it: it has the name of the one that reads it.
        self._setters: dict[Value, set[str]] = {}

    def note(self, cls: ClassValue, name: str, values: Values, writer: Activation | None) -> bool:
        """Note a store of truth values into an attribute of an object of the class.

        Returns:
            Whether code that makes no such object stores it.
        """
        if not values <= BOTH:
            return False
        function = writer.function if writer is not None else None
        making = function is not None and function.facts.name in MAKING and function.owner in cls.line
        if making:
            self._given.setdefault((cls, name), set()).add(values)
        elif writer is not None:
            turned = self._turned.setdefault((cls, name), {})
            who = function if function in self._setters else writer.qualname
            turned[who] = turned.get(who, values) | values
        return not making

    def set_by(self, setters: Iterable[Value], writer: Activation | None) -> None:
        """Note who assigns to a property."""
        for setter in setters:
            if isinstance(setter, Bound) and writer is not None:
                self._setters.setdefault(setter.function, set()).add(writer.qualname)

    def read(self, cls: ClassValue, name: str, values: Values) -> Values:
        """What a read of an attribute that holds either truth value yields: if it is a switch, the values say so."""
        if not self._is_latch(cls, name):
            return values
        origin = (f"{_MARK}{cls.facts.name}.{name}",)
        return frozenset((Constant.of(True, origin), Constant.of(False, origin)))

    def _is_latch(self, cls: ClassValue, name: str) -> bool:
        given, turned = self._given.get((cls, name)), self._turned.get((cls, name))
        if given is None or not turned or len(given) != 1:
            return False
        (first,) = given
        opposite = frozenset((FALSE,)) if first == {TRUE} else frozenset((TRUE,)) if first == {FALSE} else None
        return opposite is not None and all(values == opposite for values in turned.values())

    def turned_by(self) -> dict[str, frozenset[str]]:
        """Marked names of the switches, with the functions that turn each."""
        found: dict[str, frozenset[str]] = {}
        for (cls, name), functions in self._turned.items():
            marked = f"{_MARK}{cls.facts.name}.{name}"
            if self._is_latch(cls, name):
                who = [{f} if isinstance(f, str) else self._setters[f] for f in functions]
                found[marked] = found.get(marked, frozenset()).union(*who)
        return found


def is_state(name: str) -> bool:
    """Whether a test rests on a switch of an object rather than on configuration."""
    return name.startswith(_MARK)


def settled_names(depends: Iterable[str], open_states: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Names that a test rests on, without the switches that are turned while serving."""
    return tuple(name.removeprefix(_MARK) for name in depends if not is_state(name) or name in open_states)
