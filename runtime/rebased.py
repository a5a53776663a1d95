"""A finished map with its line numbers moved to where an edit has put the lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sgl_graph.analyzer.static.extract.shape import spelled_alike
from sgl_graph.runtime.source_record import Moved

_LAMBDA = re.compile(r"<lambda:(\d+)")


class _Lost(Exception):
    """A line of which nobody knows where it has gone."""


def rebased(body: Any, moved: Mapping[str, Moved]) -> Any:
    """The map's JSON value with moved lines, None where one cannot be moved for certain.

    Lines stand beside the name of their file, as `file:line` in texts, and in the names of lambdas.
    """
    move = _Moving(moved)
    try:
        found = move.value(body)
    except _Lost:
        return None
    # Texts that hold lines may have been sorted, and `9` stands behind `10`.
    alike = all(spelled_alike(moved[path].lines, lines) for path, lines in move.used.items())
    return found if alike else None


class _Moving:
    def __init__(self, moved: Mapping[str, Moved]) -> None:
        self._moved = moved
        #: Lines that stand in texts.
        self.used: dict[str, set[int]] = {path: set() for path in moved}
        self._modules = {place.module: path for path, place in moved.items()}
        names = "|".join(map(re.escape, sorted(moved, key=lambda path: (-len(path), path))))
        self._places = re.compile(rf"(?<![\w./-])({names}):(\d+)")

    def value(self, item: Any) -> Any:
        if isinstance(item, str):
            return self._text(item)
        if isinstance(item, list):
            return [self.value(part) for part in item]
        if not isinstance(item, dict):
            return item
        found = {self._text(key): self.value(part) for key, part in item.items()}
        path = item.get("file")
        if isinstance(path, str) and path in self._moved and isinstance(item.get("line"), int):
            found["line"] = self._line(path, item["line"])
        return found

    def _line(self, path: str, line: int) -> int:
        now = self._moved[path].lines.get(line)
        if now is None:
            raise _Lost
        return now

    def _written(self, path: str, line: int) -> int:
        self.used[path].add(line)
        return self._line(path, line)

    def _text(self, text: str) -> str:
        if ".py:" in text:
            text = self._places.sub(lambda m: f"{m[1]}:{self._written(m[1], int(m[2]))}", text)
        if "<lambda:" in text:
            text = self._lambdas(text)
        return text

    def _lambdas(self, text: str) -> str:
        """Names of lambdas carry a line; which file's is told by the module in front of them."""
        module, colon, rest = text.partition(":")
        if not colon or not re.fullmatch(r"[\w.]+", module) or " " in rest:
            raise _Lost
        path = self._modules.get(module)
        if path is None:
            return text
        return f"{module}:" + _LAMBDA.sub(lambda m: f"<lambda:{self._written(path, int(m[1]))}", rest)
