"""Evaluates a label expression over a frame's variables: names, attributes, subscripts, constants, nothing that calls."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache
from typing import Any


class Unevaluable(Exception):
    """The expression is not one of the allowed forms, or a part of it has no value here."""


@lru_cache(maxsize=1024)
def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise Unevaluable(str(error)) from error


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """The value of `text` with the variables `names`.

    Attributes are read with `getattr`, so a property of the program may run; nothing is called otherwise.

    Raises:
        Unevaluable: A form that is not allowed, or a missing name, attribute or key.
    """
    return _value(_parse(text), names)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id in names:
            return names[node.id]
        raise Unevaluable(f"no variable {node.id}")
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(element, names) for element in node.elts)
    try:
        if isinstance(node, ast.Attribute):
            return getattr(_value(node.value, names), node.attr)
        if isinstance(node, ast.Subscript):
            return _value(node.value, names)[_value(node.slice, names)]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -_value(node.operand, names)
    except Unevaluable:
        raise
    except Exception as error:
        raise Unevaluable(f"{type(error).__name__}: {error}") from error
    raise Unevaluable(f"{type(node).__name__} is not allowed in a label expression")
