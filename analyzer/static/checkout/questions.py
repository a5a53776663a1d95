"""What an analysis asks of the text of files, kept with the answers, so that it can be asked again after an edit.

Facts are the analysis' source. Where it looks at text as well, to choose what to read, it asks through here: a stored
map then holds as long as the answers are the same, whatever else of the text has changed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sgl_graph.analyzer.records.base import canonical_json

_PACKAGE = "sgl_graph.analyzer.static."
_LONGEST = 60
_questions: dict[str, Callable[..., Any]] = {}
#: Answers by question and arguments, then by file.
Log = dict[tuple[str, tuple[Any, ...]], dict[str, Any]]


class At(int):
    """A line in the arguments or in the answer of a question: it moves when the text above it does."""


def question(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a pure function of a file's bytes, and of plain arguments, a question that can be asked by its name."""
    _questions[f"{function.__module__}:{function.__qualname__}"] = function
    return function


class Questions:
    """Asks, and keeps what was answered."""

    def __init__(self, text: Callable[[str], bytes]) -> None:
        self._text = text
        self.log: Log = {}

    def ask(self, path: str, asked: Callable[..., Any], *arguments: Any) -> Any:
        """The answer of one file's text."""
        name = f"{asked.__module__}:{asked.__qualname__}"
        assert name in _questions, f"{name} is no question"
        answer = asked(self._text(path), *arguments)
        self.log.setdefault((name, arguments), {})[path] = answer
        return answer

    def record(self) -> list[list[Any]]:
        """All questions with the answers of each file, as plain data."""
        return [
            [name, [_plain(a) for a in arguments], {path: _short(answer) for path, answer in sorted(answers.items())}]
            for (name, arguments), answers in sorted(self.log.items(), key=repr)
        ]


def asked_again(record: Iterable[list[Any]], path: str, text: bytes, lines: dict[int, int]) -> list[list[Any]] | None:
    """The record with the answers of one file's new text, None where an answer changed.

    Args:
        lines: old lines of the file to new ones; the lines of answers are added.
    """
    found: list[list[Any]] = []
    for name, arguments, answers in record:
        if path not in answers:
            found.append([name, arguments, answers])
            continue
        function = _question(name)
        if function is None:
            return None
        moved = [_moved(argument, lines) for argument in arguments]
        if None in moved and None not in arguments:
            return None
        answer = _short(function(text, *map(_unpacked, moved)))
        if not _same(answers[path], answer, lines):
            return None
        if moved == arguments:
            found.append([name, arguments, {**answers, path: answer}])
        else:
            others = {other: value for other, value in answers.items() if other != path}
            found += [[name, moved, {path: answer}], *([[name, arguments, others]] if others else [])]
    return found


def _question(name: str) -> Callable[..., Any] | None:
    module = name.partition(":")[0]
    if name not in _questions and module.startswith(_PACKAGE):
        importlib.import_module(module)
    return _questions.get(name)


def _plain(item: Any) -> Any:
    return ["@", int(item)] if isinstance(item, At) else item


def _unpacked(item: Any) -> Any:
    return At(item[1]) if _is_line(item) else item


def _is_line(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and item[0] == "@"


def _moved(item: Any, lines: Mapping[int, int]) -> Any:
    """An argument as it is after an edit; None where nobody knows where its line has gone."""
    if not _is_line(item):
        return item
    line = lines.get(item[1])
    return None if line is None else ["@", line]


def _same(old: Any, new: Any, lines: dict[int, int]) -> bool:
    if _is_line(old) and _is_line(new):
        return lines.setdefault(int(old[1]), int(new[1])) == int(new[1])
    return type(old) is type(new) and bool(old == new)


def _short(answer: Any) -> Any:
    """An answer as it is kept: as it is, or its digest where it is long."""
    plain = _plain(answer)
    encoded = canonical_json(plain)
    # As it comes back from a store: a tuple is a list there.
    return json.loads(encoded) if len(encoded) <= _LONGEST else "#" + hashlib.sha256(encoded).hexdigest()[:32]
