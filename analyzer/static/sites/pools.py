"""Where graph memory pools are made, handed around, bound and dropped."""

from __future__ import annotations

from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.primitives import api_of, is_pool
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import argument_for, last_name

_NO_DEVICES: frozenset[str] = frozenset()


def givers(types: GraphTypes, direct: list[RawSite]) -> set[str]:
    """Simple names of the functions that give a pool's handle: whoever calls one handles graph memory."""
    return {name.rsplit(":", 1)[-1].rsplit(".", 1)[-1] for name in _makers(types, _handles(direct))}


def takers(types: GraphTypes, direct: list[RawSite]) -> set[str]:
    """Simple names of functions that are given nothing but a pool's handle: one may keep it, wherever it stands."""
    makers = givers(types, direct)
    pooled = {site.scope.module.name for site in _handles(direct)}
    pooled |= {scope.module.name for name in makers for scope, _ in types.callers(name)}
    return {
        name
        for scope in list(types.scopes.values())
        if scope.module.name in pooled
        for call in scope.calls
        if len(call.expression[2]) == 1
        and call.expression[1][0] == "n"
        and (name := last_name(call.expression[1])) is not None
        and any(map(is_pool, types.evaluate(scope, call.expression[2][0])))
    }


def find(types: GraphTypes, direct: list[RawSite]) -> list[RawSite]:
    """Sites of role pool beyond the direct calls of a library."""
    handles = _handles(direct)
    makers = _makers(types, handles)
    binders = _binders(types, handles)
    found: list[RawSite] = []
    for name in sorted(makers):
        for scope, call in types.callers(name.rsplit(":", 1)[-1].rsplit(".", 1)[-1]):
            if "func:" + name in types.evaluate(scope, call.expression[1]):
                found.append(_site(scope, call, "pool-of"))
    for name, parameter in sorted(binders.items()):
        for scope, call in types.callers(name.rsplit(":", 1)[-1].rsplit(".", 1)[-1]):
            if "func:" + name not in types.evaluate(scope, call.expression[1]):
                continue
            value = argument_for(call.expression, types.scopes[name], parameter)
            found.append(_site(scope, call, "pool-drop" if value == ["v", None] else "pool-bind"))
    pooled = {site.scope.module.name for site in handles} | {site.scope.module.name for site in found}
    found += _second_allocators(types, pooled)
    found += _saver_regions(types, direct)
    return found


def _handles(direct: list[RawSite]) -> list[RawSite]:
    return [site for site in direct if site.form in ("handle", "graph_pool_handle")]


def _makers(types: GraphTypes, handles: list[RawSite]) -> set[str]:
    """Functions that return a handle which they made or kept."""
    return {
        site.scope.name
        for site in handles
        if site.scope.kind == "function" and any(map(is_pool, types.returns(site.scope)))
    }


def _site(scope: Scope, call: CallFact, form: str) -> RawSite:
    return RawSite(scope, call.line, "pool", form, render(call.expression[1]), _NO_DEVICES, call=call)


def _binders(types: GraphTypes, handles: list[RawSite]) -> dict[str, str]:
    """Functions that keep a pool handle they are given in a global or in shared state, and the parameter's name."""
    attributes = {
        attribute
        for site in handles
        for base, attribute, binding in site.scope.attributes
        if any(map(is_pool, types.evaluate(site.scope, binding.expression)))
    }
    found: dict[str, str] = {}
    for scope in list(types.scopes.values()):
        function = scope.function
        if scope.kind != "function" or function is None or not 1 <= len(function.parameters) <= 2 or scope.owner:
            continue
        parameters = {p.name for p in function.parameters}
        for target, value, _, _ in scope.assignments:
            if value[0] != "n" or value[1] not in parameters:
                continue
            to_global = target[0] == "n" and target[1] in scope.globals
            to_state = target[0] == "a" and target[2] in attributes
            if to_state or (to_global and _given_a_pool(types, scope, value[1])):
                found[scope.name] = value[1]
    return found


def _given_a_pool(types: GraphTypes, scope: Scope, parameter: str) -> bool:
    simple = scope.name.rsplit(":", 1)[-1]
    for caller, call in types.callers(simple):
        value = argument_for(call.expression, scope, parameter)
        if value is not None and any(map(is_pool, types.evaluate(caller, value))):
            return "func:" + scope.name in types.evaluate(caller, call.expression[1])
    return False


def _second_allocators(types: GraphTypes, pooled: set[str]) -> list[RawSite]:
    """A memory pool of its own in code that also handles the graph pool: a second owner of the same memory."""
    found = []
    for name in ("MemPool", "use_mem_pool"):
        for scope, call in types.callers(name):
            if scope.module.name not in pooled:
                continue
            if any((api := api_of(tag)) is not None for tag in types.evaluate(scope, call.expression[1])) and api:
                found.append(_site(scope, call, "second-allocator"))
    return found


def _saver_regions(types: GraphTypes, direct: list[RawSite]) -> list[RawSite]:
    """Regions of the memory saver under the tag that its graph contexts use: paused and resumed with the graphs."""
    tags = {
        last_name(argument[2])
        for site in direct
        if "saver-context" in (site.form, *site.forms) and site.call is not None
        for argument in site.call.expression[2]
        if argument[0] == "k" and argument[1] == "tag"
    }
    return [
        _site(scope, call, "saver-region")
        for scope, call in types.callers("region")
        if any(a[0] == "k" and a[1] == "tag" and last_name(a[2]) in tags for a in call.expression[2])
    ]
