"""Small programs as checkouts, for tests of the evaluator."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterable, Mapping

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.evaluator import Evaluator
from sgl_graph.analyzer.static.config.facts import LaunchFacts
from sgl_graph.analyzer.static.config.heap_view import View
from sgl_graph.analyzer.static.config.program import Frame
from sgl_graph.analyzer.static.config.protocol import Values
from sgl_graph.analyzer.static.config.values import Value
from sgl_graph.analyzer.static.extract.facts import ModuleFacts
from sgl_graph.analyzer.static.extract.lower import extract


class Texts:
    """`Sources` of files held in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {path: textwrap.dedent(text).encode() for path, text in files.items()}

    def paths(self) -> Iterable[str]:
        return sorted(self._files)

    def text(self, path: str) -> bytes:
        return self._files[path]

    def lost(self) -> dict[str, str]:
        return {}

    def problem(self, path: str) -> str | None:
        return None

    def digest(self, path: str) -> str:
        return hashlib.sha256(self._files[path]).hexdigest()

    def facts(self, path: str) -> ModuleFacts:
        return extract(self._files[path])

    def prefetch(self, paths: Iterable[str]) -> None:
        return None


def project(files: Mapping[str, str]) -> Project:
    """A checkout of some files."""
    return Project(Texts(files))


def evaluator(text: str, facts: LaunchFacts | None = None) -> Evaluator:
    """An evaluator of a one-file checkout, module `program`."""
    return Evaluator(project({"program.py": text}), facts or LaunchFacts())


def run(machine: Evaluator, name: str, *arguments: Value) -> Value:
    """Call a function of `program`."""
    module = machine.module("program")
    assert module is not None
    function = machine.module_attribute(module, name)
    machine.frames.append(Frame(module, None, "test"))
    return machine.call(function, list(arguments), {})


def values(text: str, name: str = "main", *arguments: Value, facts: LaunchFacts | None = None) -> Values:
    """What a function of a small program may return."""
    return View().values(run(evaluator(text, facts), name, *arguments))
