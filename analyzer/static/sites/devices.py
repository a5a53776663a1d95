"""Which device kind a piece of graph code is for: by the libraries it calls and the tests that it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sgl_graph.analyzer.static.checkout.project import dotted_text
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.owners import Owners, is_own_call
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope, Test
from sgl_graph.analyzer.static.sites.tags import enclosing_method

Devices = frozenset[str]
_AVAILABILITY = re.compile(r"^torch\.(cuda|npu|xpu|musa|hpu|mps|mlu)\.is_available$")
_KINDS = {"npu", "xpu", "musa", "hpu", "mps", "mlu", "cpu"}
_NONE: Devices = frozenset()


class DeviceKinds:
    """Device kinds of classes and of single sites."""

    def __init__(self, owners: Owners, sites: Iterable[RawSite]) -> None:
        self._owners = owners
        self._types = owners.types
        self._own: dict[str, Devices] = {}
        self._leaning: dict[str, Devices] = {}
        self._predicates: dict[str, Devices] = {}
        made: dict[str, set[str]] = {}
        for site in sites:
            owner = _owner(site.scope)
            if owner is not None and site.devices and site.form in ("constructor", "context", "handle", "compiled"):
                made.setdefault(owner, set()).update(site.devices - {"any"})
        self._own = {name: frozenset(kinds) for name, kinds in made.items() if kinds}

    def of_class(self, name: str) -> Devices:
        """Kinds that a class is made for; nothing when nothing says so."""
        known = self._leaning.get(name)
        if known is None:
            self._leaning[name] = _NONE  # a class met again while its own kind is being found
            known = self._leaning[name] = self._own.get(name) or self._by_partners(name) or self._inherited(name)
        return known

    def _inherited(self, name: str) -> Devices:
        for base in self._types.mro(name)[1:]:
            if base in self._own:
                return self._own[base]
        return _NONE

    def _by_partners(self, name: str) -> Devices:
        """A class that calls methods which only classes of one kind have is made for that kind."""
        for method in self._types.methods(name).values():
            for scope in method.walk():
                for call, tags in self._owners.resolved(scope):
                    functions = [self._types.scopes.get(tag[5:]) for tag in tags if tag.startswith("func:")]
                    owners = {f.owner for f in functions if f is not None and f.owner is not None}
                    if not owners or is_own_call(scope, call):
                        continue
                    kinds = [self.of_class(owner) for owner in owners]
                    if all(kind and "cuda" not in kind for kind in kinds):
                        return frozenset().union(*kinds)
        return _NONE

    def of_site(self, site: RawSite) -> Devices:
        """Kinds for which a site can act: the library's, narrowed by the class and the tests around it."""
        kinds = set(site.devices)
        owner = _owner(site.scope)
        leaning = self.of_class(owner) if owner is not None else _NONE
        if leaning and "cuda" not in leaning and "cuda" in kinds | {"cuda"} and site.form != "constructor":
            kinds = set(leaning)
        if not kinds and site.targets:
            kinds = self._of_targets(site)
        for test in site.call.tests if site.call is not None else ():
            named = self.of_test(site.scope, test)
            if named and test.positive:
                kinds = set(named)
            elif named:
                kinds -= named
        return frozenset(kinds)

    def _of_targets(self, site: RawSite) -> set[str]:
        found: set[str] = set()
        for name in site.targets:
            scope = self._types.scopes.get(name)
            owner = name if scope is None or scope.kind == "class" else scope.owner
            if owner is None or (scope is not None and _is_abstract(scope)):
                continue
            found |= self.of_class(owner) or {"any"}
        return found

    def of_test(self, scope: Scope, test: Test) -> Devices:
        """The kind that a test asks for, when it asks for one."""
        return self._asked(scope, test.expression)

    def _asked(self, scope: Scope, item: Expression) -> Devices:
        if item[0] == "cmp" and len(item[2]) == 1 and item[2][0][0] == "==":
            value = item[2][0][1]
            return frozenset({value[1]}) if value[0] == "v" and value[1] in _KINDS else _NONE
        if item[0] == "n":
            bindings = self._bindings(scope, item[1])
            return self._asked(bindings[0], bindings[1]) if bindings is not None else _NONE
        if item[0] == "c" and not item[2]:
            for tag in self._types.evaluate(scope, item[1]):
                if tag.startswith("func:"):
                    return self._predicate(tag[5:])
        return _NONE

    def _bindings(self, scope: Scope, name: str) -> tuple[Scope, Expression] | None:
        at: Scope | None = scope
        while at is not None:
            found = at.bindings.get(name)
            if found:
                return (at, found[0].expression) if len(found) == 1 and found[0].kind == "value" else None
            at = at.parent
        return None

    def _predicate(self, function: str) -> Devices:
        """The device whose availability a function reports."""
        known = self._predicates.get(function)
        if known is None:
            scope = self._types.scopes.get(function)
            found: set[str] = set()
            for value, _ in scope.returns if scope is not None else ():
                found |= {m[1] for text in _dotted_parts(value) if (m := _AVAILABILITY.match(text))}
            known = self._predicates[function] = frozenset(found) if len(found) == 1 else _NONE
        return known


def _owner(scope: Scope) -> str | None:
    method = enclosing_method(scope)
    if method is not None:
        return method.owner
    return scope.name if scope.kind == "class" else None


def _is_abstract(scope: Scope) -> bool:
    return any(dotted_text(d) in ("abstractmethod", "abc.abstractmethod") for d in scope.decorators)


def _dotted_parts(item: Expression) -> Iterable[str]:
    text = dotted_text(item)
    if text is not None:
        yield text
        return
    for part in item[1:]:
        if isinstance(part, list) and part:
            yield from _dotted_parts(part if isinstance(part[0], str) else ["t", *part])
