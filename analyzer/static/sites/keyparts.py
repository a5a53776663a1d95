"""Functions that make the key under which a graph is filed and looked up, and where a size is padded to a captured one."""

from __future__ import annotations

from collections.abc import Iterator

from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.eligibility import overrides, owning_classes
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.labels import Keys
from sgl_graph.analyzer.static.sites.origins import Origins, truths
from sgl_graph.analyzer.static.sites.owners import Owners
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import Tags, enclosing_method, last_name, self_name

_NO_DEVICES: frozenset[str] = frozenset()


class KeyParts:
    """Follows the keys of filed graphs back to the functions that make them."""

    def __init__(self, types: GraphTypes, owners: Owners, sites: list[RawSite]) -> None:
        self._types = types
        self._owning = owning_classes(types, owners)
        self._homes = {name.partition(":")[0] for name in self._owning}
        #: Functions whose values are keys, or go into one.
        self.functions: dict[str, Scope] = {}
        #: Those that make all keys, or all sizes, at once.
        self._collections: set[str] = set()
        self._choices: dict[tuple[str, int], RawSite] = {}
        origins, keys = Origins(types, self._concerns), Keys(owners)
        for site in sites:
            filed = keys.key_of_target(site.scope, site.key) if site.key is not None else None
            for key in [filed] if filed is not None else _looked_up(site):
                for scope, call, tags in origins.calls(site.scope, key):
                    self._note(scope, call, tags, origins.in_parts)
        for scope in list(self.functions.values()):
            for at, call in self._switches(scope):
                self._note(at, call, types.evaluate(at, call[1]), False)

    def sites(self) -> Iterator[RawSite]:
        """Functions that make keys, and the calls that choose among captured sizes."""
        for scope in self.functions.values():
            name = scope.function.name if scope.function is not None else ""
            form = "sizes" if scope.name in self._collections else "key"
            yield RawSite(scope, scope.line, "dispatch", form, name, _NO_DEVICES)
        yield from self._choices.values()

    def _note(self, scope: Scope, call: Expression, tags: Tags, in_parts: bool) -> None:
        targets = [t for tag in tags if tag.startswith("func:") and (t := self._types.scopes.get(tag[5:])) is not None]
        if any(map(self._bisects, targets)) or any(tag.startswith("bisect.") for tag in tags):
            at = next((c for c in scope.calls if c.expression is call), None)
            self._choices[scope.name, call[3]] = RawSite(
                scope, call[3], "dispatch", "bucket", render(call[1]), _NO_DEVICES, call=at
            )
            return
        for target in targets:
            if self._concerns(target):
                for one in overrides(self._types, target):
                    if in_parts and one.name not in self.functions:
                        self._collections.add(one.name)
                    self.functions.setdefault(one.name, one)

    def _switches(self, scope: Scope) -> Iterator[tuple[Scope, Expression]]:
        """Calls whose answers the object keeps, and by which a function that makes keys chooses between them."""
        method = enclosing_method(scope)
        if method is None or method.owner is None:
            return
        for statement in walk(scope.module.function_body(scope.index)):
            test = statement[2] if statement[0] == "if" else None
            while test is not None and test[0] == "u":
                test = test[2]
            if test is None or test[0] != "a" or test[1] != ["n", self_name(method)]:
                continue
            for owner in self._types.mro(method.owner):
                for at, binding in self._types.assigned(owner, test[2]):
                    if binding.kind == "value":
                        yield from truths(at, binding.expression)

    def _concerns(self, scope: Scope) -> bool:
        """Whether a function belongs to those that own graphs, or to a module of theirs."""
        return scope.owner in self._owning if scope.owner is not None else scope.module.name in self._homes

    def _bisects(self, scope: Scope) -> bool:
        return any(_is_bisection(self._types, scope, call) for call in scope.calls)


def _is_bisection(types: GraphTypes, scope: Scope, call: CallFact) -> bool:
    name = last_name(call.expression[1]) or ""
    return name.startswith("bisect") and any(t.startswith("bisect.") for t in types.evaluate(scope, call.expression[1]))


def _looked_up(site: RawSite) -> Iterator[Expression]:
    """Keys by which a site finds the graph that it replays."""
    if site.role != "replay" or site.call is None or site.call.expression[1][0] != "a":
        return
    held = site.call.expression[1][1]
    values = [held]
    if held[0] == "n":
        values = [b.expression for b in site.scope.bindings.get(held[1], ()) if b.kind == "value"]
    for value in values:
        key = Keys.read_key(value)
        if key is not None:
            yield key
