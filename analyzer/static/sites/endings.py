"""What ends captured graphs, or changes what their capture and replay do: dropped tables, rearmed events, replaced methods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sgl_graph.analyzer.static.checkout.project import dotted_text
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.eligibility import owning_classes
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.origins import Origins, may_call
from sgl_graph.analyzer.static.sites.owners import Owners, is_own_call, outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import enclosing_method, self_name

_NO_DEVICES: frozenset[str] = frozenset()
_DROPPING = {"clear", "pop", "popitem"}
_DEVICE_CLASS = re.compile(r"^torch\b.*\.(Stream|Event|\w*Graph)$")


def find(types: GraphTypes, owners: Owners, sites: list[RawSite]) -> Iterator[RawSite]:
    """Update primitives besides those of the graph interfaces themselves."""
    dropped = list(_dropped(types, owners, sites))
    yield from dropped
    ends = {
        one.name: one
        for site in (*dropped, *(site for site in sites if site.form == "reset"))
        if (one := outermost(site.scope)).function is not None and not owners.table_effects(one.name)
    }
    yield from _ended(types, ends)
    yield from _rearmed(types, owners)
    yield from _replaced(types)


def _dropped(types: GraphTypes, owners: Owners, sites: list[RawSite]) -> Iterator[RawSite]:
    """Where a table lets go of the graphs that it filed."""
    kept: dict[str, set[str]] = {}
    for site in sites:
        method = enclosing_method(site.scope)
        if site.form != "store" or site.key is None or method is None or method.owner is None:
            continue
        held = site.key[1]
        if held[0] == "a" and held[1] == ["n", self_name(method)]:
            for name in (method.owner, *types.subclasses(method.owner)):
                kept.setdefault(name, set()).add(held[2])
    for name, attributes in sorted(kept.items()):
        for method in types.methods(name).values():
            for scope in method.walk():
                for call in scope.calls:
                    callee = call.expression[1]
                    if (
                        callee[0] == "a"
                        and callee[2] in _DROPPING
                        and callee[1][0] == "a"
                        and callee[1][1] == ["n", self_name(method)]
                        and callee[1][2] in attributes
                    ):
                        yield RawSite(scope, call.line, "update", "dropped", render(callee), _NO_DEVICES, call=call)


def _ended(types: GraphTypes, ends: dict[str, Scope]) -> Iterator[RawSite]:
    """Calls from outside of what ends a table's graphs."""
    for name in sorted({end.function.name for end in ends.values() if end.function is not None}):
        alike = [end for end in ends.values() if end.function is not None and end.function.name == name]
        for scope, call in types.callers(name):
            tags = types.evaluate(scope, call.expression[1])
            targets = tuple(sorted(end.name for end in alike if may_call(types, tags, end)))
            if targets and not is_own_call(scope, call):
                text = render(call.expression[1])
                yield RawSite(scope, call.line, "update", "ended", text, _NO_DEVICES, targets=targets, call=call)


def _rearmed(types: GraphTypes, owners: Owners) -> Iterator[RawSite]:
    """Events made to outlive a capture, recorded by who captures: the graph keeps the event, and each replay records it anew."""
    for name in sorted(owning_classes(types, owners)):
        for method in types.methods(name).values():
            for scope in method.walk():
                for call in scope.calls:
                    callee = call.expression[1]
                    if callee[0] != "a" or callee[2] != "record" or not _is_external(types, scope, callee[1]):
                        continue
                    yield RawSite(scope, call.line, "update", "rearmed", render(callee), _NO_DEVICES, call=call)


def _is_external(types: GraphTypes, scope: Scope, event: list[object]) -> bool:
    origins = Origins(types, lambda target: True)
    return any(
        call[1][0] == "a" and ["k", "external", ["v", True]] in call[2]
        for _, call, _ in origins.calls(scope, event, 10)
    )


def _replaced(types: GraphTypes) -> Iterator[RawSite]:
    """Methods of the device library's streams, events and graphs that the checkout replaces with functions of its own."""
    for module in types.indexed:
        for scope in types.roots[module].walk():
            for target, value, line, tests in scope.assignments:
                base = target[1] if target[0] == "a" else ["x"]
                if base[0] != "a" or not _DEVICE_CLASS.match("torch." + base[2]):
                    continue
                tags = types.evaluate(scope, value)
                if any(tag.startswith("func:") for tag in tags) and any(
                    _DEVICE_CLASS.match(tag) for tag in types.evaluate(scope, base)
                ):
                    text = f"{dotted_text(base) or render(base)}.{target[2]}"
                    yield RawSite(scope, line, "update", "replaced", text, _NO_DEVICES, tests=tests)
