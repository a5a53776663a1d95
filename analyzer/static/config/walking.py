"""Walks over statements of the intermediate form, without evaluating them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sgl_graph.analyzer.static.extract.facts import Expression, Statement


def walk(body: Iterable[Statement]) -> Iterator[Statement]:
    """All statements of a body, nested ones included (not those of nested functions)."""
    stack = list(body)
    while stack:
        statement = stack.pop()
        yield statement
        kind = statement[0]
        if kind == "if":
            stack += [*statement[3], *statement[4]]
        elif kind == "for":
            stack += [*statement[4], *statement[5]]
        elif kind == "while":
            stack += [*statement[3], *statement[4]]
        elif kind == "with":
            stack += statement[3]
        elif kind == "try":
            stack += [*statement[2], *statement[4], *statement[5]]
            for handler in statement[3]:
                stack += handler[2]
        elif kind == "match":
            for case in statement[3]:
                stack += case[2]


_NESTED = {"if", "for", "while", "with", "try", "match"}


def calls_in(statement: Statement) -> Iterator[Expression]:
    """Call expressions of a simple statement."""
    if statement[0] in _NESTED:
        return
    stack: list[Any] = list(statement[2:])
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            if len(item) == 4 and item[0] == "c" and isinstance(item[2], list):
                yield item
            stack += item


def literal_keys(body: Iterable[Statement]) -> Iterator[str]:
    """String keys of the dictionary literals and item assignments of a body: what it may return as a field name."""
    for statement in walk(body):
        if statement[0] == "=":
            for target in statement[2]:
                if target[0] == "s" and target[2][0][0] == "v" and isinstance(target[2][0][1], str):
                    yield target[2][0][1]
        if statement[0] in _NESTED:
            continue
        stack: list[Any] = list(statement[2:])
        while stack:
            item = stack.pop()
            if isinstance(item, list):
                if len(item) == 2 and item[0] == "d" and isinstance(item[1], list):
                    for key, _ in item[1]:
                        if key is not None and key[0] == "v" and isinstance(key[1], str):
                            yield key[1]
                stack += item
