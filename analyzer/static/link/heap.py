"""The abstract heap: cells that only grow, and activations that are interpreted again when a cell they read grows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.checkout.project import Module
from sgl_graph.analyzer.static.link.agenda import Agenda
from sgl_graph.analyzer.static.link.cells import Cell
from sgl_graph.analyzer.static.link.values import ClassValue, FunctionValue, Value, Values

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.replay import Memory

_NOT_YET = 1 << 30


class Activation:
    """One function under one context (receiver class, or call site for functions that return closures).

    Attributes:
        function: None for module level.
        receiver: the exact receiver, for methods.
        pessimistic: reads that found nothing count as unknown, because nothing more will come.
    """

    __slots__ = (
        "context", "function", "memories", "module", "order", "parameters", "parent", "pessimistic", "queued", "receiver",
        "returns", "running", "runs", "starved", "variables", "yields",
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
        self.running = False
        #: Where it stood among the first interpretations that ended; a very late one until it was interpreted.
        self.order = _NOT_YET
        #: What its statements did the last time (see `replay`).
        self.memories: dict[Hashable, Memory] | None = None

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


class Heap:
    """Cells by key, and the agenda of activations to interpret again."""

    def __init__(self) -> None:
        self._cells: dict[Hashable, Cell] = {}
        self.agenda = Agenda()
        self.current: Activation | None = None
        #: Cells read by the statement that is being remembered, with what they held; None while none is.
        self.log: dict[Cell, Values] | None = None
        #: Set by what may answer otherwise the next time although no cell has grown.
        self.volatile = False

    def cell(self, key: Hashable) -> Cell:
        """The cell of a key, made on first use."""
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = Cell()
        return cell

    def new_cell(self) -> Cell:
        """A cell that its owner keeps."""
        return Cell()

    def known(self, key: Hashable) -> Cell | None:
        """The cell of a key if it exists."""
        return self._cells.get(key)

    def items(self) -> Iterable[tuple[Hashable, Cell]]:
        """All cells with their keys."""
        return self._cells.items()

    def read(self, cell: Cell) -> Values:
        """Values of a cell; the activation being interpreted becomes a reader."""
        current = self.current
        if current is not None:
            if cell.readers is not current:
                cell.read_by(current)
            log = self.log
            if log is not None and cell not in log:
                log[cell] = cell.values
        return cell.values

    def write(self, cell: Cell, values: Values) -> None:
        """Add values; readers are queued when something was new."""
        if values and cell.grow(values):
            for reader in cell.each_reader():
                self.agenda.add(reader)
