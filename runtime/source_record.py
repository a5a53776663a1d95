"""What a stored map was made from, file by file, and how it is carried over an edit that it cannot tell.

A map depends on the facts that were read of modules (their shape, and the bodies of the functions that were looked into),
and on what was asked of the text of files. Where an edit leaves all of that as it was, the map would be made again
with other line numbers and no other difference, so its line numbers are moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sgl_graph.analyzer.static.checkout.project import Module, Project, may_declare, module_name
from sgl_graph.analyzer.static.checkout.questions import asked_again
from sgl_graph.analyzer.static.checkout.textindex import round_of
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.shape import Shape, paired, rising, shape_of, spelled_alike

Record = dict[str, Any]
#: More changed files than this are linked anew: looking at each would take as long.
_MOST_CHANGED = 40


class Files(Protocol):
    """What is asked of a checkout's files."""

    def paths(self) -> Iterable[str]: ...

    def lost(self) -> Mapping[str, str]: ...

    def text(self, path: str) -> bytes: ...

    def digest(self, path: str) -> str: ...

    def problem(self, path: str) -> str | None: ...

    def facts(self, path: str) -> f.ModuleFacts: ...

    def prefetch(self, paths: Iterable[str]) -> None: ...

    def stored_facts(self, digest: str) -> f.ModuleFacts | None: ...


@dataclass(frozen=True, slots=True)
class Moved:
    """Where the lines of one changed file have gone.

    Attributes:
        module: dotted name of the file's module.
        lines: old line to new one, for each position that the analysis could see.
    """

    module: str
    lines: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Carried:
    """A record that holds, as it is after the edit; `moved` by path, empty when no file changed."""

    record: Record
    moved: dict[str, Moved]


def record_of(files: Files, project: Project) -> Record:
    """Per file the digest of its bytes and, where its facts were read, which bodies; and the questions to texts."""
    loaded = {module.path: _read_of(module) for module in project.loaded()}
    return {
        "files": {path: [_state(files, path), *loaded.get(path, ())] for path in files.paths()},
        "lost": dict(files.lost()),
        "questions": project.questions.record(),
        "hints": [[log.folder, log.rounds, dict(sorted(log.taken.items()))] for log in project.hints],
    }


def carry(record: Record, files: Files) -> Carried | None:
    """The record over what has changed since; None where the map may be another one."""
    known: dict[str, list[Any]] = record["files"]
    paths = list(files.paths())
    if known.keys() != set(paths) or record["lost"] != dict(files.lost()):
        return None
    changed = [path for path in paths if _state(files, path) != known[path][0]]
    if not changed:
        return Carried(record, {})
    if len(changed) > _MOST_CHANGED:
        return None
    now = {**record, "files": dict(known)}
    moved: dict[str, Moved] = {}
    files.prefetch(path for path in changed if len(known[path]) > 1)
    for path in changed:
        if files.problem(path) is not None:
            return None
        lines: dict[int, int] = {}
        entry: list[Any] = [files.digest(path)]
        if len(known[path]) > 1:
            old = files.stored_facts(known[path][0])
            seen = _compared(old, files.facts(path), known[path]) if old is not None else None
            if seen is None:
                return None
            lines, details = seen
            entry += details
        text = files.text(path)
        questions = asked_again(now["questions"], path, text, lines)
        if questions is None or not rising(lines) or not _same_hints(now["hints"], path, text):
            return None
        now["questions"] = questions
        now["files"][path] = entry
        moved[path] = Moved(module_name(path)[0], lines)
    return Carried(now, moved)


def _state(files: Files, path: str) -> str:
    """Digest of a file's bytes, with the reason where they cannot be read."""
    return files.digest(path) + (files.problem(path) or "")


def _read_of(module: Module) -> list[Any]:
    mask = sum(1 << index for index in module.read)
    return [f"{mask:x}", sorted(module.declared)]


def _compared(old: f.ModuleFacts, new: f.ModuleFacts, entry: list[Any]) -> tuple[dict[int, int], list[Any]] | None:
    """Old lines to new ones and what was read by the new indices; None where the analysis would see a difference."""
    _, mask, declared = entry
    read = int(mask, 16)
    if old.error is not None or new.error is not None:
        return ({}, [mask, declared]) if old.error == new.error else None
    try:
        before = shape_of(old, lambda position, index: bool(read >> index & 1))
        met = before.read
        after = shape_of(new, lambda position, index: position < len(met) and met[position])
    except (RecursionError, ValueError):
        return None
    if before.digest_input != after.digest_input or len(before.functions) != len(after.functions):
        return None
    if not _all_met(before, read):
        return None
    lines = paired(before.positions, after.positions)
    if lines is None or not spelled_alike(lines, before.lambdas):
        return None
    unread = [new.functions[i] for i, seen in zip(after.functions, after.read, strict=True) if not seen]
    if any(may_declare(function, name) for function in unread for name in declared):
        return None
    mask_now = sum({1 << index for index, seen in zip(after.functions, after.read, strict=True) if seen})
    return lines, [f"{mask_now:x}", declared]


def _all_met(shape: Shape, read: int) -> bool:
    """Whether each body that was read was met on the walk: one inside a body that was not read is out of its reach."""
    met = sum({1 << index for index, seen in zip(shape.functions, shape.read, strict=True) if seen})
    return met == read


def _same_hints(hints: list[list[Any]], path: str, text: bytes) -> bool:
    return all(
        not path.startswith(folder) or round_of(text, rounds) == taken.get(path) for folder, rounds, taken in hints
    )
