"""Reads an archive without changing a byte of it: verification, the recorded ledger, recomputation in a copy."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from sgl_graph.analyzer.errors import ArchiveCorrupt, ArchiveMissing, OutputExists, SchemaUnknown, SglGraphError
from sgl_graph.analyzer.reconcile.drift import drift, path_rows
from sgl_graph.analyzer.reconcile.ledger import assemble
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.reconcile.recompute import Bound, Verification, inspected, recomputed
from sgl_graph.analyzer.reconcile.worker_source import worker_source
from sgl_graph.analyzer.records import archive as archive_records
from sgl_graph.analyzer.records import ledger as ledger_records
from sgl_graph.analyzer.records.archive import LEDGER, MANIFEST, PLAN, Manifest, is_safe_name
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.runtime.archive import RunArchive, pretty_json
from sgl_graph.runtime.evidence import read_evidence, read_json
from sgl_graph.runtime.identity import tool_digest

RECOMPUTED, EXPORT = "recomputed.json", "export.json"
_LATER = re.compile(r"^recomputed(\.\d+)?\.json$")
_MOST_FILES = 20_000


def find_archives(places: list[Path]) -> list[Path]:
    """The archives at, or below, these places, without following links.

    Raises:
        ArchiveMissing: There is none at one of them.
    """
    found: list[Path] = []
    for place in places:
        if not place.is_dir():
            raise ArchiveMissing(f"{place}: no such folder")
        below = [place] if (place / PLAN).is_file() else sorted(_plans_below(place))
        if not below:
            raise ArchiveMissing(
                f"{place}: no archive here or below", hint="an archive is the folder that run --out wrote"
            )
        found += [path for path in below if path not in found]
    return found


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
        for name in present:
            if name not in manifest.files and name not in (MANIFEST, EXPORT) and not _LATER.match(name):
                damage.setdefault(name, "is not named by the manifest")
    return Verification(
        bound=bound,
        manifest_digest=digest,
        damage=damage,
        left_out=tuple(left_out),
        state=manifest.state if manifest else "unknown",
    )


def inspect(
    root: Path, *, expected: str | None, view: MapView | None = None, index: dict[str, str] | None = None
) -> Ledger:
    """The recorded ledger as far as its evidence still verifies.

    Args:
        root: The archive; not a byte of it changes.
        expected: Digest of the manifest kept elsewhere.
        view: Another map to hold the run against; it adds drift and moves no verdict.
        index: Module digests of a checkout that may match what the workers imported.

    Raises:
        ArchiveError: Nothing of it can be read.
    """
    verification = verify(root, expected)
    recorded = read_ledger(root, verification)
    if recorded is None:
        evidence = read_evidence(root, tool_digest=tool_digest())
        recorded = assemble(evidence, job="", run_dir="", read_file="")
        verification = Verification(
            bound=verification.bound,
            manifest_digest=verification.manifest_digest,
            damage={**verification.damage, LEDGER: verification.damage.get(LEDGER, "no ledger was recorded")},
            left_out=verification.left_out,
            state=verification.state,
        )
    shown = inspected(recorded, verification, run_dir=str(root))
    return _against(root, shown, view, index)


def recompute(
    root: Path,
    *,
    expected: str | None,
    work: Path | None,
    in_place: bool,
    view: MapView | None = None,
    index: dict[str, str] | None = None,
) -> tuple[Ledger, Path]:
    """Verdicts anew from receipts and answers; returns the new ledger and the file that holds it.

    Args:
        root: The archive.
        expected: Digest of the manifest kept elsewhere.
        work: Where the copy goes; a folder beside the archive by default.
        in_place: Write into the archive itself, where only recomputed.json is added.
        view: As for `inspect`.
        index: As for `inspect`.

    Raises:
        ArchiveError: Nothing of it can be read.
        OutputExists: The working folder is there already.
    """
    verification = verify(root, expected)
    recorded = read_ledger(root, verification)
    evidence = read_evidence(root, tool_digest=tool_digest())
    where = root if in_place else _copy(root, work)
    job = f"recomputation ({'in place' if in_place else 'in a working copy'})"
    new = assemble(
        evidence,
        job=job,
        run_dir=str(where),
        read_file=f"receipts and answers of {root}; {verification.text()}",
        status="newly recomputed",
        recorded_agreement=recorded.agreement if recorded else None,
    )
    ledger = _against(root, recomputed(new, recorded, verification), view, index)
    return ledger, _write(where, ledger)


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


def _against(root: Path, ledger: Ledger, view: MapView | None, index: dict[str, str] | None) -> Ledger:
    """Another map's drift and another checkout's source beside the ledger; verdicts stay as they are."""
    if view is None and index is None:
        return ledger
    evidence = read_evidence(root, tool_digest=tool_digest(), view=view)
    update: dict[str, object] = {}
    if view is not None:
        found = drift(view, evidence.workers, evidence.server_info, evidence.overridden)
        required = set(evidence.plan.requirements.labels)
        notes = [
            f"the plan required {label}, the other map does not know it"
            for label in sorted(required - set(view.labels))
        ]
        update["drift"] = [*ledger.drift, *(d.model_copy(update={"kind": f"other-map/{d.kind}"}) for d in found)]
        update["path_map"] = {**ledger.path_map, "other": path_rows(view, evidence.workers)}
        update["limitations"] = [*ledger.limitations, *notes]
    if index is not None:
        source = worker_source(evidence.workers, index)
        used = "used" if source.status == "matches" else "not used"
        update["provenance"] = f"{ledger.provenance}; --checkout {source.status} ({used}): {source.text}"
    return ledger.model_copy(update=update)


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
        damage[MANIFEST] = str(error).replace("\n", " ")[:200]
        return None, _sha256(path)


def _left_out(root: Path, manifest: Manifest) -> list[str]:
    """Files that an export declares to have left out, as far as they can be left out: answers and logs."""
    try:
        body = read_json(root, EXPORT)
    except ArchiveCorrupt:
        return []
    names = body.get("left_out") if isinstance(body, dict) else None
    allowed = (".outputs.json", "server.log")
    return [str(n) for n in names or () if n in manifest.files and str(n).endswith(allowed) and not (root / n).exists()]


def _files(root: Path, damage: dict[str, str]) -> Iterator[tuple[str, int]]:
    count = 0
    for folder, folders, files in os.walk(root, followlinks=False):
        folders.sort()
        for name in [*folders, *files]:
            path = Path(folder) / name
            status = path.lstat()
            relative = path.relative_to(root).as_posix()
            count += 1
            if count > _MOST_FILES:
                raise ArchiveCorrupt(f"{root}: more than {_MOST_FILES} files")
            if stat.S_ISLNK(status.st_mode):
                damage[relative] = "is a link"
            elif stat.S_ISREG(status.st_mode):
                yield relative, status.st_size
            elif not stat.S_ISDIR(status.st_mode):
                damage[relative] = "is no plain file"


def _plans_below(place: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(place, followlinks=False):
        if PLAN in files:
            folders.clear()
            yield Path(folder)


def _copy(root: Path, work: Path | None) -> Path:
    where = work or _beside(root)
    if where.exists() and any(where.iterdir()):
        raise OutputExists(f"{where} exists", hint="--work takes a fresh folder")
    shutil.copytree(root, where, symlinks=True, dirs_exist_ok=True)
    return where


def _beside(root: Path) -> Path:
    number = 1
    while (where := root.with_name(f"{root.name}.recomputed-{number}")).exists():
        number += 1
    return where


def _write(where: Path, ledger: Ledger) -> Path:
    path = where / RECOMPUTED
    if path.exists():
        number = 1
        while (older := where / f"recomputed.{number}.json").exists():
            number += 1
        path.rename(older)
    RunArchive(where).write_record(RECOMPUTED, ledger)
    return path


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
