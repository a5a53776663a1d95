"""Which functions return closures or what they were given: their call sites must be kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.extract.shape import is_short
from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import FunctionValue, Value, is_named


class Factories:
    """Answers from the bodies of functions, once each."""

    def __init__(self) -> None:
        self._factories: dict[tuple[str, int], bool] = {}

    def is_factory(self, function: FunctionValue) -> bool:
        """Whether a function returns a closure or one of its parameters, so that call sites must be kept apart."""
        key = (function.module.name, function.index)
        known = self._factories.get(key)
        if known is None:
            body = function.module.function_body(function.index)
            facts = function.facts
            nested = {function.module.facts.functions[s[2]].name for s in _statements(body) if s[0] == "def"}
            parameters: set[str] = set()
            if is_short(facts):
                parameters = {p.name for p in facts.parameters if p.name not in ("self", "cls")}
            known = any(
                s[0] == "return" and s[2] is not None and _mentions(s[2], nested, parameters) for s in _statements(body)
            )
            self._factories[key] = known
        return known


def told(caller: Activation | None, arguments: Arguments) -> Iterator[tuple[int, Value]]:
    """What tells calls of a factory apart besides where they stand: an object that its class keeps by name, and, in a function that
    constants tell apart, the function that is given."""
    context = caller.context if caller is not None else None
    within = type(context) is tuple and context[:1] != ("factory",)
    for position, values in enumerate(arguments.positional):
        if len(values) == 1:
            (value,) = values
            if is_named(value) or (within and isinstance(value, FunctionValue)):
                yield position, value


def _statements(body: list[Statement]) -> Iterable[Statement]:
    """All statements of a body, nested blocks included, nested definitions not."""
    for statement in body:
        yield statement
        for part in statement[1:]:
            if isinstance(part, list) and part and isinstance(part[0], list):
                inner = part[0]
                if inner and isinstance(inner[0], str) and inner[0] in _STATEMENT_KINDS:
                    yield from _statements(part)
                elif inner and statement[0] in ("try", "match"):
                    for case in part:
                        if isinstance(case, list) and len(case) > 2 and isinstance(case[2], list):
                            yield from _statements([s for s in case[2] if isinstance(s, list)])


_STATEMENT_KINDS = {
    "=", "+=", ":", "e", "if", "for", "while", "with", "try", "return", "raise", "assert", "del", "global", "nonlocal",
    "break", "continue", "import", "from", "def", "class", "match",
}  # fmt: skip


def _mentions(e: Expression, nested: set[str], parameters: set[str]) -> bool:
    kind = e[0]
    if kind == "l":
        return True
    if kind == "n":
        return e[1] in nested or e[1] in parameters
    if kind == "c":
        return any(_mentions(item[-1] if item[0] in ("k", "*", "**") else item, nested, set()) for item in e[2])
    if kind == "i":
        return _mentions(e[2], nested, parameters) or _mentions(e[3], nested, parameters)
    if kind == "bo":
        return _mentions(e[2], nested, set()) or _mentions(e[3], nested, set())
    if kind == "t":
        return any(_mentions(item, nested, parameters) for item in e[1])
    return False
