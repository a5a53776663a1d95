"""Functions whose answer decides whether a graph replays or eager code runs, and where they are asked."""

from __future__ import annotations

from collections.abc import Iterator

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.origins import may_call, truths
from sgl_graph.analyzer.static.sites.owners import Owners, is_own_call, outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope, Test, before
from sgl_graph.analyzer.static.sites.tags import last_name

_NO_DEVICES: frozenset[str] = frozenset()
_REPLAYING = {"table-run", "runner-run"}


class Eligibility:
    """Asked from the calls that replay: a test around one that asks a function of whoever owns the graphs."""

    def __init__(self, types: GraphTypes, owners: Owners, sites: list[RawSite]) -> None:
        self._types = types
        self._owners = owners
        self.functions: dict[str, Scope] = {}
        self._forks: list[RawSite] = []
        self._owning = owning_classes(types, owners)
        replays = [s for s in sites if s.call is not None and (s.role == "replay" or s.form in _REPLAYING)]
        for site in replays:
            assert site.call is not None
            self._ask(site.scope, site.call.tests)
        steps = list(self._steps(replays))
        for scope, call in steps:
            self._ask(scope, call.tests)
        self._forks = list(_forks(steps))
        self._spread()

    def sites(self) -> Iterator[RawSite]:
        """The functions, the calls of them from outside, and the forks that lead to a replay."""
        for scope in self.functions.values():
            name = scope.function.name if scope.function is not None else ""
            yield RawSite(scope, scope.line, "dispatch", "eligibility", name, _NO_DEVICES)
        for name in sorted(self._names()):
            alike = [s for s in self.functions.values() if s.function is not None and s.function.name == name]
            for scope, call in self._types.callers(name):
                callee = call.expression[1]
                if is_own_call(scope, call) or outermost(scope).name in self.functions:
                    continue
                tags = self._types.evaluate(scope, callee)
                if any(may_call(self._types, tags, one) for one in alike) or (not tags and self._keeps(scope, callee)):
                    yield RawSite(scope, call.line, "dispatch", "asked", render(callee), _NO_DEVICES, call=call)
        yield from self._forks

    def mentions(self) -> list[str]:
        """Text of modules that may ask a runner besides: they need not name its class. Tables are asked by their runners."""
        runners = {*self._owners.runners.effects, *self._owners.composites.effects}
        asked = (s.function for s in self.functions.values() if s.owner in runners)
        return sorted({f".{function.name}(" for function in asked if function is not None})

    def _names(self) -> set[str]:
        return {scope.function.name for scope in self.functions.values() if scope.function is not None}

    def _keeps(self, scope: Scope, callee: Expression) -> bool:
        """Whether a callee that nothing types is asked of an attribute under which graph-owning objects are kept."""
        held = callee[1] if callee[0] == "a" else None
        if held is not None and held[0] == "n":
            bound = [b.expression for b in scope.bindings.get(held[1], ()) if b.kind == "value"]
            held = bound[0] if len(bound) == 1 else None
        if held is None or held[0] != "a":
            return False
        return any(
            tag.startswith("obj:") and tag[4:] in self._owning
            for at, binding in self._types.kept_under(held[2])
            if binding.kind == "value"
            for tag in self._types.evaluate(at, binding.expression)
        )

    def _steps(self, replays: list[RawSite]) -> Iterator[tuple[Scope, CallFact]]:
        """Calls under a test that lead to a method which surely replays what its object holds."""
        for site in replays:
            method = outermost(site.scope)
            assert site.call is not None
            if method.function is None or method.owner is None or site.call.tests or method.owner in self._owning:
                continue
            for scope, call in self._types.callers(method.function.name):
                if call.tests and is_own_call(scope, call):
                    tags = self._types.evaluate(scope, call.expression[1])
                    if may_call(self._types, tags, method):
                        yield scope, call

    def _ask(self, scope: Scope, tests: tuple[Test, ...]) -> None:
        for test in tests:
            for at, call in truths(scope, test.expression):
                self._add(at, call)

    def _add(self, scope: Scope, call: Expression) -> None:
        for tag in sorted(self._types.evaluate(scope, call[1])):
            target = self._types.scopes.get(tag[5:]) if tag.startswith("func:") else None
            if target is None or target.function is None:
                continue
            if target.owner in self._owning or self._is_given_owner(scope, call):
                for one in overrides(self._types, target):
                    self.functions.setdefault(one.name, one)

    def _is_given_owner(self, scope: Scope, call: Expression) -> bool:
        values = (a[2] if a[0] == "k" else a for a in call[2])
        tags = {tag for value in values if value[0] == "a" for tag in self._types.evaluate(scope, value)}
        return any(tag.startswith("obj:") and tag[4:] in self._owning for tag in tags)

    def _spread(self) -> None:
        """What such a function hands the question on to answers it too."""
        done: set[str] = set()
        while pending := [scope for name, scope in self.functions.items() if name not in done]:
            for scope in pending:
                done.add(scope.name)
                for value, _ in scope.returns:
                    for at, call in truths(scope, value):
                        self._add(at, call)


def _forks(steps: list[tuple[Scope, CallFact]]) -> Iterator[RawSite]:
    """The nearest test before each step whose other side leads to no such step."""
    sides: dict[tuple[str, int], set[bool]] = {}
    for scope, call in steps:
        for test in call.tests:
            sides.setdefault((scope.name, id(test.expression)), set()).add(test.positive)
    for scope, call in steps:
        alone = [test for test in call.tests if len(sides[scope.name, id(test.expression)]) == 1]
        if alone:
            text, line = render(alone[-1].expression), alone[-1].line
            yield RawSite(scope, line, "dispatch", "fork", text, _NO_DEVICES, tests=before(call.tests, alone[-1]))


def answers(scope: Scope) -> bool:
    """Whether a function gives something; what only subclasses answer decides nothing itself."""
    if any(last_name(d) == "abstractmethod" for d in scope.decorators):
        return False
    return bool(scope.returns or scope.yields)


def overrides(types: GraphTypes, scope: Scope) -> list[Scope]:
    """A function, and the methods that descendants have in its place; those that answer nothing left out."""
    name = scope.function.name if scope.function is not None else ""
    below = types.subclasses(scope.owner) if scope.owner is not None else ()
    own = (types.methods(child).get(name) for child in below)
    return [one for one in (scope, *own) if one is not None and answers(one)]


def owning_classes(types: GraphTypes, owners: Owners) -> set[str]:
    """Tables and runners, with the bases of theirs that the checkout defines."""
    found: set[str] = set()
    for level in (owners.tables, owners.runners, owners.composites):
        for name in level.effects:
            found.update(one for one in types.mro(name) if one in types.scopes)
    return found
