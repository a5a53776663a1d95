"""How much padding a runner accepts before it leaves a batch to eager execution, and which batches that turns away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.scopes import Scope

_GREATER = {">", ">="}


@dataclass(frozen=True, slots=True)
class PaddingLimit:
    """A batch of `n` runs eagerly when its captured size exceeds `factor * n`, and the statement that decides it."""

    factor: float
    file: str
    line: int
    qualname: str


def padding_limit(types: GraphTypes, runner: str) -> PaddingLimit | None:
    """The limit that the runner's own class, or an ancestor of it, sets: `if padded > n * FACTOR: return False`."""
    for ancestor in types.mro(runner):
        for method in types.methods(ancestor).values():
            if method.function is None:
                continue
            for statement in walk(method.module.function_body(method.index)):
                factor = _refusal(types, method, statement)
                if factor is not None:
                    return PaddingLimit(factor, method.module.path, statement[1], method.public_name)
    return None


def _refusal(types: GraphTypes, scope: Scope, statement: Statement) -> float | None:
    """The constant of `if padded > n * FACTOR: return False`, where `padded` comes from a list of sizes."""
    if statement[0] != "if" or not _gives_false(statement[3]):
        return None
    test = statement[2]
    if test[0] != "cmp" or len(test[2]) != 1 or test[2][0][0] not in _GREATER:
        return None
    right = test[2][0][1]
    if right[0] != "b" or right[1] != "*" or not _padded(scope, test[1]):
        return None
    return next((n for part in (right[2], right[3]) if (n := _number(types, scope, part)) is not None), None)


def _gives_false(body: Sequence[Statement]) -> bool:
    last = body[-1] if body else ["x", 0]
    return last[0] == "return" and last[2] == ["v", False]


def _padded(scope: Scope, item: Expression) -> bool:
    """Whether a local is what a call made of a number and the runner's list of sizes."""
    if item[0] != "n":
        return False
    made = (b.expression for b in scope.bindings.get(item[1], ()) if b.kind == "value")
    return any(value[0] == "c" and len(value[2]) >= 2 for value in made)


def _number(types: GraphTypes, scope: Scope, item: Expression) -> float | None:
    if item[0] == "v" and type(item[1]) in (int, float):
        return float(item[1])
    home = types.scopes.get(f"{scope.module.name}:<module>")
    if item[0] != "n" or home is None:
        return None
    found = [b.expression for b in home.bindings.get(item[1], ()) if b.kind == "value"]
    if len(found) == 1 and found[0][0] == "v" and type(found[0][1]) in (int, float):
        return float(found[0][1])
    return None


def left_to_eager(sizes: Sequence[int], limit: PaddingLimit | None) -> Iterator[tuple[int, int]]:
    """Ranges of batches, first and last, that no captured size takes although one is large enough."""
    below = 0
    for size in sorted(sizes):
        if limit is not None:
            # The smallest n of `below < n <= size` with size <= factor * n.
            fitting = next((n for n in range(below + 1, size + 1) if size <= limit.factor * n), size + 1)
            if fitting > below + 1:
                yield below + 1, fitting - 1
        below = size
