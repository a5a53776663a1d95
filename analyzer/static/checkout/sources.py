"""The port through which the analyser reads a checkout: files, bytes and facts. `runtime/checkout.py` implements it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from sgl_graph.analyzer.static.extract.facts import ModuleFacts


class Sources(Protocol):
    """A checkout's Python files. Paths are relative to the folder that holds the top-level package, with `/`."""

    def paths(self) -> Iterable[str]:
        """Every `.py` file, sorted."""

    def text(self, path: str) -> bytes:
        """The bytes of one file; empty when it cannot be read (its facts then carry the reason)."""

    def problem(self, path: str) -> str | None:
        """Why a file cannot be read, None where it can."""

    def lost(self) -> Mapping[str, str]:
        """Folders whose files cannot even be listed, with the reason."""

    def digest(self, path: str) -> str:
        """Hex digest of the file's bytes."""

    def facts(self, path: str) -> ModuleFacts:
        """Facts of one file; parses it when they are not cached."""

    def prefetch(self, paths: Iterable[str]) -> None:
        """Begin to parse files that will be wanted; returns at once."""
