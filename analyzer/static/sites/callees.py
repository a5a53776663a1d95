"""Which callees can matter, by their names alone: evaluation is asked only for those."""

from __future__ import annotations

from collections.abc import Iterator

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import last_name


def may_lead_to(scope: Scope, callee: Expression, names: set[str], depth: int = 3) -> bool:
    """Whether a callee ends in one of the names, or is a local whose bindings mention one."""
    if last_name(callee) in names:
        return True
    while callee and callee[0] in ("s", "c"):
        callee = callee[1]
    if callee[0] == "l":
        return True
    if callee[0] != "n" or depth == 0:
        return False
    at: Scope | None = scope
    while at is not None and at.kind == "function":
        bindings = at.bindings.get(callee[1])
        if bindings is not None:
            return any(
                may_lead_to(at, leaf, names, depth - 1) for binding in bindings for leaf in leaves(binding.expression)
            )
        at = at.parent
    return False


def words_of_calls(scope: Scope) -> set[str]:
    """Every name that `may_lead_to` could meet for the calls of a scope."""
    words: set[str] = set()
    pending = [call.expression[1] for call in scope.calls]
    seen: set[str] = set()
    while pending:
        callee = pending.pop()
        name = last_name(callee)
        if name is not None:
            words.add(name)
        while callee and callee[0] in ("s", "c"):
            callee = callee[1]
        if callee[0] == "l":
            words.add("<lambda>")
        if callee[0] != "n" or callee[1] in seen:
            continue
        seen.add(callee[1])
        at: Scope | None = scope
        while at is not None and at.kind == "function":
            if callee[1] in at.bindings:
                pending += [leaf for binding in at.bindings[callee[1]] for leaf in leaves(binding.expression)]
                break
            at = at.parent
    return words


def leaves(expression: Expression) -> Iterator[Expression]:
    """Names, attributes and lambdas inside an expression."""
    if expression and expression[0] in ("n", "a", "l"):
        yield expression
    for part in expression[1:] if expression else ():
        if isinstance(part, list) and part:
            yield from leaves(part) if isinstance(part[0], str) else leaves(["t", *part])
