"""What a statement did the last time: done again only where something that it rests on has changed.

An activation is interpreted again whenever a cell that it read has grown, but most of its statements read others. From the
second time on, simple statements and tests are remembered with the names and the cells that they read; as long as none
has changed, what they left behind is put in their place. Nothing that they wrote needs to be written again: cells only grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.link.cells import Cell
from sgl_graph.analyzer.static.link.frame import SETTLED, Frame, GuardLink
from sgl_graph.analyzer.static.link.values import Values

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

Result = TypeVar("Result")
#: Statements that neither branch nor define anything.
SIMPLE = frozenset(("=", "+=", ":", "e", "return", "raise", "del"))
#: Interpretations of an activation before its statements are remembered: most have no more than two.
FIRST_RUNS = 1
#: Operations that cost more than looking at what was remembered.
_COSTLY = frozenset(("c", "a", "s", "C", "f"))


class Shape:
    """What a node mentions: names that it reads, and names that it binds."""

    __slots__ = ("binds", "reads")

    def __init__(self, reads: tuple[str, ...], binds: tuple[str, ...]) -> None:
        self.reads = reads
        self.binds = binds


class Memory:
    """One interpretation of a node: what it rested on, and what it left behind."""

    __slots__ = ("cells", "guards", "left", "line", "names", "result", "starved")

    def __init__(
        self,
        guards: GuardLink | None,
        names: tuple[tuple[str, Values | None], ...],
        cells: tuple[tuple[Cell, Values], ...],
        left: tuple[tuple[str, Values], ...],
        line: int,
        starved: bool,
        result: Any,
    ) -> None:
        self.guards = guards
        self.names = names
        self.cells = cells
        self.left = left
        self.line = line
        self.starved = starved
        self.result = result


class Replay:
    """Remembers and replays nodes for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._heap = interpreter.world.heap
        self._shapes: dict[int, Shape | None] = {}

    def run(self, frame: Frame, node: Expression | Statement, work: Callable[[Frame, Any], Result]) -> Result:
        """What `work` gives for a node, without doing it again where nothing that it rests on has changed."""
        memories = frame.memories
        assert memories is not None
        key = (id(node), frame.turn) if frame.turn else id(node)
        memory = memories.get(key)
        if memory is not None and self._holds(frame, memory):
            environment = frame.environment
            for name, values in memory.left:
                environment[name] = values
            self._in.line = memory.line
            if memory.starved:
                frame.activation.starved = True
            result: Result = memory.result
            return result
        identity = id(node)
        if identity in self._shapes:
            shape = self._shapes[identity]
        else:
            shape = self._shapes[identity] = _shape(node)
        if shape is None:
            return work(frame, node)
        return self._remember(frame, node, work, shape, key)

    def _holds(self, frame: Frame, memory: Memory) -> bool:
        if memory.guards is not frame.guards:
            return False
        environment = frame.environment
        for name, values in memory.names:
            now = environment.get(name)
            if now is not values and now != values:
                return False
        for cell, held in memory.cells:  # noqa: SIM110 - a generator costs more than the loop
            if cell.values is not held:
                return False
        return True

    def _remember(
        self, frame: Frame, node: Any, work: Callable[[Frame, Any], Result], shape: Shape, key: Any
    ) -> Result:
        heap = self._heap
        activation = frame.activation
        environment = frame.environment
        guards = frame.guards
        names = tuple([(name, environment.get(name)) for name in shape.reads])
        held_log, heap.log = heap.log, {}
        held_volatile, heap.volatile = heap.volatile, False
        starved, activation.starved = activation.starved, False
        result = work(frame, node)
        if not heap.volatile:
            left = [(name, frame.environment.get(name)) for name in shape.binds]
            assert frame.memories is not None
            frame.memories[key] = Memory(
                guards, names, tuple(heap.log.items()), tuple([(n, v) for n, v in left if v is not None]),
                self._in.line, activation.starved, result,
            )  # fmt: skip
        activation.starved |= starved
        heap.log = held_log
        heap.volatile |= held_volatile
        return result


def _shape(node: Any) -> Shape | None:
    """Names of a node; None where remembering it costs more than doing it, or where it defines a function."""
    reads: dict[str, None] = {}
    binds: dict[str, None] = {}
    costs = False
    stack: list[Any] = list(_parts(node, binds))
    while stack:
        part = stack.pop()
        kind = part[0] if part else None
        if kind == "n":
            reads[part[1]] = None
        elif kind == "l":
            return None
        elif kind != "v":
            if kind == "w":
                binds[part[1]] = None
            elif kind == "a" and part[1][0] == "n":
                reads[SETTLED] = None
            costs = costs or (isinstance(kind, str) and kind in _COSTLY)
            stack += [inner for inner in part if isinstance(inner, list)]
    return Shape(tuple(reads), tuple(binds)) if costs else None


def _parts(node: Any, binds: dict[str, None]) -> Iterable[Any]:
    """Expressions of a node that are read; `binds` gets the names that it assigns."""
    kind = node[0]
    if kind == "=":
        for target in node[2]:
            yield from _target(target, binds)
        yield node[3]
    elif kind == "+=":
        yield node[2]
        yield node[4]
        yield from _target(node[2], binds)
    elif kind == ":":
        yield from _target(node[2], binds)
        if node[4] is not None:
            yield node[4]
    elif kind in ("e", "return", "raise"):
        if node[2] is not None:
            yield node[2]
    elif kind == "del":
        yield from node[2]
    else:
        yield node


def _target(target: Expression, binds: dict[str, None]) -> Iterable[Any]:
    if target[0] == "n":
        binds[target[1]] = None
    elif target[0] in ("t", "L"):
        for item in target[1]:
            yield from _target(item, binds)
    elif target[0] == "*":
        yield from _target(target[1], binds)
    else:
        yield target
