"""Small checkouts in memory: a mapping of file to source, as the analyser's port wants it."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterable, Mapping

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.extract.facts import ModuleFacts
from sgl_graph.analyzer.static.extract.lower import extract
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.search import SiteSearch, find_sites


class MemorySources:
    """`Sources` over texts."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {path: textwrap.dedent(text).encode() for path, text in files.items()}

    def paths(self) -> list[str]:
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


def search(**modules: str) -> SiteSearch:
    """Primitives of modules named `sglang.srt.<name>` (`__` stands for a dot)."""
    files = {f"sglang/srt/{name.replace('__', '/')}.py": text for name, text in modules.items()}
    return find_sites(Project(MemorySources(files)))


def sites(**modules: str) -> list[tuple[str, int, str, str]]:
    """(module, line, role, form) of each primitive."""
    return [brief(site) for site in search(**modules).sites]


def brief(site: RawSite) -> tuple[str, int, str, str]:
    """What a test compares."""
    return (site.scope.module.name.rpartition(".")[2], site.line, site.role, site.form)
