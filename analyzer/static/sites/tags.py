"""What values may be: tags, and small questions about expressions and functions that go with them.

A tag is an access path outside the checkout (`torch.cuda.CUDAGraph()` is an instance), or `mod:` `class:` `obj:` `func:`
with a qualified name, or `[]` and a tag for a container of such values.
"""

from __future__ import annotations

from sgl_graph.analyzer.static.checkout.project import dotted_text
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.scopes import Scope

Tags = frozenset[str]
NONE: Tags = frozenset()


def elements(tags: Tags) -> Tags:
    """What a container may hold."""
    return frozenset(tag[2:] for tag in tags if tag.startswith("[]"))


def contained(tags: Tags) -> Tags:
    """A container of such values."""
    return frozenset("[]" + tag for tag in tags)


def class_tags(tags: Tags) -> list[str]:
    """Classes whose instances are among the values, sorted."""
    return sorted(tag[4:] for tag in tags if tag.startswith("obj:"))


def last_name(item: Expression) -> str | None:
    """`c` of `a.b.c`, of `c`, and of calls and subscripts of them."""
    while item and item[0] in ("c", "s"):
        item = item[1]
    if item and item[0] == "n":
        return str(item[1])
    return str(item[2]) if item and item[0] == "a" else None


def enclosing_method(scope: Scope) -> Scope | None:
    """The method whose body holds a scope (itself, or through local functions)."""
    at: Scope | None = scope
    while at is not None and at.kind == "function":
        if at.owner is not None:
            return at
        at = at.parent
    return None


def self_name(scope: Scope | None) -> str | None:
    """The name of a method's receiver parameter."""
    if scope is None or scope.owner is None or scope.function is None or not scope.function.parameters:
        return None
    if any(dotted_text(d) == "staticmethod" for d in scope.decorators):
        return None
    return scope.function.parameters[0].name


def argument_for(call: Expression, scope: Scope, name: str) -> Expression | None:
    """The argument of a call that a parameter of the called function receives."""
    function = scope.function
    assert function is not None
    for argument in call[2]:
        if argument[0] == "k" and argument[1] == name:
            value: Expression = argument[2]
            return value
    names = [p.name for p in function.parameters if p.kind in ("p", "n")]
    if self_name(scope) is not None:
        names = names[1:]
    if name in names:
        position = names.index(name)
        positional: list[Expression] = [a for a in call[2] if a[0] not in ("k", "*", "**")]
        if position < len(positional):
            return positional[position]
    return None
