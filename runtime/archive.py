"""A run's folder: fresh, written file by file so that it is readable at any moment, closed by its manifest."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import ConfigError, HostError, OutputExists
from sgl_graph.analyzer.records.archive import MANIFEST, FileEntry, Manifest
from sgl_graph.analyzer.records.base import Record

#: Freed when the disk is full, so that ledger and manifest can still be written.
_RESERVE, _RESERVE_BYTES = ".reserve", 4 << 20


def refuse_existing(out: Path) -> None:
    """Make sure that a run's folder is fresh, and that there is a place for it.

    Raises:
        OutputExists: Something is there.
        ConfigError: The folder that should hold it does not exist.
    """
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise OutputExists(f"{out} exists", hint="run writes into a fresh folder only; name another with --out")
    if not out.exists() and not out.parent.is_dir():
        raise ConfigError(f"--out {out}: there is no folder {out.parent}", hint="make it first, or name another folder")


class RunArchive:
    """Writes into one folder; nothing that was there before is touched, for nothing was."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def create(cls, out: Path) -> RunArchive:
        """Make the folder of a run.

        Raises:
            OutputExists: It exists and is not an empty folder.
            ConfigError: It cannot be made.
            HostError: The disk is full.
        """
        refuse_existing(out)
        try:
            out.mkdir(exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"--out {out}: this folder cannot be made: {error.strerror}",
                hint="name one in a folder that you may write to",
            ) from error
        archive = cls(out.resolve())
        try:
            archive._write(_RESERVE, b"\0" * _RESERVE_BYTES)
        except OSError as error:
            raise _refused(archive.root, error) from error
        return archive

    def path(self, name: str) -> Path:
        """A path inside the folder, its parent made."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write_bytes(self, name: str, data: bytes) -> None:
        """Write a file whole or not at all; the reserve is left to what closes the archive.

        Raises:
            HostError: The disk refuses.
        """
        try:
            self._write(name, data)
        except OSError as error:
            raise _refused(self.root / name, error) from error

    def write_record(self, name: str, record: Record) -> str:
        """Write a record as JSON and return its sha256."""
        data = pretty_json(record.model_dump(mode="json"))
        self.write_bytes(name, data)
        return hashlib.sha256(data).hexdigest()

    def write_json(self, name: str, value: Any) -> None:
        """Write plain JSON."""
        self.write_bytes(name, pretty_json(value))

    def release_reserve(self) -> None:
        """Give back the reserved space: only what closes the archive is written from now on."""
        (self.root / _RESERVE).unlink(missing_ok=True)

    def digests(self) -> dict[str, FileEntry]:
        """Every file of the folder but the manifest."""
        return {name: _entry(self.root / name) for name in sorted(self._names())}

    def close(
        self, *, run_id: str, complete: bool, reason: str, identities: Mapping[str, Any], plan_digest: str | None
    ) -> str:
        """Write the manifest, last, and return its sha256: the one thing to keep elsewhere."""
        self.release_reserve()
        manifest = Manifest(
            run_id=run_id,
            state="complete" if complete else "partial",
            reason=reason,
            identities=dict(identities),
            plan_digest=plan_digest,
            files=self.digests(),
        )
        return self.write_record(MANIFEST, manifest.sealed())

    def _names(self) -> Iterator[str]:
        for folder, folders, files in os.walk(self.root):
            folders.sort()
            for file in files:
                path = Path(folder) / file
                name = path.relative_to(self.root).as_posix()
                if name not in (MANIFEST, _RESERVE) and not path.is_symlink():
                    yield name

    def _write(self, name: str, data: bytes) -> None:
        path = self.path(name)
        partial = path.with_name(f".{path.name}.partial")
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(path)
        except OSError:
            partial.unlink(missing_ok=True)
            raise


def _entry(path: Path) -> FileEntry:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
    return FileEntry(sha256=digest.hexdigest(), size=size)


def pretty_json(value: Any) -> bytes:
    """JSON as archives hold it: one spelling for one value."""
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _refused(path: Path, error: OSError) -> HostError:
    return HostError(
        f"cannot write {path}: {error.strerror}",
        hint="the archive is partial; free space and run again with another --out",
    )
