"""Line numbers for the extractor.

libcst's position provider costs three to four times the parse itself. The standard parser gives the same lines for a
tenth of it, so its nodes are walked in source order beside libcst's. It contributes line numbers only, never a fact;
where it cannot read a file that libcst can, the provider is used after all.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

#: Fields of the standard parser's nodes without nodes that have a line, except where they are lists of such.
_LEAVES = frozenset(
    (
        "ctx",
        "op",
        "ops",
        "id",
        "attr",
        "arg",
        "kind",
        "is_async",
        "conversion",
        "type_comment",
        "lineno",
        "name",
        "names",
    )
)
_known_fields: dict[type, tuple[str, ...]] = {}
_KINDS: dict[type, str] = {ast.Call: "c", ast.Attribute: "a", ast.Subscript: "s", ast.Lambda: "l"}


class StatementLines:
    """Lines of the calls, attributes, subscripts and lambdas of one statement, handed out in source order."""

    __slots__ = ("_entries", "_next", "current", "line")

    def __init__(self, line: int, entries: Sequence[tuple[int, str]] | None) -> None:
        self.line = line
        self.current = line
        self._entries = entries
        self._next = 0

    def next(self, kind: str, node: cst.CSTNode) -> int:
        """Line of the next expression of a kind; the statement's line once the two parsers disagree."""
        entries = self._entries
        if entries is not None and self._next < len(entries):
            line, expected = entries[self._next]
            if expected == kind:
                self._next += 1
                self.current = line
                return line
            self._entries = None
        return self.current


class _ProvidedLines(StatementLines):
    """Lines from libcst's own provider."""

    __slots__ = ("_table",)

    def __init__(self, line: int, table: dict[cst.CSTNode, int]) -> None:
        super().__init__(line, None)
        self._table = table

    def next(self, kind: str, node: cst.CSTNode) -> int:
        self.current = self._table.get(node, self.current)
        return self.current


class Lines:
    """Where the statements of one module stand."""

    def __init__(
        self, count: int, statements: Sequence[ast.stmt] | None, table: dict[cst.CSTNode, int] | None = None
    ) -> None:
        self.count = count
        self.statements = statements
        self._table = table

    @classmethod
    def of(cls, source: bytes) -> Lines | None:
        """Lines by the standard parser; None where it refuses the file."""
        try:
            return cls(_count(source), ast.parse(source).body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @classmethod
    def provided(cls, source: bytes, tree: cst.Module) -> Lines:
        """Lines by libcst's provider, which needs all of its tree."""
        positions = MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider)
        return cls(_count(source), None, {node: span.start.line for node, span in positions.items()})

    def enter(self, node: cst.CSTNode, tree: ast.AST | None) -> StatementLines:
        """Lines of one statement's own expressions (its nested statements excluded)."""
        if self._table is not None:
            return _ProvidedLines(self._table.get(node, 1), self._table)
        if tree is None:
            return StatementLines(1, None)
        entries: list[tuple[int, int, int, int, str]] = []
        _collect(tree, entries)
        entries.sort()
        # Decorators stand above the line that the parser gives for a definition.
        line: int = getattr(tree, "lineno", 1)
        return StatementLines(line, [(entry[0], entry[4]) for entry in entries])


def _count(source: bytes) -> int:
    return source.count(b"\n") + 1


def _collect(node: ast.AST, entries: list[tuple[int, int, int, int, str]]) -> None:
    stack: list[Any] = list(_own_children(node))
    while stack:
        item = stack.pop()
        kind = type(item)
        name = _KINDS.get(kind)
        if name is not None:
            # Of two expressions that start together the outer one comes first: it ends later.
            entries.append((item.lineno, item.col_offset, -item.end_lineno, -item.end_col_offset, name))
        elif kind is ast.JoinedStr:
            continue  # positions inside f-strings are not reliable before Python 3.12
        for field in _fields(kind):
            value = getattr(item, field, None)
            if value.__class__ is list:
                stack += value
            elif value is not None:
                stack.append(value)


def _fields(kind: type) -> tuple[str, ...]:
    """Fields of a kind of node that may hold other nodes; others hold names, constants and what a name is used for."""
    known = _known_fields.get(kind)
    if known is None:
        names: tuple[str, ...] = getattr(kind, "_fields", ()) if kind is not ast.Constant else ()
        known = _known_fields[kind] = tuple(name for name in names if name not in _LEAVES)
    return known


def _own_children(node: ast.AST) -> list[ast.AST]:
    """Child expressions of a statement, without the statements nested in it."""
    children: list[ast.AST] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            continue
        children.append(child)
    return children
