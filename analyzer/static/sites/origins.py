"""Where a value comes from: backwards through locals, parameters, attributes of the own object, and what functions return."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import Tags, argument_for, enclosing_method, self_name

#: A value that came through more steps than this is not followed further.
_DEEPEST = 24


class Origins:
    """Follows values back to the calls that made them, or had a part in them.

    Args:
        follow: whether to look into a function for what its value is made of.
    """

    def __init__(self, types: GraphTypes, follow: Callable[[Scope], bool]) -> None:
        self._types = types
        self._follow = follow
        self._seen: set[tuple[str, object]] = set()
        self._taken = 0

    @property
    def in_parts(self) -> bool:
        """Whether the call that was just given makes a collection of which the value is one part."""
        return self._taken > 0

    def calls(self, scope: Scope, item: Expression, depth: int = _DEEPEST) -> Iterator[tuple[Scope, Expression, Tags]]:
        """Calls on the way to a value, each once, with what their callees may be."""
        key = (scope.name, item[1] if item and item[0] == "n" else id(item))
        if not item or depth < 0 or key in self._seen:
            return
        self._seen.add(key)
        kind = item[0]
        if kind == "n":
            yield from self._name(scope, item[1], depth - 1)
        elif kind == "a":
            yield from self._attribute(scope, item, depth - 1)
        elif kind == "c":
            yield from self._call(scope, item, depth - 1)
        else:
            self._taken += kind == "s"
            for part in _parts(item):
                yield from self.calls(scope, part, depth - 1)
            self._taken -= kind == "s"

    def _name(self, scope: Scope, name: str, depth: int) -> Iterator[tuple[Scope, Expression, Tags]]:
        at: Scope | None = scope
        while at is not None and at.kind == "function":
            for binding in at.bindings.get(name, ()):
                if binding.kind in ("value", "element"):
                    self._taken += binding.kind == "element"
                    yield from self.calls(at, binding.expression, depth)
                    self._taken -= binding.kind == "element"
            function = at.function
            if function is not None and any(p.name == name for p in function.parameters):
                if name != self_name(at):
                    yield from self._given(at, name, depth)
                return
            if name in at.bindings:
                return
            at = at.parent

    def _given(self, scope: Scope, name: str, depth: int) -> Iterator[tuple[Scope, Expression, Tags]]:
        """From what callers give for a parameter."""
        assert scope.function is not None
        simple = scope.function.name
        for caller, call in self._types.callers(simple):
            if may_call(self._types, self._types.evaluate(caller, call.expression[1]), scope):
                argument = argument_for(call.expression, scope, name)
                if argument is not None:
                    yield from self.calls(caller, argument, depth)

    def _attribute(self, scope: Scope, item: Expression, depth: int) -> Iterator[tuple[Scope, Expression, Tags]]:
        method = enclosing_method(scope)
        if method is None or method.owner is None or item[1] != ["n", self_name(method)]:
            return
        for owner in self._types.mro(method.owner):
            for at, binding in self._types.assigned(owner, item[2]):
                if binding.kind == "value":
                    yield from self.calls(at, binding.expression, depth)

    def _call(self, scope: Scope, item: Expression, depth: int) -> Iterator[tuple[Scope, Expression, Tags]]:
        tags = self._types.evaluate(scope, item[1])
        yield scope, item, tags
        followed = False
        for tag in sorted(tags):
            target = self._types.scopes.get(tag[5:]) if tag.startswith("func:") else None
            if target is not None and self._follow(target):
                followed = True
                for value, _ in target.returns:
                    yield from self.calls(target, value, depth)
        if not followed and (not tags or any(tag.startswith("class:") for tag in tags)):
            # A record, or a function of the language: made of its arguments.
            for argument in item[2]:
                yield from self.calls(scope, argument[2] if argument[0] == "k" else argument, depth)


def may_call(types: GraphTypes, callee: Tags, scope: Scope) -> bool:
    """Whether a callee may be a function, or a method of a base that it overrides."""
    if "func:" + scope.name in callee:
        return True
    if scope.owner is None or scope.function is None:
        return False
    return any(f"func:{base}.{scope.function.name}" in callee for base in types.mro(scope.owner))


def _parts(item: Expression) -> list[Expression]:
    """Expressions whose values are in an expression's value."""
    kind = item[0]
    if kind in ("t", "L", "S"):
        return list(item[1])
    if kind in ("i", "bo", "b"):
        return [item[2], item[3]]
    if kind == "s":
        return [item[1], *item[2]]
    if kind == "C":
        return [*item[2], *(iterable for _, iterable, _ in item[3])]
    if kind == "w":
        return [item[2]]
    return [item[1]] if kind in ("aw", "*") else []


def truths(scope: Scope, item: Expression, depth: int = 6) -> Iterator[tuple[Scope, Expression]]:
    """Calls whose answers are the answer of a condition: through `and`, `or`, `not`, branches, `bool(...)` and locals."""
    if not item or depth < 0:
        return
    kind = item[0]
    if kind == "bo":
        parts = item[2:4]
    elif kind == "i":
        parts = item[1:4]
    elif kind in ("u", "w"):
        parts = [item[2]]
    elif kind == "c":
        yield scope, item
        wraps = item[1][0] == "n" and item[1][1] in ("bool", "all", "any")
        parts = [item[2][0]] if wraps and item[2] else []
    elif kind == "C":
        parts = item[2][-1:]
    elif kind == "n":
        at: Scope | None = scope
        while at is not None and at.kind == "function" and item[1] not in at.bindings:
            at = at.parent
        for binding in at.bindings.get(item[1], ()) if at is not None else ():
            if binding.kind == "value" and at is not None:
                yield from truths(at, binding.expression, depth - 1)
        return
    else:
        return
    for part in parts:
        yield from truths(scope, part, depth - 1)
