"""Split points of segmented graphs: where a segment ends, what runs eagerly there, and who asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.callees import leaves
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import CAPTURES, REPLAYS, Owners, outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import last_name

_NO_DEVICES: frozenset[str] = frozenset()


def splitters(owners: Owners) -> list[str]:
    """Simple names of functions that end a segment and begin the next around what they wrap."""
    return sorted({outermost(scope).name.rsplit(":", 1)[-1] for scope, _ in _segment_calls(owners)})


def find(types: GraphTypes, owners: Owners, direct: list[RawSite]) -> list[RawSite]:
    """Sites of role break, and the callables that run inside a captured body."""
    found: list[RawSite] = []
    cutting = _segment_calls(owners)
    for scope, call in cutting:
        found.append(_site(scope, call, "segment-end"))
    for scope in {scope.name: scope for scope, _ in cutting}.values():
        found += [_site(scope, call, "break-record") for call in scope.calls if _adds_to_container(owners, scope, call)]
    names = set(splitters(owners))
    readers, listed = _readers_of_registries(types), listed_operators(types)
    for scope in list(types.scopes.values()):
        found += _applications(types, owners, scope, names)
        found += _registrations(scope, readers)
        found += _listed_calls(scope, listed)
        found += _eager_calls(types, owners, scope)
    found += _hooks(types, owners)
    return found


def _site(scope: Scope, call: CallFact, form: str) -> RawSite:
    return RawSite(scope, call.line, "break", form, render(call.expression[1]), _NO_DEVICES, call=call)


def _segment_calls(owners: Owners) -> list[tuple[Scope, CallFact]]:
    """Calls from outside a capture context of the method that ends its segment."""
    found = []
    for scope in list(owners.types.scopes.values()):
        if outermost(scope).owner is not None:
            continue
        ends: list[CallFact] = []
        others = 0
        for call, tags in owners.resolved(scope):
            for tag in tags:
                target = owners.types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                if (
                    target is None
                    or target.owner not in owners.contexts
                    or CAPTURES not in owners.direct.get(tag[5:], ())
                ):
                    continue
                if any(last_name(c.expression[1]) == "capture_end" for c in target.calls):
                    ends.append(call)
                else:
                    others += 1
        if ends and others:
            found += [(scope, call) for call in ends]
    return found


def _adds_to_container(owners: Owners, scope: Scope, call: CallFact) -> bool:
    function = call.expression[1]
    if function[0] != "a" or function[2] not in ("append", "add") or function[1][0] != "a":
        return False
    holders = owners.types.evaluate(scope, function[1][1])
    return any(tag.startswith("obj:") and tag[4:] in owners.containers for tag in holders)


def _applications(types: GraphTypes, owners: Owners, scope: Scope, names: set[str]) -> list[RawSite]:
    """Functions that are wrapped so that they run eagerly between segments."""
    found = []
    decorating = set()
    for child in scope.children:
        for decorator in child.decorators:
            name = last_name(decorator)
            if name in names and _leads_to(types, scope, decorator, names):
                found.append(RawSite(child, child.line, "break", "break-point", f"@{name}", _NO_DEVICES))
                decorating.add(id(decorator))
    for call in scope.calls:
        name = last_name(call.expression[1])
        if name not in names or id(call.expression) in decorating or not _wraps_something(call):
            continue
        if _leads_to(types, scope, call.expression[1], names):
            found.append(_site(scope, call, "break-point"))
    return found


def _wraps_something(call: CallFact) -> bool:
    """Whether a call gives the function to wrap, rather than only options."""
    return any(argument[0] in ("n", "a", "l") for argument in call.expression[2])


def _leads_to(types: GraphTypes, scope: Scope, callee: list[object], names: set[str]) -> bool:
    plain = callee
    while plain and plain[0] in ("c", "s"):
        plain = plain[1]  # type: ignore[assignment]
    tags = types.evaluate(scope, plain)
    return any(tag.startswith("func:") and tag.rsplit(":", 1)[-1].rsplit(".", 1)[-1] in names for tag in tags)


def _registrations(scope: Scope, readers: Mapping[str, tuple[str, ...]]) -> list[RawSite]:
    """Operators at which a compiled graph is cut into pieces: where what is registered so is read."""
    found = []
    for child in scope.children:
        for decorator in child.decorators:
            name = last_name(decorator)
            if name in profile.SPLIT_REGISTRARS:
                api, targets = f"@{name}", readers.get(name, ())
                found.append(RawSite(child, child.line, "break", "split-operator", api, _NO_DEVICES, targets=targets))
    return found


def listed_operators(types: GraphTypes) -> dict[str, tuple[str, ...]]:
    """Operators that a list names at which compiled graphs are cut, by their own names, with the functions that make the list."""
    found: dict[str, set[str]] = {}
    for scope in types.scopes.values():
        for _, attribute, binding in scope.attributes if scope.kind == "function" else ():
            if attribute not in profile.SPLIT_LISTS or binding.kind != "value" or binding.expression[0] != "L":
                continue
            for item in binding.expression[1]:
                if item[0] == "v" and isinstance(item[1], str):
                    found.setdefault(item[1].rpartition(".")[2], set()).add(scope.name)
    return {name: tuple(sorted(makers)) for name, makers in found.items()}


def _listed_calls(scope: Scope, listed: Mapping[str, tuple[str, ...]]) -> list[RawSite]:
    """Calls of such operators through torch's table of them."""
    found = []
    for call in scope.calls if listed else ():
        name = last_name(call.expression[1])
        if name is not None and name in listed and render(call.expression[1]).startswith("torch.ops."):
            found.append(replace(_site(scope, call, "split-call"), targets=listed[name]))
    return found


def _readers_of_registries(types: GraphTypes) -> dict[str, tuple[str, ...]]:
    """Per registrar, the functions of its module that read what it fills, besides itself."""
    found: dict[str, tuple[str, ...]] = {}
    for registrar in list(types.scopes.values()):
        if registrar.kind != "function" or registrar.qualname not in profile.SPLIT_REGISTRARS:
            continue
        own = {scope.name for scope in registrar.walk()}
        filled = {
            call.expression[1][1][1]
            for scope in registrar.walk()
            for call in scope.calls
            if call.expression[1][0] == "a" and call.expression[1][1][0] == "n"
        }
        found[registrar.qualname] = tuple(
            sorted(
                scope.name
                for scope in types.scopes.values()
                if scope.kind == "function" and scope.module is registrar.module and scope.name not in own
                if any(
                    leaf[0] == "n" and leaf[1] in filled
                    for leaf in leaves(["t", *scope.module.function_body(scope.index)])
                )
            )
        )
    return found


def _eager_calls(types: GraphTypes, owners: Owners, scope: Scope) -> list[RawSite]:
    """What a container calls between its segments while it replays."""
    holder = outermost(scope)
    if holder.owner not in owners.containers or REPLAYS not in owners.direct.get(holder.name, ()):
        return []
    return [_site(scope, call, "eager-between") for call in scope.calls if call.loops and call.expression[1][0] == "s"]


def _hooks(types: GraphTypes, owners: Owners) -> list[RawSite]:
    """Callables registered elsewhere that a captured body runs."""
    found = []
    seen = set()
    for scope in list(types.scopes.values()):
        for call, tags in owners.resolved(scope):
            if not any(tag.startswith("func:") and owners.table_effects(tag[5:]) == {CAPTURES} for tag in tags):
                continue
            for argument in call.expression[2]:
                value = argument[2] if argument[0] == "k" else argument
                if value[0] not in ("n", "a", "l"):
                    continue
                for tag in types.evaluate(scope, value):
                    body = types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                    if body is not None and body.name not in seen:
                        seen.add(body.name)
                        found += _loop_calls(body)
    return found


def _loop_calls(body: Scope) -> list[RawSite]:
    found = []
    for call in body.calls:
        callee = call.expression[1]
        if callee[0] != "n" or not call.loops:
            continue
        bindings = body.bindings.get(callee[1], [])
        if any(b.kind == "element" and b.expression[0] == "a" and b.expression in call.loops for b in bindings):
            found.append(
                RawSite(body, call.line, "capture", "captured-hook", render(call.loops[-1]), _NO_DEVICES, call=call)
            )
    return found
