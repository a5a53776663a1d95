"""Facts on disk: one sqlite file in the user's cache folder, keyed by content, versioned by the extractor's own source."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

import platformdirs

_EXTRACTOR_MODULES = ("facts", "lower", "lower_expressions", "lower_patterns", "positions", "tree")


@functools.cache
def extractor_digest() -> str:
    """Digest over the extractor's source and libcst's version: facts of another extractor are never read."""
    from importlib.metadata import version
    from importlib.util import find_spec

    digest = hashlib.sha256(version("libcst").encode())
    for name in _EXTRACTOR_MODULES:
        spec = find_spec(f"sgl_graph.analyzer.static.extract.{name}")
        assert spec is not None and spec.origin is not None
        digest.update(Path(spec.origin).read_bytes())
    return digest.hexdigest()[:16]


def default_folder() -> Path:
    """The user's cache folder for this tool."""
    return Path(platformdirs.user_cache_dir("sgl-graph"))


class FactStore:
    """Content digest to encoded facts. A store that cannot be opened or read acts as an empty one."""

    def __init__(self, folder: Path | None) -> None:
        self._connection: sqlite3.Connection | None = None
        if folder is None:
            return
        with contextlib.suppress(OSError, sqlite3.Error):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"facts-{extractor_digest()}.sqlite"
            try:
                self._connection = _opened(path)
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:  # locked, read-only: the file itself may be whole
                    raise
                path.unlink()
                self._connection = _opened(path)

    def load(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Encoded facts of those digests that are stored."""
        if self._connection is None:
            return {}
        found: dict[str, bytes] = {}
        with contextlib.suppress(sqlite3.Error):
            for chunk in _chunks(list(digests), 500):
                marks = ",".join("?" * len(chunk))
                query = f"SELECT digest, data FROM facts WHERE digest IN ({marks})"
                found.update(self._connection.execute(query, chunk).fetchall())
        return found

    def save(self, items: Iterable[tuple[str, bytes]]) -> None:
        """Store encoded facts; another run storing the same is no conflict."""
        if self._connection is None:
            return
        with contextlib.suppress(sqlite3.Error), self._connection:
            self._connection.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?)", items)

    def load_map(self, key: str) -> bytes | None:
        """A finished map, None when it is not stored."""
        if self._connection is None:
            return None
        with contextlib.suppress(sqlite3.Error):
            row = self._connection.execute("SELECT data FROM maps WHERE digest = ?", (key,)).fetchone()
            return bytes(row[0]) if row is not None else None
        return None

    def save_map(self, key: str, data: bytes, keep: int = 40) -> None:
        """Store a finished map; only the latest few are kept."""
        if self._connection is None:
            return
        with contextlib.suppress(sqlite3.Error), self._connection:
            latest = self._connection.execute("SELECT COALESCE(MAX(used), 0) + 1 FROM maps").fetchone()[0]
            self._connection.execute("INSERT OR REPLACE INTO maps VALUES (?, ?, ?)", (key, latest, data))
            self._connection.execute("DELETE FROM maps WHERE used <= ?", (latest - keep,))

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=10, check_same_thread=False)  # one thread at a time has its turn
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS facts (digest TEXT PRIMARY KEY, data BLOB) WITHOUT ROWID")
        connection.execute("CREATE TABLE IF NOT EXISTS maps (digest TEXT PRIMARY KEY, used INTEGER, data BLOB)")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _chunks(items: list[str], size: int) -> Iterator[list[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
