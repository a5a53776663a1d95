"""What a stored map was made from, file by file, so that an edit that changes no fact of it does not unmake it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

from sgl_graph.analyzer.static import facts as f
from sgl_graph.analyzer.static.project import Module

_IDLE_LINES = re.compile(rb"(?m)^[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
#: How a file took part: its facts were read, or only its text was looked through.
_READ, _SEEN = "facts", "text"


class Files(Protocol):
    """What is asked of a checkout's files."""

    def paths(self) -> Iterable[str]: ...

    def text(self, path: str) -> bytes: ...

    def digest(self, path: str) -> str: ...

    def facts(self, path: str) -> f.ModuleFacts: ...


def record_of(files: Files, read: Iterable[Module]) -> dict[str, list[str]]:
    """Per file: digest of its bytes, how it took part, and a mark of what the map could see of it."""
    marks = {module.path: _facts_mark(module.facts) for module in read}
    found: dict[str, list[str]] = {}
    for path in files.paths():
        mark = marks.get(path)
        kind = _READ if mark is not None else _SEEN
        found[path] = [files.digest(path), kind, mark if mark is not None else _text_mark(files.text(path))]
    return found


def still_holds(record: Mapping[str, list[str]], files: Files) -> bool:
    """Whether a map made from the recorded files would be made from these as well."""
    paths = list(files.paths())
    if record.keys() != set(paths):
        return False
    for path in paths:
        digest, kind, mark = record[path]
        if files.digest(path) == digest:
            continue
        now = _facts_mark(files.facts(path)) if kind == _READ else _text_mark(files.text(path))
        if now != mark:
            return False
    return True


def _facts_mark(facts: f.ModuleFacts) -> str:
    """Digest of the facts, line numbers included, but for the number of lines of the file."""
    same = f.ModuleFacts(facts.error, facts.body, facts.functions, facts.classes, 0)
    return hashlib.sha256(f.encode_module(same)).hexdigest()


def _text_mark(text: bytes) -> str:
    """Digest of the text without blank lines and lines of comment."""
    return hashlib.sha256(_IDLE_LINES.sub(b"", text)).hexdigest()
