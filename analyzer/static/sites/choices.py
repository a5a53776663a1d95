"""Who chooses the class that captures and replays: factories, tables of classes, alternatives under a test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sgl_graph.analyzer.static.checkout.project import dotted_text
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import Owners
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope, Test, before
from sgl_graph.analyzer.static.sites.tags import last_name

_NO_DEVICES: frozenset[str] = frozenset()


class Choices:
    """Alternatives among classes that own graphs."""

    def __init__(self, types: GraphTypes, owners: Owners) -> None:
        self._types = types
        self._classes = {*owners.tables.effects, *owners.runners.effects, *owners.composites.effects}
        self._names = {name.rsplit(":", 1)[-1].rsplit(".", 1)[-1] for name in self._classes}
        self._homes = {name.partition(":")[0] for name in self._classes}
        self._scopes = [
            scope
            for module in types.indexed
            if self._concerned(types.roots[module])
            for scope in types.roots[module].walk()
        ]
        self._factories = {scope.name: scope for scope in self._functions() if len(self._given(scope)) > 1}

    def find(self) -> Iterator[RawSite]:
        """Factories and their calls, tables of classes, and constructions of several classes for one place."""
        for scope in self._factories.values():
            assert scope.function is not None
            yield RawSite(
                scope, scope.line, "dispatch", "factory", scope.function.name, _NO_DEVICES,
                targets=tuple(sorted(self._given(scope))),
            )  # fmt: skip
            yield from self._uses(scope)
        for scope in self._scopes:
            yield from self._tables(scope)
            if scope.name not in self._factories:
                yield from self._alternatives(scope)
            yield from self._picks(scope)

    def _functions(self) -> list[Scope]:
        return [s for s in self._scopes if s.function is not None and s.function.name != "<lambda>"]

    def _concerned(self, root: Scope) -> bool:
        """Whether a module defines graph-owning classes, or imports them or their modules."""
        return root.module.name in self._homes or any(
            member in self._names or module in self._homes or f"{module}.{member}" in self._homes
            for scope in root.walk()
            for module, member in scope.imports.values()
        )

    def _given(self, scope: Scope) -> set[str]:
        """Classes that a function names and gives, or gives an object of."""
        found: set[str] = set()
        for value, _ in scope.returns:
            for leaf in _given_by(scope, value):
                found |= self._named(scope, leaf)
        return found

    def _named(self, scope: Scope, item: Expression) -> set[str]:
        """Graph-owning classes that an expression itself means; its name may be one that was given at its import."""
        name = last_name(item)
        if item[0] not in ("n", "a") or name is None or not (name in self._names or self._renamed(scope, item)):
            return set()
        tags = self._types.evaluate(scope, item)
        return {tag[6:] for tag in tags if tag.startswith("class:") and tag[6:] in self._classes}

    def _renamed(self, scope: Scope, item: Expression) -> bool:
        at: Scope | None = scope
        while at is not None and item[0] == "n":
            if item[1] in at.imports:
                return at.imports[item[1]][1] in self._names
            at = at.parent
        return False

    def _uses(self, factory: Scope) -> Iterator[RawSite]:
        assert factory.function is not None
        for scope, call in self._types.callers(factory.function.name):
            if "func:" + factory.name in self._types.evaluate(scope, call.expression[1]):
                yield RawSite(
                    scope, call.line, "dispatch", "chosen-by", render(call.expression[1]), _NO_DEVICES,
                    targets=(factory.name,), call=call,
                )  # fmt: skip

    def _tables(self, scope: Scope) -> Iterator[RawSite]:
        """Rows of a table that give a class each."""
        for target, value, line, tests in scope.assignments:
            for rows in _rows(value):
                named = [self._named(scope, leaf) for _, row in rows for leaf in _given_by(scope, row)]
                found = set().union(*named) if named else set()
                if found and len(rows) > 1:
                    yield RawSite(
                        scope,
                        line,
                        "dispatch",
                        "class-table",
                        render(target),
                        _NO_DEVICES,
                        targets=tuple(sorted(found)),
                        tests=tests,
                    )

    def _picks(self, scope: Scope) -> Iterator[RawSite]:
        """An object made of a class that is looked up in a table of several."""
        for call in scope.calls:
            if call.expression[1][0] == "s":
                tags = self._types.evaluate(scope, call.expression[1])
                found = {tag[6:] for tag in tags if tag.startswith("class:") and tag[6:] in self._classes}
                if len(found) > 1:
                    yield RawSite(
                        scope, call.line, "dispatch", "picked", render(call.expression[1]), _NO_DEVICES,
                        targets=tuple(sorted(found)), call=call,
                    )  # fmt: skip

    def _alternatives(self, scope: Scope) -> Iterator[RawSite]:
        """One target that gets objects of different classes, or the classes, under different tests."""
        made: dict[str, list[tuple[int, set[str], tuple[Test, ...], bool]]] = {}
        for target, value, line, tests in scope.assignments:
            text = dotted_text(target)
            found = set().union(*(self._named(scope, leaf) for leaf in _given_by(scope, value))) if text else set()
            if text and found:
                made.setdefault(text, []).append((line, found, tests, value[0] in ("i", "bo")))
        for text, items in made.items():
            classes = set().union(*(found for _, found, _, _ in items))
            if len(classes) > 1 and (len(items) > 1 or items[0][3]):
                deciding = _deciding(items[0][2], items[-1][2])
                line = deciding.line if deciding is not None else items[0][0]
                yield RawSite(
                    scope, line, "dispatch", "alternatives", text, _NO_DEVICES, targets=tuple(sorted(classes)),
                    tests=before(items[0][2], deciding),
                )  # fmt: skip


def _deciding(one: tuple[Test, ...], other: tuple[Test, ...]) -> Test | None:
    """The test on whose outcome two statements stand apart."""
    sides = {id(test.expression): test.positive for test in other}
    return next((t for t in one if sides.get(id(t.expression), t.positive) is not t.positive), None)


def _given_by(scope: Scope, item: Expression, depth: int = 4) -> Iterator[Expression]:
    """Names of classes in an expression that gives one of them, or an object of it: through calls, branches, locals."""
    if not item or depth < 0:
        return
    kind = item[0]
    if kind == "c":
        yield from _given_by(scope, item[1], depth - 1)
    elif kind in ("i", "bo"):
        for part in item[2:4]:
            yield from _given_by(scope, part, depth - 1)
    elif kind == "a":
        yield item
    elif kind == "l":
        child = next((c for c in scope.children if c.function is not None and c.line == item[2]), None)
        for value, _ in child.returns if child is not None else ():
            yield from _given_by(scope, value, depth - 1)
    elif kind == "n":
        bindings = scope.bindings.get(item[1], ()) if scope.kind == "function" else ()
        if not bindings:
            yield item
        for binding in bindings:
            if binding.kind == "value" and binding.expression != item:
                yield from _given_by(scope, binding.expression, depth - 1)


def _rows(value: Expression) -> Iterable[list[list[Expression]]]:
    """Rows of tables in a value: a literal, or one that is handed to what makes a table of it."""
    if value[0] == "d":
        yield value[1]
    elif value[0] == "c":
        factories = [[None, a] for a in value[2] if a[0] in ("n", "a", "l")]
        for argument in value[2]:
            if argument[0] == "d":
                yield [*argument[1], *factories]
