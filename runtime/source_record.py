"""What a stored map was made from, file by file, and how it is carried over an edit that it cannot tell.

A map depends on the facts that were read of modules (their shape, and the bodies of the functions that were looked into),
and on what was asked of the text of files. Where an edit leaves all of that as it was, the map would be made again
with other line numbers and no other difference, so its line numbers are moved.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sgl_graph.analyzer.static.checkout.project import Module, Project, headers_in, may_declare, module_name
from sgl_graph.analyzer.static.checkout.questions import asked_again
from sgl_graph.analyzer.static.checkout.textindex import round_of
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.shape import (
    EVALUATED,
    READ,
    UNREAD,
    Shape,
    paired,
    rising,
    shape_of,
    spelled_alike,
)
from sgl_graph.analyzer.static.extract.unasked import EVERY, unasked, unasked_methods

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
class _Lookups:
    """What was looked for in classes: names, and beginnings and ends of names."""

    sought: frozenset[str]
    patterns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """A record that holds, as it is after the edit.

    Attributes:
        moved: by path; empty when no file changed.
        more_functions: by how much the number of functions has grown.
    """

    record: Record
    moved: dict[str, Moved]
    more_functions: int = 0


def record_of(files: Files, project: Project) -> Record:
    """Per file the digest of its bytes and, where its facts were read, which bodies; and the questions to texts."""
    loaded = {module.path: _read_of(module) for module in project.loaded()}
    return {
        "files": {path: [_state(files, path), *loaded.get(path, ())] for path in files.paths()},
        "lost": dict(files.lost()),
        "counted": dict(project.counted),
        "sought": sorted(project.sought),
        "patterns": sorted(project.patterns),
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
    now = {**record, "files": dict(known), "counted": dict(record["counted"])}
    more = 0
    moved: dict[str, Moved] = {}
    lookups = _Lookups(frozenset(record["sought"]), tuple((first, last) for first, last in record["patterns"]))
    names = {part for path in paths for part in _with_packages(module_name(path)[0])}
    files.prefetch(path for path in changed if len(known[path]) > 1)
    for path in changed:
        if files.problem(path) is not None:
            return None
        lines: dict[int, int] = {}
        entry: list[Any] = [files.digest(path)]
        if len(known[path]) > 1:
            old = files.stored_facts(known[path][0])
            inside = functools.partial(_is_module, names, module_name(path)[0])
            seen = _compared(old, files.facts(path), known[path], inside, lookups) if old is not None else None
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
        if path in now["counted"]:
            count = headers_in(text)
            more += count - now["counted"][path]
            now["counted"][path] = count
        moved[path] = Moved(module_name(path)[0], lines)
    return Carried(now, moved, more)


def _state(files: Files, path: str) -> str:
    """Digest of a file's bytes, with the reason where they cannot be read."""
    return files.digest(path) + (files.problem(path) or "")


def _read_of(module: Module) -> list[Any]:
    asked = [EVERY] if EVERY in module.asked else sorted(module.asked)
    return [_mask(module.read), _mask(module.evaluated), sorted(module.declared), asked]


def _mask(indices: Iterable[int]) -> str:
    return f"{sum({1 << index for index in indices}):x}"


def _with_packages(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _is_module(names: set[str], module: str, name: str) -> bool:
    """Whether a dotted name, or a name of a package, is one of the checkout's modules or packages."""
    return name in names or f"{module}.{name}" in names


def _compared(
    old: f.ModuleFacts, new: f.ModuleFacts, entry: list[Any], inside: Callable[[str], bool], lookups: _Lookups
) -> tuple[dict[int, int], list[Any]] | None:
    """Old lines to new ones and what was read by the new indices; None where the analysis would see a difference."""
    _, *masks, declared, asked = entry
    if old.error is not None or new.error is not None:
        return ({}, [*masks, declared, asked]) if old.error == new.error else None
    read, evaluated = (int(mask, 16) for mask in masks)
    # Whoever reads a body has found the function somehow.
    found = [item for index, item in enumerate(old.functions) if read >> index & 1]
    looked_up = {*asked, *(item.qualname.partition(".")[0] for item in found)}
    looked_for = lookups.sought | {item.name for item in found}

    def methods(facts: f.ModuleFacts) -> Container[tuple[int, int]]:
        return unasked_methods(facts, looked_up, looked_for, lookups.patterns)

    try:
        before = shape_of(
            old,
            lambda position, index: (read >> index & 1) + (evaluated >> index & 1),
            unasked(old, looked_up, inside),
            methods(old),
            headers=EVERY in asked,
        )
        met = before.read
        after = shape_of(
            new,
            lambda position, index: met[position] if position < len(met) else UNREAD,
            unasked(new, looked_up, inside),
            methods(new),
            headers=EVERY in asked,
        )
    except (RecursionError, ValueError):
        return None
    if before.digest_input != after.digest_input or len(before.functions) != len(after.functions):
        return None
    if _masks(before) != masks:
        return None  # a body that was read inside one that was not is out of the walk's reach
    lines = paired(before.positions, after.positions)
    if lines is None or not spelled_alike(lines, before.lambdas):
        return None
    for left, right, seen in zip(before.functions, after.functions, after.read, strict=True):
        for name in declared:
            # Who asked of a function that was not read heard that it does not; else the map would rest on its body.
            was = seen != UNREAD and may_declare(old.functions[left], name)
            if may_declare(new.functions[right], name) is not was:
                return None
    return lines, [*_masks(after), declared, asked]


def _masks(shape: Shape) -> list[str]:
    met = list(zip(shape.functions, shape.read, strict=True))
    return [_mask(index for index, seen in met if seen >= level) for level in (READ, EVALUATED)]


def _same_hints(hints: list[list[Any]], path: str, text: bytes) -> bool:
    return all(
        not path.startswith(folder) or round_of(text, rounds) == taken.get(path) for folder, rounds, taken in hints
    )
