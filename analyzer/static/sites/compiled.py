"""Compiled callables that are kept by shape and called as if they were graphs."""

from __future__ import annotations

from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import last_name


def find(types: GraphTypes, scopes: list[Scope]) -> list[RawSite]:
    found: list[RawSite] = []
    for scope in scopes:
        for target, value, line, _ in scope.assignments:
            if target[0] == "s" and target[1][0] == "a" and "torch.compile()" in types.evaluate(scope, value):
                found.append(
                    RawSite(scope, line, "capture", "compiled", render(target), frozenset({"host"}), key=target)
                )
    modules = {site.scope.module.name for site in found}
    for scope in scopes:
        if scope.module.name not in modules:
            continue
        for call in scope.calls:
            callee = call.expression[1]
            if last_name(callee) == "compile" and "torch.compile" in types.evaluate(scope, callee):
                found.append(
                    RawSite(scope, call.line, "capture", "compiled", render(callee), frozenset({"host"}), call=call)
                )
            elif callee[0] == "s" and "torch.compile()" in types.evaluate(scope, callee):
                found.append(
                    RawSite(scope, call.line, "replay", "compiled", render(callee), frozenset({"host"}), call=call)
                )
    return found
