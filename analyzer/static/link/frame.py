"""The state of one interpretation of a function body: local names, guards, and the class being defined."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.latches import is_state
from sgl_graph.analyzer.static.link.values import NOTHING, ClassValue, Values
from sgl_graph.analyzer.static.linked import Guard, Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.replay import Memory

Environment = dict[str, Values]
#: The entry of an environment that holds what tests have settled of the receiver's attributes, each as a text; no name is such.
SETTLED = "."


@dataclass(slots=True)
class GuardLink:
    """One enclosing condition; a linked list, so that pushing one copies nothing."""

    outer: GuardLink | None
    test: Expression
    negated: bool
    file: str
    line: int
    value: Truth
    depends: tuple[str, ...]

    def guard(self) -> Guard:
        text = render(self.test)
        if self.negated:
            text = f"not ({text})"
        return Guard(text, self.file, self.line, self.value, self.depends)


class Frame:
    """One interpretation."""

    __slots__ = (
        "activation",
        "captured",
        "cls",
        "environment",
        "file",
        "guards",
        "imports",
        "locals",
        "memories",
        "rowless",
        "tolerant",
        "turn",
    )

    def __init__(self, activation: Activation, captured: bool, cls: ClassValue | None = None) -> None:
        self.activation = activation
        self.environment: Environment = {}
        self.guards: GuardLink | None = None
        self.captured = captured
        self.cls = cls
        self.file = activation.module.path
        function = activation.function
        self.locals: frozenset[str] | None = frozenset(function.facts.locals) if function is not None else None
        #: Names that its import statements bind: what they stand for is looked up when they are read.
        self.imports: set[str] = set()
        #: Memories of its statements, where they are remembered; which turns of the loops around is being interpreted.
        self.memories: dict[Hashable, Memory] | None = None
        self.turn = 0
        #: Texts of items, `x[0]`, that have no rows in the block that is interpreted.
        self.rowless: frozenset[str] = frozenset()
        #: Blocks around in which an import that fails is caught.
        self.tolerant = 0


def guards_of(link: GuardLink | None) -> tuple[Guard, ...]:
    """Guards, outermost first."""
    found: list[Guard] = []
    while link is not None:
        found.append(link.guard())
        link = link.outer
    found.reverse()
    return tuple(found)


def openness(link: GuardLink | None) -> tuple[int, int, int, int, tuple[int, ...]]:
    """How much a chain of conditions leaves open: those that fail, those that rest on configuration, and those unknown."""
    failing = resting = unknown = count = 0
    lines: list[int] = []
    while link is not None:
        count += 1
        lines.append(link.line)
        if link.value is Truth.FALSE:
            failing += 1
        elif link.value is Truth.UNKNOWN:
            unknown += 1
            resting += any(not is_state(name) for name in link.depends)
        link = link.outer
    return failing, resting, unknown, count, tuple(lines)


def merge(left: Environment, right: Environment) -> Environment:
    """Names after either of two branches."""
    if left is right:
        return left
    merged = dict(left)
    for name, values in right.items():
        known = merged.get(name)
        if known is None:
            merged[name] = values
        elif known is not values:
            merged[name] = known | values
    if SETTLED in merged:
        # What holds after one branch alone is not settled.
        merged[SETTLED] = left.get(SETTLED, NOTHING) & right.get(SETTLED, NOTHING)
    return merged
