"""The abstract heap: cells that only grow, and activations that are interpreted again when a cell they read grows."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

from sgl_graph.analyzer.static.link.values import (
    NOTHING,
    UNKNOWN,
    ClassValue,
    Constant,
    FunctionValue,
    Value,
    Values,
)
from sgl_graph.analyzer.static.project import Module

#: More distinct scalars than this in one cell say no more than "some scalar".
_MOST_CONSTANTS = 40
_MOST_VALUES = 160


class Activation:
    """One function under one context (receiver class, or call site for functions that return closures).

    Attributes:
        function: None for module level.
        receiver: the exact receiver, for methods.
        pessimistic: reads that found nothing count as unknown, because nothing more will come.
    """

    __slots__ = (
        "context", "done", "function", "key", "module", "parameters", "parent", "pessimistic", "queued", "receiver",
        "returns", "runs", "starved", "variables", "yields",
    )  # fmt: skip

    def __init__(
        self, module: Module, function: FunctionValue | None, receiver: Value | None, context: Hashable
    ) -> None:
        self.module = module
        self.function = function
        self.receiver = receiver
        self.context = context
        self.parent: Activation | None = function.parent if function is not None else None
        self.parameters: dict[str, Cell] = {}
        self.variables: dict[str, Cell] = {}
        self.returns = Cell()
        self.yields = Cell()
        self.queued = False
        self.pessimistic = False
        self.starved = False
        self.runs = 0
        self.done = False

    @property
    def qualname(self) -> str:
        return self.function.qualname if self.function is not None else f"{self.module.name}:<module>"

    @property
    def owner(self) -> ClassValue | None:
        return self.function.owner if self.function is not None else None

    def variable(self, name: str) -> Cell:
        """Cell of a local that nested functions read."""
        cell = self.variables.get(name)
        if cell is None:
            cell = self.variables[name] = Cell()
        return cell

    def parameter(self, name: str) -> Cell:
        """Cell of a parameter."""
        cell = self.parameters.get(name)
        if cell is None:
            cell = self.parameters[name] = Cell()
        return cell


class Cell:
    """A set of values that only grows, with the activations that read it."""

    # There are hundreds of thousands of cells, most with one value and one reader: no empty containers are kept.
    __slots__ = ("_values", "constants", "readers")

    def __init__(self) -> None:
        self._values: Values = NOTHING
        #: A dictionary, not a set: readers are queued again in the order in which they came.
        self.readers: dict[Activation, None] | None = None
        self.constants = 0

    def peek(self) -> Values:
        """The values, without becoming a reader."""
        return self._values

    def grow(self, values: Iterable[Value]) -> bool:
        """Add values; True when any was new."""
        own = self._values
        if not own and self.constants == 0 and isinstance(values, frozenset) and len(values) == 1:
            (value,) = values
            self.constants = 1 if _counts(value) else 0
            self._values = values
            return True
        new = [value for value in values if value not in own]
        if not new:
            return False
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
        self._values = grown
        return True


def _counts(value: Value) -> bool:
    return type(value) is Constant and type(value.value) in (int, str, float)


class Heap:
    """Cells by key, and the queue of activations to interpret again."""

    def __init__(self) -> None:
        self._cells: dict[Hashable, Cell] = {}
        self.queue: deque[Activation] = deque()
        self.current: Activation | None = None

    def cell(self, key: Hashable) -> Cell:
        """The cell of a key, made on first use."""
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = Cell()
        return cell

    def known(self, key: Hashable) -> Cell | None:
        """The cell of a key if it exists."""
        return self._cells.get(key)

    def items(self) -> Iterable[tuple[Hashable, Cell]]:
        """All cells with their keys."""
        return self._cells.items()

    def read(self, cell: Cell) -> Values:
        """Values of a cell; the activation being interpreted becomes a reader."""
        if self.current is not None:
            if cell.readers is None:
                cell.readers = {}
            cell.readers[self.current] = None
        return cell.peek()

    def write(self, cell: Cell, values: Values) -> None:
        """Add values; readers are queued when something was new."""
        if values and cell.grow(values):
            for reader in list(cell.readers or ()):
                self.enqueue(reader)

    def enqueue(self, activation: Activation) -> None:
        """Interpret an activation (again) later."""
        if not activation.queued:
            activation.queued = True
            self.queue.append(activation)
