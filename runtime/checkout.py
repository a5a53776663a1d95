"""A serving checkout on disk: found, listed, hashed and turned into facts, never imported or executed."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.errors import CheckoutNotFound
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.parsers import Parsers
from sgl_graph.runtime.turns import Turns

#: A source file beyond this is generated data, not code that anybody maintains; it is recorded, not parsed.
LARGEST_FILE = 4 << 20
_PACKAGE = "sglang"
#: Parts of the package that no server imports: neither mapped nor part of a checkout's digest.
NOT_SERVING = frozenset({"sglang/multimodal_gen", "sglang/test"})
_SKIPPED_FOLDERS = {"__pycache__", "node_modules"}


@dataclass(frozen=True, slots=True)
class Location:
    """Where the serving package lies.

    Attributes:
        root: the folder the user named, or that holds the installed package.
        base: the folder that holds `sglang/`; paths in reports are relative to it.
        layout: `repository`, `folder` or `installed`.
    """

    root: Path
    base: Path
    layout: str


def locate(checkout: Path | None) -> Location:
    """Find the serving package.

    Raises:
        CheckoutNotFound: the folder does not exist, is no folder, or holds no `sglang` package.
    """
    if checkout is None:
        return _installed()
    if not checkout.exists():
        raise CheckoutNotFound(f"{checkout}: no such folder", hint="give --checkout an SGLang repository")
    if not checkout.is_dir():
        raise CheckoutNotFound(f"{checkout}: not a folder", hint="give --checkout an SGLang repository, not a file")
    for base, layout in ((checkout / "python", "repository"), (checkout, "folder")):
        if (base / _PACKAGE / "srt").is_dir():
            return Location(checkout.resolve(), base.resolve(), layout)
    if checkout.resolve().name == _PACKAGE and (checkout / "srt").is_dir():
        return Location(checkout.resolve(), checkout.resolve().parent, "folder")
    raise CheckoutNotFound(
        f"{checkout}: holds neither python/sglang/srt nor sglang/srt",
        hint="--checkout takes an SGLang repository, or a folder that holds the sglang package",
    )


def _installed() -> Location:
    try:
        spec = importlib.util.find_spec(_PACKAGE)  # finds a top-level package without importing it
    except (ImportError, ValueError):
        spec = None
    for place in (spec.submodule_search_locations or []) if spec else []:
        if (Path(place) / "srt").is_dir():
            base = Path(place).resolve().parent
            return Location(base, base, "installed")
    raise CheckoutNotFound("sglang is not installed in this environment", hint="name a checkout with --checkout DIR")


@dataclass(slots=True)
class Reading:
    """Counts of one run's reading, for `stats`."""

    parsed: int = 0
    cached: int = 0
    bytes_parsed: int = 0


class CheckoutSources:
    """`Sources` of a folder: files hashed on first use, facts from the store or from a pool of parsers."""

    def __init__(
        self,
        base: Path,
        store: FactStore,
        *,
        jobs: int = 2,
        folders: Iterable[str] = (_PACKAGE,),
        excluded: Iterable[str] = (),
    ) -> None:
        self._base = base
        self._store = store
        self._lost: dict[str, str] = {}
        self._paths = sorted(_walk(base, tuple(folders), frozenset(excluded), self._lost))
        self._problems: dict[str, str] = {}
        self._digests: dict[str, str] = {}
        self._facts: dict[str, bytes] = {}
        self._fresh: list[tuple[str, bytes]] = []
        #: Whose turn it is, of the threads that read this checkout.
        self.turns = Turns()
        self._parsers = Parsers(max(1, jobs), readers=lambda: self.turns.running, spare=_processors() > jobs)
        self.reading = Reading()

    def paths(self) -> list[str]:
        return self._paths

    def lost(self) -> Mapping[str, str]:
        return self._lost

    def text(self, path: str) -> bytes:
        # Not kept: the system's page cache holds the files, and a checkout's text would be a tenth of the memory.
        return self._read(path)

    def problem(self, path: str) -> str | None:
        if path not in self._digests:
            self.digest(path)
        return self._problems.get(path)

    def digest(self, path: str) -> str:
        known = self._digests.get(path)
        if known is None:
            known = self._digests[path] = hashlib.sha256(self._read(path)).hexdigest()
        return known

    def facts(self, path: str) -> f.ModuleFacts:
        digest = self.digest(path)
        problem = self._problems.get(path)
        if problem is not None:
            return f.failed(problem)
        encoded = self._facts.pop(path, None)
        if encoded is None and path not in self._parsers:
            encoded = self._store.load([digest]).get(digest)
            if encoded is not None:
                self.reading.cached += 1
            else:
                self._submit(path)
        if encoded is None:
            with self.turns.waiting():
                encoded, lasting = self._parsers.result(path, urgent=self.turns.owned)
            self._parsers.forget(path)
            if lasting:
                self._keep(digest, encoded)
        return f.decode_module(encoded)

    def stored_facts(self, digest: str) -> f.ModuleFacts | None:
        """Facts of an earlier state of some file, where the store still has them."""
        encoded = self._store.load([digest]).get(digest)
        return f.decode_module(encoded) if encoded is not None else None

    def prefetch(self, paths: Iterable[str]) -> None:
        wanted = [p for p in dict.fromkeys(paths) if p not in self._facts and p not in self._parsers]
        digests = {path: self.digest(path) for path in wanted}
        stored = self._store.load(digests.values())
        for path, digest in digests.items():
            if path in self._problems:
                continue
            encoded = stored.get(digest)
            if encoded is not None:
                self._facts[path] = encoded
                self.reading.cached += 1
            else:
                self._submit(path)

    def close(self) -> None:
        """Stop the parsers and write what they found."""
        found = self._parsers.close()
        self.turns.abandon()
        for path, encoded in found.items():
            self._keep(self.digest(path), encoded)
        self._flush()

    def _submit(self, path: str) -> None:
        data = self._read(path)
        self.reading.parsed += 1
        self.reading.bytes_parsed += len(data)
        self._parsers.submit(path, data)

    def _keep(self, digest: str, encoded: bytes) -> None:
        self._fresh.append((digest, encoded))
        if len(self._fresh) >= 100:
            self._flush()

    def _flush(self) -> None:
        self._store.save(self._fresh)
        self._fresh.clear()

    def _read(self, path: str) -> bytes:
        full = self._base / path
        try:
            status = full.stat()
            if not stat.S_ISREG(status.st_mode):
                self._problems[path] = "cannot be read: no plain file"  # reading a pipe would wait for its writer
                return b""
            if status.st_size > LARGEST_FILE:
                self._problems[path] = f"{status.st_size} bytes: larger than {LARGEST_FILE}, not parsed"
                return b""
            return full.read_bytes()
        except OSError as error:
            self._problems[path] = f"cannot be read: {error.strerror}"
            return b""


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _walk(base: Path, folders: tuple[str, ...], excluded: frozenset[str], lost: dict[str, str]) -> Iterable[str]:
    """Source files below some folders; folders that cannot be read are added to `lost`."""
    seen: set[tuple[int, int]] = set()
    stack = [str(base / folder) for folder in folders]
    links: list[str] = []  # last and in order, so that what lies in the checkout keeps its own name
    prefix = len(str(base)) + 1
    while stack or links:
        folder = stack.pop() if stack else links.pop(links.index(min(links)))
        try:
            status = os.stat(folder)
            entries = list(os.scandir(folder))
        except OSError as error:
            lost[folder[prefix:]] = f"cannot be listed: {error.strerror}"
            continue
        identity = (status.st_dev, status.st_ino)
        if identity in seen:  # a symbolic link back to a folder already walked
            continue
        seen.add(identity)
        for entry in entries:
            name = entry.path[prefix:]
            if name in excluded or entry.name in _SKIPPED_FOLDERS:
                continue
            try:
                if entry.is_dir():
                    (links if entry.is_symlink() else stack).append(entry.path)
                elif entry.name.endswith(".py"):
                    yield name
            except OSError as error:
                lost[name] = f"cannot be looked at: {error.strerror}"
