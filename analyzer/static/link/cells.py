"""Cells: what a variable, an attribute or an element may hold, growing only."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeVar

from sgl_graph.analyzer.static.link.sets import interned
from sgl_graph.analyzer.static.link.values import NOTHING, UNKNOWN, Constant, Value, Values

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.heap import Activation

Key = TypeVar("Key")
#: More distinct scalars than this in one cell say no more than "some scalar".
_MOST_CONSTANTS = 40
_MOST_VALUES = 160


class Cell:
    """A set of values that only grows, with the activations that read it."""

    # There are hundreds of thousands of cells, most with one value and one reader: no empty containers are kept.
    __slots__ = ("constants", "readers", "values")

    def __init__(self) -> None:
        #: What the cell holds; another object whenever it has grown.
        self.values: Values = NOTHING
        #: One, or a dictionary, which keeps the order in which they came: they are queued again in that order.
        self.readers: Activation | dict[Activation, None] | None = None
        self.constants = 0

    def read_by(self, activation: Activation) -> None:
        """Note a reader."""
        readers = self.readers
        if readers is None:
            self.readers = activation
        elif type(readers) is dict:
            readers[activation] = None
        elif readers is not activation:
            self.readers = {readers: None, activation: None}  # type: ignore[dict-item]

    def each_reader(self) -> list[Activation]:
        """The readers in the order in which they came."""
        readers = self.readers
        if readers is None:
            return []
        return list(readers) if isinstance(readers, dict) else [readers]

    def peek(self) -> Values:
        """The values, without becoming a reader."""
        return self.values

    def grow(self, values: Values) -> bool:
        """Add values; True when any was new."""
        own = self.values
        if values is own or values <= own:
            return False
        if not own and len(values) == 1:
            (value,) = values
            self.constants = 1 if _counts(value) else 0
            self.values = values
            return True
        new: Collection[Value] = values - own if own else values
        if self.constants + len(new) > _MOST_CONSTANTS:
            new = sorted(new, key=repr)  # which of them are kept does not hang on where objects lie in memory
        added: set[Value] = set()
        for value in new:
            if _counts(value):
                if self.constants >= _MOST_CONSTANTS:
                    added.add(UNKNOWN)
                    continue
                self.constants += 1
            elif len(own) > _MOST_VALUES:
                added.add(UNKNOWN)
                continue
            added.add(value)
        grown = own | added
        if len(grown) == len(own):
            return False
        self.values = interned(grown)
        return True


def _counts(value: Value) -> bool:
    return type(value) is Constant and type(value.value) in (int, str, float)


def cell_in(table: dict[Key, Cell], key: Key) -> Cell:
    """The cell of a key in a table, made on first use."""
    cell = table.get(key)
    if cell is None:
        cell = table[key] = Cell()
    return cell
