"""An archive as one file to hand on: masked, closed by a manifest of its own, with what its reader can recompute."""

from __future__ import annotations

import hashlib
import json
import socket
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import ArchiveCorrupt
from sgl_graph.analyzer.masking import ALLOWED, Masker
from sgl_graph.analyzer.records.archive import MANIFEST, FileEntry, Manifest
from sgl_graph.analyzer.records.receipts import FIRST_LINK, seal_line
from sgl_graph.runtime.archive import pretty_json
from sgl_graph.runtime.evidence import OUTPUTS_SUFFIX, read_json, read_plan
from sgl_graph.runtime.verification import EXPORT, verify

SCHEMA = "sgl-graph.export/1"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_LOG = "server.log"


@dataclass(frozen=True)
class Exported:
    """What was written."""

    files: int
    left_out: int
    manifest_digest: str
    masked: dict[str, int]


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
    masker = Masker([socket.gethostname(), socket.getfqdn()])
    kept: dict[str, bytes] = {}
    left_out: dict[str, FileEntry] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink() or not path.is_file() or name in (MANIFEST, EXPORT) or path.name.startswith("."):
            continue
        if name.endswith(_LOG) or (name.endswith(OUTPUTS_SUFFIX) and not include_outputs):
            data = path.read_bytes()
            left_out[name] = FileEntry(sha256=hashlib.sha256(data).hexdigest(), size=len(data))
        else:
            kept[name] = _masked(root, name, masker)
    statement = _statement(plan.run_id, verification.manifest_digest, dict(verification.damage), left_out, masker)
    kept[EXPORT] = pretty_json(statement)
    files = {name: FileEntry(sha256=hashlib.sha256(data).hexdigest(), size=len(data)) for name, data in kept.items()}
    manifest = Manifest(
        run_id=plan.run_id,
        state="complete" if verification.state == "complete" else "partial",
        reason="export",
        identities={"exported_from": verification.manifest_digest},
        files={**{name: entry for name, entry in files.items() if name != EXPORT}, **left_out},
    ).sealed()
    closing = pretty_json(manifest.model_dump(mode="json"))
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in [*sorted(kept.items()), (MANIFEST, closing)]:
            archive.writestr(zipfile.ZipInfo(f"{plan.run_id}/{name}", _EPOCH), data, zipfile.ZIP_DEFLATED)
    return Exported(len(kept) + 1, len(left_out), hashlib.sha256(closing).hexdigest(), dict(masker.counts))


def _statement(
    run: str, source: str | None, damage: dict[str, str], left_out: dict[str, FileEntry], masker: Masker
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
            "absolute paths keep what follows a package folder, else their file name; host names are <host>; values of "
            f"variables whose names do not match {ALLOWED.pattern} are <masked>, and so are secrets by name"
        ),
        "receipts": "masked line by line and chained anew by this export",
        "can_recompute": can,
        "cannot_recompute": cannot,
    }


def _masked(root: Path, name: str, masker: Masker) -> bytes:
    if name.endswith(".jsonl"):
        return _masked_receipts(root / name, masker)
    if name.endswith(".json"):
        body = read_json(root, name)
        # Answers hold numbers only, and the digests over them must stay.
        return (root / name).read_bytes() if name.endswith(OUTPUTS_SUFFIX) else pretty_json(masker.value(body))
    return masker.text((root / name).read_text("utf-8", "replace")).encode()


def _masked_receipts(path: Path, masker: Masker) -> bytes:
    previous, lines = FIRST_LINK, []
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            try:
                body = json.loads(raw)
                del body["h"]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ArchiveCorrupt(
                    f"{path}:{number}: not a receipt line: damaged receipts are not exported"
                ) from error
            text = json.dumps(masker.value(body), separators=(",", ":")).encode()
            line, previous = seal_line(text, previous)
            lines.append(line)
    return b"".join(lines)
