"""What a wrapped function was given first, by position or by name."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

#: The names in the head line that compilers of extension modules put into a docstring: `f(a, int b, c: T)`.
_HEAD = re.compile(r"^\w+\((.*)\)")
_NAME = re.compile(r"(\w+)\s*(?=[:=]|$)")


class Picker:
    """Gives the first arguments of a call, in the function's own order; None for one that was not given."""

    def __init__(self, function: Any, count: int) -> None:
        """Args: function: what is called. count: how many arguments are wanted."""
        self._count = count
        self._names = parameter_names(function)[:count]

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        if len(args) >= self._count:
            return list(args[: self._count])
        if self._names:
            return [*args, *(kwargs.get(name) for name in self._names[len(args) :])]
        given = [*args, *kwargs.values()][: self._count]  # keywords keep the order in which they are written
        return given + [None] * (self._count - len(given))


def parameter_names(function: Any) -> list[str]:
    """The names of a function's parameters, in order; empty where they cannot be known."""
    try:
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    return names or _documented(getattr(function, "__doc__", None))


def _documented(text: Any) -> list[str]:
    match = _HEAD.match(text) if isinstance(text, str) else None
    if match is None:
        return []
    found = [_NAME.search(part) for part in _parts(match[1])]
    return [name[1] for name in found if name is not None] if all(found) else []


def _parts(text: str) -> list[str]:
    """Split at the commas that lie in no bracket."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
