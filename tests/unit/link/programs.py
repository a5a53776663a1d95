"""Small programs, linked: written from one text, read back as a checkout, their edges in a form that tests compare."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.extract.facts import ModuleFacts
from sgl_graph.analyzer.static.extract.lower import extract
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.link.moments import Serving
from sgl_graph.analyzer.static.link.oracle import Oracle
from sgl_graph.analyzer.static.linked import Call, Linked, Truth

_FILE = re.compile(r"^# file: (\S+)$", re.MULTILINE)

#: A small hierarchy that several tests stand on.
ENGINES = """
        # file: engines.py
        from abc import ABC, abstractmethod

        class Engine(ABC):
            @abstractmethod
            def start(self):
                ...

            def warm(self):
                self.start()

        class Gas(Engine):
            def start(self):
                pass

        class Electric(Engine):
            def start(self):
                pass

        class Idle(Engine):
            def start(self):
                pass
"""

#: Three functions for the branches of a program to call.
WORKERS = """
        # file: work.py
        def yes():
            pass

        def no():
            pass

        def third():
            pass
"""


class FolderSources:
    """`Sources` of a folder, extracted in this process; counts what was asked for."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.read: list[str] = []

    def paths(self) -> list[str]:
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.rglob("*.py"))

    def text(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def lost(self) -> dict[str, str]:
        return {}

    def problem(self, path: str) -> str | None:
        return None

    def digest(self, path: str) -> str:
        return hashlib.sha256(self.text(path)).hexdigest()

    def facts(self, path: str) -> ModuleFacts:
        self.read.append(path)
        return extract(self.text(path))

    def prefetch(self, paths: Iterable[str]) -> None:
        pass


@dataclass
class Program:
    """One linked program."""

    linked: Linked
    modules: list[str]

    def edges(self, caller: str) -> set[tuple[str, str]]:
        """(callee, how it is known) of every edge out of a function, over all of its calls."""
        graph = self.linked.graph
        if caller not in graph:
            return set()
        return {(target, data["known"].value) for _, target, data in graph.out_edges(caller, data=True)}

    def guards(self, caller: str, callee: str) -> list[tuple[tuple[str, str], ...]]:
        """For every edge between two functions, in order of lines, its guards as (text, value)."""
        found = self.linked.graph.get_edge_data(caller, callee) or {}
        ordered = sorted(found.values(), key=lambda data: data["line"])
        return [tuple((guard.text, guard.value.value) for guard in data["guards"]) for data in ordered]

    def calls(self, caller: str, text: str) -> list[Call]:
        """Recorded calls of a function whose callee reads `text`."""
        return [call for call in self.linked.calls.get(caller, []) if call.text == text]

    def call(self, caller: str, text: str) -> Call:
        """The one such call."""
        (found,) = self.calls(caller, text)
        return found

    def externals(self, caller: str) -> set[str]:
        """Access paths outside the program that a function calls, builtins left out."""
        calls = self.linked.calls.get(caller, [])
        return {path for call in calls for path in call.externals if not path.startswith("builtins.")}

    def reached(self, name: str) -> str:
        """`true`, `unknown` or, for a function that nothing leads to, `no`."""
        truth: Truth | None = self.linked.reached.get(name)
        return truth.value if truth is not None else "no"


def write(folder: Path, text: str) -> None:
    """Write the files of a program: each begins at a line `# file: path`."""
    parts = _FILE.split(textwrap.dedent(text))
    assert not parts[0].strip(), "text before the first `# file:` line"
    for path, body in zip(parts[1::2], parts[2::2], strict=True):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(body.lstrip("\n"))


def program(
    folder: Path,
    text: str,
    entries: Sequence[str] = ("main:run",),
    *,
    oracle: Oracle | None = None,
    survey: Iterable[str] = (),
    kept: tuple[str, ...] = ("torch", "ext"),
    serving: Serving | None = None,
) -> Program:
    """Write a program and link it."""
    write(folder, text)
    sources = FolderSources(folder)
    linked = link(Project(sources), entries, oracle=oracle, survey=survey, kept_externals=kept, serving=serving)
    return Program(linked, sorted(set(sources.read)))


def targets(edges: set[tuple[str, str]]) -> set[str]:
    """Callees of edges, however they are known."""
    return {target for target, _ in edges}
