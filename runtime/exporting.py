"""An archive as one file to hand on: masked, closed by a manifest of its own, with what its reader can recompute."""

from __future__ import annotations

import errno
import hashlib
import json
import socket
import stat
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import ArchiveCorrupt, HostError
from sgl_graph.analyzer.masking import ALLOWED, Masker, secrets_of
from sgl_graph.analyzer.reconcile.consistency import contradictions
from sgl_graph.analyzer.reconcile.recompute import NAMES, Verification, rests_on
from sgl_graph.analyzer.records.archive import EXPORT, LEDGER, MANIFEST, FileEntry, Manifest
from sgl_graph.analyzer.records.receipts import FIRST_LINK, LONGEST_LINE, seal_line
from sgl_graph.analyzer.records.strict_json import parse_json
from sgl_graph.runtime.archive import pretty_json
from sgl_graph.runtime.evidence import LARGEST_JSON, OUTPUTS_SUFFIX, read_json, read_plan
from sgl_graph.runtime.verification import is_plain_name, read_ledger, verify

SCHEMA = "sgl-graph.export/1"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LOG = "server.log"
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True)
class Exported:
    """What was written."""

    files: int
    left_out: int
    manifest_digest: str
    masked: dict[str, int]
    #: What was wrong with the archive, by file; the export carries it.
    damage: dict[str, str]
    #: The folder that the file unpacks to.
    folder: str


def export(root: Path, output: Path, *, include_outputs: bool) -> Exported:
    """Write an export.

    Args:
        root: The archive.
        output: A zip file; the folder in it is an archive that reconcile reads.
        include_outputs: Whether the answers go along.

    Raises:
        ArchiveError: The archive cannot be read; damaged receipts are not exported.
    """
    plan = read_plan(root)
    verification = verify(root, None)
    found = _damage(root, verification)
    names = [name for name in _names(root) if name not in (MANIFEST, EXPORT)]
    masker = Masker([socket.gethostname(), socket.getfqdn()], *_hidden(root, names))
    entries: dict[str, FileEntry] = {}
    left_out = [n for n in names if n.endswith(_LOG) or (n.endswith(OUTPUTS_SUFFIX) and not include_outputs)]
    partial = output.with_name(f".{output.name}.partial")
    try:
        with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                if name in left_out:
                    entries[name] = _entry(_pieces(root / name))
                else:
                    entries[name] = _put(archive, plan.run_id, name, _masked(root, name, masker))
            for name in verification.left_out:
                entries[name] = FileEntry.model_validate(read_json(root, MANIFEST)["files"][name])
                left_out.append(name)
            damage = {_shown(name, masker): masker.text(why) for name, why in found.items()}
            statement = _statement(plan.run_id, verification.manifest_digest, damage, left_out, masker)
            entries[EXPORT] = _put(archive, plan.run_id, EXPORT, [pretty_json(statement)])
            manifest = Manifest(
                run_id=plan.run_id,
                state="complete" if verification.state == "complete" else "partial",
                reason="export",
                identities={"exported_from": verification.manifest_digest},
                files=entries,
            ).sealed()
            closing = _put(archive, plan.run_id, MANIFEST, [pretty_json(manifest.model_dump(mode="json"))])
        if output.exists():
            partial.chmod(stat.S_IMODE(output.stat().st_mode))
        partial.replace(output)
    except OSError as error:
        hint = (
            "free space, or name another file"
            if error.errno in _NO_ROOM
            else "name a file in a folder that you may write"
        )
        raise HostError(f"cannot write {output}: {error.strerror}", hint=hint) from error
    finally:
        partial.unlink(missing_ok=True)
    kept = len(entries) - len(left_out) + 1
    return Exported(kept, len(left_out), closing.sha256, dict(masker.counts), found, plan.run_id)


def _damage(root: Path, verification: Verification) -> dict[str, str]:
    """What is wrong with the archive: its files, and a ledger that contradicts itself or is not there."""
    found = dict(verification.damage)
    ledger = read_ledger(root, verification)
    if ledger is None:
        found.setdefault(LEDGER, "no ledger was recorded")
    else:
        for name, why in contradictions(ledger).items():
            found.setdefault(LEDGER, f"contradicts itself: {name} is recorded PASS, but {why}")
    return found


def _shown(name: str, masker: Masker) -> str:
    """A damaged file's name, masked unless that would hide which verdicts rest on it."""
    masked = masker.text(name)
    return masked if all(rests_on(v, masked) == rests_on(v, name) for v in NAMES) else name


def _names(root: Path) -> Iterator[str]:
    """Plain files of the archive, without following links."""
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.name.startswith("."):
            continue
        if is_plain_name(path.relative_to(root).as_posix()):
            yield path.relative_to(root).as_posix()


def _hidden(root: Path, names: list[str]) -> tuple[dict[str, str], set[str]]:
    """Environment variables that the archive holds anywhere, and its secrets: they stand in texts, too."""
    found: dict[str, str] = {}
    secrets: set[str] = set()
    for name in names:
        if not name.endswith(".json") or name.endswith(OUTPUTS_SUFFIX):
            continue
        body = read_json(root, name)
        secrets |= secrets_of(body)
        todo = [body]
        while todo:
            item = todo.pop()
            if isinstance(item, dict):
                env = item.get("env")
                if isinstance(env, dict):
                    found.update((str(key), text) for key, text in env.items() if isinstance(text, str))
                todo += item.values()
            elif isinstance(item, list):
                todo += item
    return found, secrets


def _put(archive: zipfile.ZipFile, run: str, name: str, pieces: Iterable[bytes]) -> FileEntry:
    """Write a file piece by piece: receipts may be larger than memory."""
    info = zipfile.ZipInfo(f"{run}/{name}", _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    digest, size = hashlib.sha256(), 0
    with archive.open(info, "w", force_zip64=True) as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
    return FileEntry(sha256=digest.hexdigest(), size=size)


def _entry(pieces: Iterable[bytes]) -> FileEntry:
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return FileEntry(sha256=digest.hexdigest(), size=size)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def _statement(
    run: str, source: str | None, damage: dict[str, str], left_out: list[str], masker: Masker
) -> dict[str, Any]:
    answers = any(name.endswith(OUTPUTS_SUFFIX) for name in left_out)
    can = ["lifetime and coverage, from the receipts and the windows of the traffic"]
    cannot = ["that these files are the run's own: masking changed them, and their digests are the export's"]
    if answers:
        cannot.append("numerical and agreement: the answers were left out, so they are NOT-RECOMPUTED or unavailable")
    else:
        can.append("numerical and agreement, from the answers")
    return {
        "schema": SCHEMA,
        "run_id": run,
        "source_manifest_digest": source or "unknown",
        "source_damage": damage,
        "left_out": sorted(left_out),
        "masked": dict(masker.counts),
        "mask": (
            "absolute paths keep what follows a package folder, else their file name; names of this host and private "
            f"addresses are <host>; values of variables whose names do not match {ALLOWED.pattern} are <masked> wherever "
            "they stand, and so are secrets by name"
        ),
        "receipts": "masked line by line and chained anew by this export",
        "can_recompute": can,
        "cannot_recompute": cannot,
    }


def _masked(root: Path, name: str, masker: Masker) -> Iterable[bytes]:
    if name.endswith(".jsonl"):
        return _masked_receipts(root / name, masker)
    if name.endswith(".json"):
        body = read_json(root, name)
        # Answers hold numbers only, and the digests over them must stay.
        return _pieces(root / name) if name.endswith(OUTPUTS_SUFFIX) else [pretty_json(masker.value(body))]
    if (root / name).stat().st_size > LARGEST_JSON:
        raise ArchiveCorrupt(f"{root / name}: larger than any honest file of its kind")
    return [masker.text((root / name).read_text("utf-8", "replace")).encode()]


def _masked_receipts(path: Path, masker: Masker) -> Iterator[bytes]:
    previous = FIRST_LINK
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(LONGEST_LINE + 1):
            number += 1
            try:
                if len(raw) > LONGEST_LINE:
                    raise ValueError("longer than any honest line")
                body = parse_json(raw)
                del body["h"]
            except (ValueError, KeyError, TypeError) as error:
                raise ArchiveCorrupt(
                    f"{path}:{number}: not a receipt line: damaged receipts are not exported"
                ) from error
            text = json.dumps(masker.value(body), separators=(",", ":")).encode()
            line, previous = seal_line(text, previous)
            yield line
