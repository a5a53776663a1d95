"""Tests by which start-up chooses what captures: one class of runners where it holds, another where it does not.

A test that only running code can tell may hold at one time and not at another, so both of its branches count as executed.
Not so where start-up alone comes to it: it is decided once, and of the objects that the branches make only one kind ever
exists. Such a test rests on the attributes that it reads as it would rest on configuration that is not settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link.frame import GuardLink
from sgl_graph.analyzer.static.linked import Case, Guard, Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.checkout.project import Module
    from sgl_graph.analyzer.static.extract.facts import Statement
    from sgl_graph.analyzer.static.link.values import FunctionValue
    from sgl_graph.analyzer.static.link.world import CallRecord

#: Locals that a test is followed through to the attributes that it reads.
_MOST_NAMES = 16


class Alternatives:
    """Which tests choose between classes that capture.

    Args:
        live: calls of code that runs.
        capturing: classes whose objects capture.
        once: whether a function is executed by start-up alone.
        functions: functions by qualified name.
    """

    def __init__(
        self,
        live: Iterable[CallRecord],
        capturing: frozenset[str],
        once: Callable[[str], bool],
        functions: Callable[[str], FunctionValue | None],
    ) -> None:
        self._resting: dict[tuple[str, int], tuple[str, ...]] = {}
        tests: dict[tuple[str, int, str], None] = {}
        sides: dict[tuple[str, int], tuple[GuardLink, dict[bool, set[str]]]] = {}
        for record in live:
            made = record.constructs & capturing
            link = record.firmest_guards() if made else None
            while link is not None:
                if link.value is Truth.UNKNOWN and not link.depends:
                    _, made_by = sides.setdefault((record.caller, id(link.test)), (link, {}))
                    made_by.setdefault(link.negated, set()).update(made)
                link = link.outer
        for (caller, test), (link, made_by) in sides.items():
            if len(made_by) == 2 and not made_by[True] & made_by[False] and once(caller):
                names = _attributes(link.test, functions(caller))
                self._resting[caller, test] = names or (render(link.test),)
                tests[link.file, link.line, render(link.test)] = None
        #: The tests that choose, each once as it holds and as it does not.
        self.cases = [
            (Case(text, file, line, True), Case(text, file, line, False)) for file, line, text in sorted(tests)
        ]

    def guards(self, caller: str, link: GuardLink | None) -> tuple[Guard, ...]:
        """Guards of a call, outermost first; those that choose rest on what their tests read."""
        found: list[Guard] = []
        while link is not None:
            names = self._resting.get((caller, id(link.test))) if self._resting else None
            found.append(link.guard() if names is None else replace(link.guard(), depends=names))
            link = link.outer
        found.reverse()
        return tuple(found)


def _attributes(test: Expression, function: FunctionValue | None) -> tuple[str, ...]:
    """Attributes of objects that a test reads, itself or by the locals that it names; as the source writes them."""
    if function is None:
        return ()
    module: Module = function.module
    bound = _bindings(module.function_body(function.index))
    names = {parameter.name for parameter in function.facts.parameters} | bound.keys()
    found: set[str] = set()
    seen: set[str] = set()
    stack = [test]
    while stack and len(seen) < _MOST_NAMES:
        e = stack.pop()
        if e[0] == "n":
            if e[1] not in seen:
                seen.add(e[1])
                stack += bound.get(e[1], ())
        elif e[0] == "a":
            if _root(e) in names:
                found.add(render(e))
        elif e[0] == "C":
            names |= {target[1] for target, _, _ in e[3] if target[0] == "n"}
            stack += [*e[2], *(test for _, _, tests in e[3] for test in tests)]
        elif e[0] == "c":
            stack += [e[1], *e[2]]
        else:
            stack += _inner(e)
    return tuple(sorted(found))


def _root(e: Expression) -> str | None:
    while e[0] in ("a", "c", "s"):
        e = e[1]
    return e[1] if e[0] == "n" else None


def _inner(e: Expression) -> Iterator[Expression]:
    """Expressions directly inside one, those in lists of operands included."""
    for part in e[1:]:
        if isinstance(part, list) and part:
            if isinstance(part[0], str):
                yield part
            else:
                yield from (inner for inner in part if isinstance(inner, list) and inner)


def _bindings(body: list[Statement]) -> dict[str, list[Expression]]:
    """What a body's plain assignments bind to its names, nested blocks included."""
    found: dict[str, list[Expression]] = {}
    for statement in walk(body):
        if statement[0] == "=":
            for target in statement[2]:
                if target[0] == "n":
                    found.setdefault(target[1], []).append(statement[3])
    return found
