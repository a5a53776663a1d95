"""Types from annotations: used where values are not known by flow."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.objects import Typed
from sgl_graph.analyzer.static.link.values import NOTHING, ClassValue, External, Instance, Value, Values, just

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_DOTTED = re.compile(r"[A-Za-z_][\w.]*")
_SEQUENCES = {"List", "list", "Sequence", "Iterable", "Iterator", "Tuple", "tuple", "Set", "set", "Deque", "deque",
              "Collection", "frozenset", "FrozenSet", "Generator"}  # fmt: skip
_MAPPINGS = {"Dict", "dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"}
_UNIONS = {"Optional", "Union", "ClassVar", "Final", "Annotated", "Required", "NotRequired", "InitVar"}
_DEEPEST = 5


class Annotations:
    """Annotation expressions to abstract values (fuzzy instances)."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._known: dict[tuple[str, int, int], Values] = {}

    def types(self, annotation: Expression, activation: Activation, owner: ClassValue | None) -> Values:
        """What an annotated name may hold; nothing when the annotation names no class of the checkout."""
        function = activation.function
        key = (activation.module.name, function.index if function is not None else -1, id(annotation))
        known = self._known.get(key)
        if known is None:
            known = self._types(annotation, activation, owner, 0)
            if known:
                self._known[key] = known
        return known

    def _types(self, e: Expression, activation: Activation, owner: ClassValue | None, depth: int) -> Values:
        kind = e[0]
        if depth > _DEEPEST:
            return NOTHING
        if kind in ("n", "a"):
            return self._named(e, activation)
        if kind == "v" and isinstance(e[1], str):
            found: set[Value] = set()
            for name in _DOTTED.findall(e[1]):
                found |= self._named(_as_expression(name), activation)
            return frozenset(found)
        if kind == "b" and e[1] == "|":
            return self._types(e[2], activation, owner, depth + 1) | self._types(e[3], activation, owner, depth + 1)
        if kind == "s":
            head = e[1][2] if e[1][0] == "a" else e[1][1] if e[1][0] == "n" else ""
            inner: list[Expression] = []
            for item in e[2]:
                inner += item[1] if item[0] == "t" else [item]
            if head in _UNIONS:
                parts = [self._types(item, activation, owner, depth + 1) for item in inner]
                return frozenset().union(*parts)
            if head in _SEQUENCES and inner:
                parts = [self._types(item, activation, owner, depth + 1) for item in inner]
                elements: Values = frozenset().union(*parts)
                return just(Typed.of(elements, False)) if elements else NOTHING
            if head in _MAPPINGS and len(inner) == 2:
                elements = self._types(inner[1], activation, owner, depth + 1)
                return just(Typed.of(elements, True)) if elements else NOTHING
            if head in ("Type", "type") and inner:
                return frozenset(
                    v.cls for v in self._types(inner[0], activation, owner, depth + 1) if isinstance(v, Instance)
                )
            return self._named(e[1], activation) if e[1][0] in ("n", "a") else NOTHING
        return NOTHING

    def _named(self, e: Expression, activation: Activation) -> Values:
        values = self._in.expressions.global_lookup(e, activation)
        found: set[Value] = set()
        for value in values:
            if isinstance(value, ClassValue):
                # A member of an enumeration is one of those that its class lists.
                found |= self._in.models.members(value) or {Instance.of(value, fuzzy=True)}
            elif isinstance(value, External) and self._in.keeps(value.path):
                found.add(External.of(f"{value.path}()"))
        return frozenset(found)


def is_plain(annotation: Expression) -> bool:
    """Whether an annotation is one name: what it admits is all that the parameter may be, not even None besides."""
    if annotation[0] == "v" and isinstance(annotation[1], str):
        return _DOTTED.fullmatch(annotation[1]) is not None
    return annotation[0] in ("n", "a")


def _as_expression(dotted: str) -> Expression:
    first, *rest = dotted.strip(".").split(".")
    expression: Expression = ["n", first]
    for part in rest:
        expression = ["a", expression, part, 0]
    return expression
