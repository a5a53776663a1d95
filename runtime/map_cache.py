"""Finished maps by everything that went into them: a second run over the same source and command only loads one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from sgl_graph.analyzer.records.base import canonical_json
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.rebased import rebased
from sgl_graph.runtime.source_record import Files, Record, carry

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
            self._seen[name, argument] = digest_of(answer)
            return answer

        return remembered

    def record(self) -> list[list[str]]:
        """Every question and the digest of its answer."""
        return [[name, argument, digest] for (name, argument), digest in sorted(self._seen.items())]

    def still_hold(self, record: list[list[str]]) -> bool:
        """Whether the disk would answer as it did."""
        return all(
            name in self._readers and digest_of(self._readers[name](argument)) == digest
            for name, argument, digest in record
        )


def key_of(*parts: Any) -> str:
    """The key of a map that was made from these parts."""
    return hashlib.sha256(canonical_json(list(parts))).hexdigest()


def load(store: FactStore, key: str, reads: Reads, files: Files) -> str | None:
    """The JSON of a stored map, None when there is none or it no longer holds.

    A map that holds over an edit has its lines moved, and is stored so.
    """
    data = store.load_map(key)
    if data is None:
        return None
    try:
        body = json.loads(data)
        asked, text, made_from = body["reads"], body["map"], body["made_from"]
        if not isinstance(text, str) or not reads.still_hold(asked):
            return None
        carried = carry(made_from, files)
        if carried is None:
            return None
        if carried.moved:
            value = rebased(json.loads(text), carried.moved)
            if value is None:
                return None
            value["stats"]["functions_total"] += carried.more_functions
            text = json.dumps(value)
            _store(store, key, asked, carried.record, text)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    return text


def save(store: FactStore, key: str, reads: Reads, made_from: Record, text: str) -> None:
    """Store a map's JSON with what it was made from."""
    _store(store, key, reads.record(), made_from, text)


def _store(store: FactStore, key: str, asked: list[list[str]], made_from: Record, text: str) -> None:
    store.save_map(key, json.dumps({"reads": asked, "made_from": made_from, "map": text}).encode())


def digest_of(answer: Any) -> str:
    """A digest of JSON-like data; of anything else, infinite numbers among it, as Python shows it."""
    try:
        return hashlib.sha256(canonical_json(answer)).hexdigest()
    except (TypeError, ValueError):
        return hashlib.sha256(repr(answer).encode()).hexdigest()
