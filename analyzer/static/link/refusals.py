"""Assertions that fail whenever they are come to: a function that has one ends there, and so does what called it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Statement
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.linked import Refusal, Truth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sgl_graph.analyzer.static.link.heap import Activation

#: Handlers that stop a failed assertion.
CATCHING = frozenset({"AssertionError", "Exception", "BaseException"})


class Refusals:
    """Which assertions the last interpretation of each activation saw fail."""

    def __init__(self) -> None:
        self._failing: dict[Activation, Statement] = {}

    def note(self, frame: Frame, statement: Statement, truth: Truth | None) -> None:
        """An assertion was come to; it fails for certain where nothing around it is open."""
        activation = frame.activation
        link = frame.guards
        while link is not None and link.value is Truth.TRUE:
            link = link.outer
        if truth is Truth.FALSE and link is None and not frame.tolerant:
            self._failing[activation] = statement
        elif self._failing.get(activation) is statement:
            del self._failing[activation]

    def found(self, activations: Iterable[Activation]) -> dict[str, Refusal]:
        """By function: the assertion at which it ends whoever calls it."""
        by_function: dict[str, list[Activation]] = {}
        for activation in activations:
            if activation.runs and activation.function is not None:
                by_function.setdefault(activation.qualname, []).append(activation)
        found: dict[str, Refusal] = {}
        for name, all_ in sorted(by_function.items()):
            failing = [self._failing[a] for a in all_ if a in self._failing]
            if len(failing) != len(all_) or any(statement is not failing[0] for statement in failing):
                continue
            function = all_[0].function
            assert function is not None
            body = function.module.function_body(function.index)
            if not any(statement[0] == "try" and catches(statement) for statement in walk(body)):
                found[name] = Refusal(render(failing[0][2]), function.module.path, failing[0][1])
        return found


def catches(statement: Statement) -> bool:
    """Whether a `try` has a handler for assertions that fail."""
    for kind, *_ in statement[3]:
        kinds = [None] if kind is None else kind[1] if kind[0] == "t" else [kind]
        if any(k is None or (k[0] in ("n", "a") and k[-1 if k[0] == "n" else 2] in CATCHING) for k in kinds):
            return True
    return False
