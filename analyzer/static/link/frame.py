"""The state of one interpretation of a function body: local names, guards, and the class being defined."""

from __future__ import annotations

from dataclasses import dataclass

from sgl_graph.analyzer.static.facts import Expression
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import ClassValue, Values
from sgl_graph.analyzer.static.linked import Guard, Truth
from sgl_graph.analyzer.static.text import render

Environment = dict[str, Values]


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

    __slots__ = ("activation", "captured", "cls", "environment", "file", "guards", "locals", "loops")

    def __init__(self, activation: Activation, captured: bool, cls: ClassValue | None = None) -> None:
        self.activation = activation
        self.environment: Environment = {}
        self.guards: GuardLink | None = None
        self.captured = captured
        self.cls = cls
        self.file = activation.module.path
        function = activation.function
        self.locals: frozenset[str] | None = frozenset(function.facts.locals) if function is not None else None
        self.loops = 0


def guards_of(link: GuardLink | None) -> tuple[Guard, ...]:
    """Guards, outermost first."""
    found: list[Guard] = []
    while link is not None:
        found.append(link.guard())
        link = link.outer
    found.reverse()
    return tuple(found)


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
    return merged
