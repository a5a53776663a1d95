"""Finished maps by everything that went into them: a second run over the same source and command only loads one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from sgl_graph.analyzer.records.base import canonical_json
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.source_record import Files, still_holds

Reader = Callable[[str], Any]


class Reads:
    """What the analysis asked of the disk besides the checkout, so that a stored map is used only while it still holds."""

    def __init__(self, **readers: Reader) -> None:
        self._readers = readers
        self._seen: dict[tuple[str, str], str] = {}

    def reader(self, name: str) -> Reader:
        """The reader of that name; its answers are remembered by digest."""
        read = self._readers[name]

        def remembered(argument: str) -> Any:
            answer = read(argument)
            self._seen[name, argument] = _digest(answer)
            return answer

        return remembered

    def record(self) -> list[list[str]]:
        """Every question and the digest of its answer."""
        return [[name, argument, digest] for (name, argument), digest in sorted(self._seen.items())]

    def still_hold(self, record: list[list[str]]) -> bool:
        """Whether the disk would answer as it did."""
        return all(
            name in self._readers and _digest(self._readers[name](argument)) == digest
            for name, argument, digest in record
        )


def key_of(*parts: Any) -> str:
    """The key of a map that was made from these parts."""
    return hashlib.sha256(canonical_json(list(parts))).hexdigest()


def load(store: FactStore, key: str, reads: Reads, files: Files) -> str | None:
    """The JSON of a stored map, None when there is none or it no longer holds."""
    data = store.load_map(key)
    if data is None:
        return None
    try:
        body = json.loads(data)
        record, text, sources = body["reads"], body["map"], body["files"]
        holds = isinstance(text, str) and reads.still_hold(record) and still_holds(sources, files)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return text if holds else None


def save(store: FactStore, key: str, reads: Reads, files: Mapping[str, list[str]], text: str) -> None:
    """Store a map's JSON with what it was made from."""
    store.save_map(key, json.dumps({"reads": reads.record(), "files": files, "map": text}).encode())


def _digest(answer: Any) -> str:
    try:
        return hashlib.sha256(canonical_json(answer)).hexdigest()
    except (TypeError, ValueError):
        return hashlib.sha256(repr(answer).encode()).hexdigest()
