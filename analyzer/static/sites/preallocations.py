"""Functions that allocate memory for graphs before their capture: inputs and scratch that lie outside the graph pool."""

from __future__ import annotations

import re

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import last_name

#: Text of a definition that may be one; it chooses what is read.
HEADER = re.compile(rb"def " + profile.PREALLOCATING.encode() + rb"\(")
_NAME = re.compile(f"^{profile.PREALLOCATING}$")
_MAKERS = frozenset({"empty", "zeros", "ones", "full", "arange", "empty_like", "zeros_like", "empty_strided"})
_NO_DEVICES: frozenset[str] = frozenset()


def find(types: GraphTypes) -> list[RawSite]:
    """The outermost function of each chain of functions that are named for it and end in an allocation."""
    named = [
        scope for scope in types.scopes.values() if scope.function is not None and _NAME.match(scope.function.name)
    ]
    by_name: dict[str, list[Scope]] = {}
    for scope in named:
        assert scope.function is not None
        by_name.setdefault(scope.function.name, []).append(scope)
    inner = {name for scope in named for name in _called(scope)}
    return [
        RawSite(scope, scope.line, "pool", "preallocation", scope.function.name, _NO_DEVICES)
        for scope in named
        if scope.function is not None and scope.function.name not in inner and _allocates(types, scope, by_name, set())
    ]


def _called(scope: Scope) -> set[str]:
    """Names of further functions of this kind that one calls; its own name is the same step of another class."""
    own = scope.function.name if scope.function is not None else ""
    names = {last_name(call.expression[1]) for inner in scope.walk() for call in inner.calls}
    return {name for name in names if name is not None and name != own and _NAME.match(name)}


def _allocates(types: GraphTypes, scope: Scope, by_name: dict[str, list[Scope]], seen: set[str]) -> bool:
    """Whether a function, or one of this kind that it hands on to, makes tensors."""
    if scope.name in seen:
        return False
    seen.add(scope.name)
    for inner in scope.walk():
        for call in inner.calls:
            name = last_name(call.expression[1])
            if name in _MAKERS and any(tag.startswith("torch.") for tag in types.evaluate(inner, call.expression[1])):
                return True
            if any(_allocates(types, further, by_name, seen) for further in by_name.get(name or "", ())):
                return True
    return False
