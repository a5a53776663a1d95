"""Holds every file of an archive against its manifest, and the manifest against the digest kept elsewhere."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from sgl_graph.analyzer.errors import ArchiveCorrupt, SchemaUnknown, SglGraphError
from sgl_graph.analyzer.reconcile.recompute import Bound, Verification
from sgl_graph.analyzer.records import archive as archive_records
from sgl_graph.analyzer.records import ledger as ledger_records
from sgl_graph.analyzer.records.archive import EXPORT, LEDGER, MANIFEST, Manifest, is_safe_name
from sgl_graph.analyzer.records.base import first_problem
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.runtime.archive import pretty_json
from sgl_graph.runtime.evidence import read_json

_LATER = re.compile(r"^recomputed(\.\d+)?\.json$")
#: Ends each statement on damage that an export carries.
_BEFORE = " (before the export)"
_MOST_FILES = 20_000
_DEEPEST_FOLDER = 16


def verify(root: Path, expected: str | None) -> Verification:
    """Hold every file against the manifest, and the manifest against the digest kept elsewhere.

    Args:
        root: The archive.
        expected: sha256 of the manifest as the run printed it, or None.
    """
    damage: dict[str, str] = {}
    present = dict(_files(root, damage))
    manifest, digest = _manifest(root, damage)
    bound: Bound = "not given" if expected is None else "matches" if digest == expected.lower() else "differs"
    left_out: list[str] = []
    digests: dict[str, str] = {}
    if manifest is not None:
        left_out = _left_out(root, manifest)
        for name, entry in manifest.files.items():
            if not is_safe_name(name):
                damage[MANIFEST] = f"names {name!r}, which is no file of this folder"
            elif name in left_out:
                continue
            elif name not in present:
                damage.setdefault(name, "is missing")
            elif present[name] != entry.size:
                damage.setdefault(name, f"has {present[name]} bytes, the manifest says {entry.size}")
            elif _sha256(root / name) != entry.sha256:
                damage.setdefault(name, "was changed after the manifest was written")
            else:
                digests[name] = entry.sha256
        for name in present:
            if name not in manifest.files and name not in (MANIFEST, EXPORT) and not _LATER.match(name):
                damage.setdefault(name, "is not named by the manifest")
        damage.update({name: why for name, why in _before_export(root, manifest).items() if name not in damage})
    return Verification(
        bound=bound,
        manifest_digest=digest,
        damage=damage,
        left_out=tuple(left_out),
        state=manifest.state if manifest else "unknown",
        digests=digests,
    )


def _manifest(root: Path, damage: dict[str, str]) -> tuple[Manifest | None, str | None]:
    path = root / MANIFEST
    if not path.is_file() or path.is_symlink():
        damage[MANIFEST] = "is missing: the run was ended before it could close the archive"
        return None, None
    try:
        body = read_json(root, MANIFEST)
        if isinstance(body, dict) and body.get("schema") != archive_records.SCHEMA:
            raise SchemaUnknown(f"schema {body.get('schema')!r} is unknown")
        manifest = Manifest.model_validate(body)
        if manifest.checksum != manifest.expected_checksum():
            damage[MANIFEST] = "contradicts its own checksum: it was changed after it was written"
        elif path.read_bytes() != pretty_json(manifest.model_dump(mode="json")):
            damage[MANIFEST] = "is not spelled as it was written"
        return manifest, _sha256(path)
    except (SglGraphError, ValidationError, RecursionError) as error:
        damage[MANIFEST] = f"is no manifest: {first_problem(error)}"
        return None, _sha256(path)


def _before_export(root: Path, manifest: Manifest) -> dict[str, str]:
    """What an export says was damaged before it, by file; a statement that cannot be read is damage itself."""
    try:
        body = read_json(root, EXPORT)
    except ArchiveCorrupt as error:
        return {EXPORT: f"cannot be read: {error.message}"}
    if body is None:
        exported = manifest.reason == "export" or "exported_from" in manifest.identities
        return {EXPORT: "is missing: nothing says what was damaged before the export"} if exported else {}
    found = body.get("source_damage", {}) if isinstance(body, dict) else None
    if not isinstance(found, dict) or not all(isinstance(why, str) for why in found.values()):
        return {EXPORT: "does not say what was damaged before the export"}
    return {name: why if why.endswith(_BEFORE) else why + _BEFORE for name, why in found.items()}


def _left_out(root: Path, manifest: Manifest) -> list[str]:
    """Files that an export declares to have left out, as far as they can be left out: answers and logs."""
    try:
        body = read_json(root, EXPORT)
    except ArchiveCorrupt:
        return []
    names = body.get("left_out") if isinstance(body, dict) else None
    allowed = (".outputs.json", "server.log")
    return [str(n) for n in names or () if n in manifest.files and str(n).endswith(allowed) and not (root / n).exists()]


def read_ledger(root: Path, verification: Verification) -> Ledger | None:
    """The recorded ledger; None when there is none that can be read, which the verification then says.

    Raises:
        SchemaUnknown: It is of a schema that this release does not know.
    """
    try:
        body = read_json(root, LEDGER)
    except ArchiveCorrupt:
        return None
    if body is None:
        return None
    if not isinstance(body, dict) or "schema" not in body:
        return None
    if body["schema"] != ledger_records.SCHEMA:
        if LEDGER in verification.damage:
            return None
        raise SchemaUnknown(f"{root / LEDGER}: schema {body['schema']!r} is unknown")
    try:
        return Ledger.model_validate(body)
    except (ValidationError, RecursionError):
        return None


def is_plain_name(name: str) -> bool:
    """Whether a file's name is text that can be shown; no honest archive has another."""
    return name.isprintable()


def _files(root: Path, damage: dict[str, str]) -> Iterator[tuple[str, int]]:
    count = 0
    for folder, folders, files in os.walk(root, followlinks=False):
        folders.sort()
        if len(Path(folder).relative_to(root).parts) > _DEEPEST_FOLDER:
            raise ArchiveCorrupt(f"{root}: folders within folders, more than {_DEEPEST_FOLDER} deep")
        for name in [*folders, *files]:
            path = Path(folder) / name
            status = path.lstat()
            relative = path.relative_to(root).as_posix()
            count += 1
            if count > _MOST_FILES:
                raise ArchiveCorrupt(f"{root}: more than {_MOST_FILES} files")
            if not is_plain_name(name):
                damage[ascii(relative)[1:-1]] = "has a name that is no plain text"
            elif stat.S_ISLNK(status.st_mode):
                damage[relative] = "is a link"
            elif stat.S_ISREG(status.st_mode):
                yield relative, status.st_size
            elif not stat.S_ISDIR(status.st_mode):
                damage[relative] = "is no plain file"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
