"""A cheap textual index: it chooses the modules that the search reads, and finds no primitive itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sgl_graph.analyzer.static.checkout.project import HintLog, Project, module_name

#: Text that a module with a graph primitive cannot do without. It chooses what is read; it finds no site.
#: A module without any of these words is never looked at: a plain search is far quicker than the pattern below.
_HINTS = (b"raph", b"Capture", b".region(", b"torchair")
_TOKENS = re.compile(
    rb"(?:CUDA|NPU|XPU|MUSA)Graph\b|cudaGraph[A-Z]|hipGraph[A-Z]|cuGraph[A-Z]|StreamBeginCapture|graph_pool_handle"
    rb"|capture_begin|make_graphed_callables|\.graph\(|\.cuda_graph\b|torchair|\.region\(|torch\.compile\("
)
#: One of these is part of whatever the pattern finds.
_WORDS = (
    b"CUDAGraph", b"NPUGraph", b"XPUGraph", b"MUSAGraph", b"cudaGraph", b"hipGraph", b"cuGraph", b"StreamBeginCapture",
    b"graph_pool_handle", b"capture_begin", b"make_graphed_callables", b".graph(", b".cuda_graph", b"torchair", b".region(",
    b"torch.compile(",
)  # fmt: skip


def _has_token(source: bytes) -> bool:
    return any(word in source for word in _WORDS) and _TOKENS.search(source) is not None


class TextIndex:
    """Which modules to read, by their text; each is handed out once."""

    def __init__(self, project: Project, folder: str = "sglang/srt/") -> None:
        self._project = project
        text = project.sources.text
        self._log = HintLog(folder)
        project.hints.append(self._log)
        paths = [path for path in project.sources.paths() if path.startswith(folder)]
        self._texts = {path: text(path) for path in paths}
        # Nobody can say what such a file holds: it is handed out, so that the map says that it was not read.
        self._lost = [path for path, source in self._texts.items() if not source and project.sources.problem(path)]
        self._hinted = [path for path, source in self._texts.items() if any(hint in source for hint in _HINTS)]
        self._first = self._lost + [path for path in self._hinted if _has_token(self._texts[path])]
        project.prefetch(module_name(path)[0] for path in self._first)

    def first(self) -> list[str]:
        """Modules that may call a graph interface themselves; they are being parsed since the index was made."""
        self._log.rounds.append(["tokens"])
        return self._hand_out(self._first)

    def mentioning(self, names: Iterable[str]) -> list[str]:
        """Further modules that mention any of these identifiers."""
        wanted = sorted(names)
        self._log.rounds.append(["names", wanted])
        hinted, others = _split(wanted)
        found = {path for path in self._hinted if path in self._texts and _mentions(self._texts[path], hinted)}
        found |= {path for path, source in self._texts.items() if path not in found and _mentions(source, others)}
        return self._hand_out(sorted(found))

    def matching(self, pattern: re.Pattern[bytes]) -> list[str]:
        """Further modules whose text holds a pattern, which itself holds one of the hints."""
        self._log.rounds.append(["pattern", pattern.pattern.decode(), pattern.flags])
        return self._hand_out(
            [path for path in self._hinted if path in self._texts and pattern.search(self._texts[path])]
        )

    def release(self) -> None:
        """Let the texts go: no module is handed out any more."""
        self._texts.clear()

    def _hand_out(self, taken: list[str]) -> list[str]:
        number = len(self._log.rounds) - 1
        for path in taken:
            del self._texts[path]
            self._log.taken[path] = number
        names = [module_name(path)[0] for path in taken]
        self._project.prefetch(names)
        return names


def round_of(text: bytes, rounds: Iterable[list[Any]]) -> int | None:
    """The round in which an index would hand out a file of this text."""
    has_hint = any(hint in text for hint in _HINTS)
    for number, (kind, *looked_for) in enumerate(rounds):
        if kind == "tokens":
            found = has_hint and _has_token(text)
        elif kind == "names":
            found = any(_mentions(text, names) for names in _split(looked_for[0]))
        else:
            found = has_hint and re.compile(looked_for[0].encode(), looked_for[1]).search(text) is not None
        if found:
            return number
    return None


def _split(names: Iterable[str]) -> tuple[list[bytes], list[bytes]]:
    """Names that hold one of the hints, and so can only stand in a text that holds it too; and the others."""
    wanted = [name.encode() for name in names]
    hinted = [name for name in wanted if any(hint in name for hint in _HINTS)]
    return hinted, [name for name in wanted if name not in hinted]


def _mentions(source: bytes, names: list[bytes]) -> bool:
    return any(name in source for name in names)
