"""Patterns of `match` statements to facts: what a case asks of its subject, and what it binds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.lower_expressions import ExpressionLowering

_PARTS: dict[type, tuple[str, ...]] = {
    cst.MatchClass: ("patterns", "kwds"), cst.MatchOr: ("patterns",), cst.MatchOrElement: ("pattern",),
    cst.MatchAs: ("pattern",), cst.MatchList: ("patterns",), cst.MatchTuple: ("patterns",),
    cst.MatchSequenceElement: ("value",), cst.MatchMapping: ("elements", "rest"), cst.MatchMappingElement: ("pattern",),
    cst.MatchKeywordElement: ("pattern",),
}  # fmt: skip


class Case(NamedTuple):
    """One `case`: its pattern, a test that must hold besides, and the assignments that its captures make."""

    pattern: f.Expression
    test: f.Expression | None = None
    bindings: list[f.Statement] = []  # noqa: RUF012 - never changed


class PatternLowering(ExpressionLowering):
    """Patterns beside expressions."""

    def _case(self, node: cst.MatchPattern, subject: f.Expression, line: int) -> Case:
        if isinstance(node, (cst.MatchValue, cst.MatchSingleton)):
            return Case(self._expr(node.value))
        if isinstance(node, cst.MatchClass):
            refutable = ["x"] if node.patterns or node.kwds else None
            return Case(["isinstance", self._expr(node.cls)], refutable, self._captures(node, line))
        if isinstance(node, cst.MatchOr):
            parts = [self._case(item.pattern, subject, line) for item in node.patterns]
            bindings = [binding for part in parts for binding in part.bindings]
            plain = all(part.test is None for part in parts)
            return Case(["or", [part.pattern for part in parts]] if plain else ["x"], None, bindings)
        if isinstance(node, cst.MatchAs):
            inner = self._case(node.pattern, subject, line) if node.pattern is not None else Case(["any"])
            if node.name is None:
                return inner
            value = subject if _is_plain(subject) else ["x"]
            return Case(inner.pattern, inner.test, [*inner.bindings, self._capture(node, value, line)])
        if isinstance(node, (cst.MatchList, cst.MatchTuple)) and subject[0] == "t":
            return self._item_by_item(node, subject, line)
        return Case(["x"], None, self._captures(node, line))

    def _item_by_item(self, node: cst.MatchList | cst.MatchTuple, subject: f.Expression, line: int) -> Case:
        """`match a, b: case 1, 2` asks `a == 1 and b == 2`."""
        parts = [item.value for item in node.patterns if isinstance(item, cst.MatchSequenceElement)]
        if len(parts) != len(node.patterns) or len(parts) != len(subject[1]):
            return Case(["x"], None, self._captures(node, line))
        test: f.Expression | None = None
        bindings: list[f.Statement] = []
        for part, item in zip(parts, subject[1], strict=True):
            lowered = self._case(part, item, line)
            bindings += lowered.bindings
            test = both(test, both(_asks(item, lowered.pattern, line), lowered.test))
        return Case(["any"], test, bindings)

    def _captures(self, node: cst.CSTNode, line: int) -> list[f.Statement]:
        """Bindings of names inside a pattern of which only the name, and perhaps the class, is known."""
        found: list[f.Statement] = []
        for child in _parts(node):
            if isinstance(child, (cst.MatchAs, cst.MatchStar)) and child.name is not None:
                found.append(self._capture(child, ["x"], line))
            elif isinstance(child, cst.Name) and isinstance(node, cst.MatchMapping):
                self._bind(child.value)  # `**rest`
                found.append(["=", line, [["n", child.value]], ["x"]])
            found += self._captures(child, line)
        return found

    def _capture(self, node: cst.MatchAs | cst.MatchStar, value: f.Expression, line: int) -> f.Statement:
        assert node.name is not None
        self._bind(node.name.value)
        name = ["n", node.name.value]
        pattern = node.pattern if isinstance(node, cst.MatchAs) else None
        if isinstance(pattern, cst.MatchClass):
            return [":", line, name, self._expr(pattern.cls), value]
        return ["=", line, [name], value]


def _parts(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The patterns, and names, that a pattern is made of, in source order."""
    for name in _PARTS.get(type(node), ()):
        part = getattr(node, name)
        if isinstance(part, cst.CSTNode):
            yield part
        elif part is not None:
            yield from part


def both(left: f.Expression | None, right: f.Expression | None) -> f.Expression | None:
    """Both tests, where there are two."""
    if left is None or right is None:
        return left if right is None else right
    return ["bo", "and", left, right]


def _is_plain(e: f.Expression) -> bool:
    """A name or a chain of attributes: it may be written a second time."""
    return e[0] == "n" or (e[0] == "a" and _is_plain(e[1]))


def _asks(item: f.Expression, pattern: f.Expression, line: int) -> f.Expression | None:
    """The test that a pattern makes of one value."""
    kind = pattern[0]
    if kind == "any":
        return None
    if kind == "isinstance":
        return ["c", ["n", "isinstance"], [item, pattern[1]], line]
    if kind == "or":
        plain = all(choice[0] in ("v", "n", "a") for choice in pattern[1])
        return ["cmp", item, [["in", ["t", pattern[1]]]]] if plain else ["x"]
    return ["x"] if kind == "x" else ["cmp", item, [["==", pattern]]]
