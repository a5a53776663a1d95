"""Code that decides what is captured or replayed, put in the place of other code: attributes of objects and modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.eligibility import answers, owning_classes
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import CAPTURES, Owners
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import last_name

_NO_DEVICES: frozenset[str] = frozenset()


def bodies(types: GraphTypes, owners: Owners) -> dict[str, tuple[Scope, list[RawSite]]]:
    """Contexts that give what is captured: what entering one yields is handed to the call that captures.

    Each with the places that enter it.
    """
    found: dict[str, tuple[Scope, list[RawSite]]] = {}
    for name in sorted(owning_classes(types, owners)):
        for method in types.methods(name).values():
            for scope in method.walk():
                for entered in _captured_in(owners, scope):
                    for tag in sorted(types.evaluate(scope, entered.expression[1])):
                        target = types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                        if target is not None:
                            api = render(entered.expression[1])
                            use = RawSite(scope, entered.line, "dispatch", "body", api, _NO_DEVICES, call=entered)
                            found.setdefault(target.name, (target, []))[1].append(use)
    return found


def _captured_in(owners: Owners, scope: Scope) -> Iterator[CallFact]:
    """Calls that are entered for a value that the scope hands to a method which captures."""
    if not any(call.entered for call in scope.calls):
        return
    for call, tags in owners.resolved(scope):
        functions = [tag[5:] for tag in tags if tag.startswith("func:")]
        if any(CAPTURES in owners.table_effects(f) | owners.runner_effects(f) for f in functions):
            for name in _names(call.expression):
                yield from _entered(scope, name)


def modes(types: GraphTypes, owners: Owners) -> Iterator[RawSite]:
    """Contexts that turn a global and turn it back, entered by whoever owns graphs: code inside asks for it, and differs."""
    found: dict[str, Scope] = {}
    for name in sorted(owning_classes(types, owners)):
        for method in types.methods(name).values():
            for scope in method.walk():
                for call in scope.calls:
                    for tag in types.evaluate(scope, call.expression[1]) if call.entered else ():
                        target = types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                        if target is not None and _turns(target):
                            found[target.name] = target
    for target in found.values():
        api = target.function.name if target.function is not None else ""
        yield RawSite(target, target.line, "dispatch", "mode", api, _NO_DEVICES)


def _turns(scope: Scope) -> bool:
    return any(len(scope.bindings.get(name, ())) > 1 for name in scope.globals)


def _names(call: Expression) -> Iterator[str]:
    for argument in call[2]:
        value = argument[2] if argument[0] == "k" else argument
        if value[0] == "n":
            yield value[1]


def _entered(scope: Scope, name: str) -> Iterator[CallFact]:
    for binding in scope.bindings.get(name, ()):
        if binding.kind == "enter":
            yield from (call for call in scope.calls if call.entered and call.expression is binding.expression)


def rebound(types: GraphTypes, functions: Mapping[str, Scope]) -> Iterator[RawSite]:
    """Assignments that put something else in the place of one of the functions, and the function that is put there."""
    by_name: dict[str, list[Scope]] = {}
    for scope in functions.values():
        if scope.function is not None:
            by_name.setdefault(scope.function.name, []).append(scope)
    for module in types.indexed:
        for scope in types.roots[module].walk():
            for target, value, line, tests in scope.assignments:
                if target[0] != "a" or target[2] not in by_name:
                    continue
                base, name = target[1], target[2]
                tags = types.evaluate(scope, base)
                if not any(_holds(types, tag, one) for tag in tags for one in by_name[name]):
                    continue
                yield RawSite(scope, line, "dispatch", "rebound", f"{render(base)}.{name}", _NO_DEVICES, tests=tests)
                for tag in sorted(types.evaluate(scope, value)):
                    put = types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                    if put is not None and put.name not in functions and answers(put):
                        yield RawSite(put, put.line, "dispatch", "body", last_name(value) or "", _NO_DEVICES)


def _holds(types: GraphTypes, tag: str, function: Scope) -> bool:
    """Whether a value is an object, a class or a module that has the function as its attribute."""
    kind, _, name = tag.partition(":")
    if kind == "mod":
        return function.owner is None and function.module.name == name
    if kind in ("obj", "class") and function.owner is not None:
        return function.owner in (*types.mro(name), *types.subclasses(name))
    return False
