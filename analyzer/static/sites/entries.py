"""Functions outside the graph-owning classes that set captures going, up to where start-up or a request calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import Owners, outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import last_name

_STARTING = {"runner", "runner-chosen", "runner-capture", "table-capture"}
_NO_DEVICES: frozenset[str] = frozenset()
_ROUNDS = 8


def find(
    types: GraphTypes,
    owners: Owners,
    sites: list[RawSite],
    read_more: Callable[[Iterable[str]], list[str]],
) -> list[RawSite]:
    """Calls that set a whole series of captures going.

    Args:
        sites: what was found so far; runners constructed or told to capture begin the chain.
        read_more: reads the modules whose text mentions any of the names, and gives those that are new.
    """
    entries: dict[str, Scope] = {}
    for site in sites:
        if site.role == "capture" and site.form in _STARTING:
            _join(owners, entries, site.scope)
    found: dict[tuple[str, int], RawSite] = {}
    done: set[str] = set()
    for _ in range(_ROUNDS):
        fresh = {name: scope for name, scope in entries.items() if name not in done}
        if not fresh:
            break
        done |= fresh.keys()
        simple = {_simple(name) for name in fresh}
        types.extend(read_more(simple))
        for name in sorted(simple | _handed_over_as(types, simple)):
            for scope, call in types.callers(name):
                if _leads_to(types, scope, call, fresh, name):
                    text = render(call.expression[1])
                    found[scope.name, call.line] = RawSite(
                        scope,
                        call.line,
                        "capture",
                        "entry",
                        text,
                        _NO_DEVICES,
                        targets=_targets(fresh, name),
                        call=call,
                    )
                    _join(owners, entries, scope)
    return list(found.values())


def _handed_over_as(types: GraphTypes, names: set[str]) -> set[str]:
    """Keywords under which an entry is given to other code, which calls it by that name."""
    found = set()
    for module in types.indexed:
        for scope in types.roots[module].walk():
            for call in scope.calls:
                for argument in call.expression[2]:
                    if argument[0] == "k" and argument[2][0] == "a" and argument[2][2] in names:
                        found.add(argument[1])
    return found - names


def _simple(name: str) -> str:
    return name.rsplit(":", 1)[-1].rsplit(".", 1)[-1]


def _targets(entries: dict[str, Scope], simple: str) -> tuple[str, ...]:
    return tuple(sorted(name for name in entries if _simple(name) == simple))


def _join(owners: Owners, entries: dict[str, Scope], scope: Scope) -> None:
    """A function named for its graphs is an entry itself; any other only calls one."""
    holder = outermost(scope)
    if holder.kind != "function" or holder.function is None or "graph" not in holder.function.name.lower():
        return
    owner = holder.owner
    if owner in owners.runners or owner in owners.tables or owner in owners.composites:
        return
    entries.setdefault(holder.name, holder)


def _leads_to(types: GraphTypes, scope: Scope, call: CallFact, entries: dict[str, Scope], name: str) -> bool:
    callee = call.expression[1]
    if last_name(callee) != name or callee[0] == "c":
        return False
    tags = types.evaluate(scope, callee)
    functions = {tag[5:] for tag in tags if tag.startswith("func:")}
    if functions:
        if functions & entries.keys():
            return True
        # A base's method that an entry overrides.
        return any(
            f.rsplit(".", 1)[0] in types.mro(entry.owner or "")
            for f in functions
            for entry in entries.values()
            if _simple(entry.name) == name
        )
    # Nothing types the receiver: the name alone, which only functions that capture have.
    return callee[0] == "a" and any(_simple(entry) == name for entry in entries)
