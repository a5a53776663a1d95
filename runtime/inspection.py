"""Reads an archive without changing a byte of it: verification, the recorded ledger, recomputation in a copy."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from sgl_graph.analyzer.errors import (
    ArchiveMissing,
    ConfigError,
    HostError,
    OutputExists,
)
from sgl_graph.analyzer.reconcile.drift import drift
from sgl_graph.analyzer.reconcile.ledger import assemble
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.reconcile.observed import path_rows
from sgl_graph.analyzer.reconcile.recompute import Verification, inspected, recomputed
from sgl_graph.analyzer.reconcile.worker_source import worker_source
from sgl_graph.analyzer.records.archive import LEDGER, PLAN
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.runtime.archive import RunArchive
from sgl_graph.runtime.evidence import legacy_answers, read_evidence
from sgl_graph.runtime.identity import tool_digest
from sgl_graph.runtime.verification import read_ledger, verify

RECOMPUTED = "recomputed.json"
#: How far below a folder archives are looked for.
_DEEPEST_TREE = 32


def find_archives(places: list[Path]) -> list[Path]:
    """The archives at, or below, these places, without following links.

    Raises:
        ArchiveMissing: There is none at one of them.
    """
    found: list[Path] = []
    for place in places:
        if place.is_file():
            raise ArchiveMissing(
                f"{place}: a file, and an archive is a folder or an export's zip file", hint="name its folder"
            )
        if not place.is_dir():
            raise ArchiveMissing(f"{place}: no such folder")
        below = [place] if (place / PLAN).is_file() else sorted(_plans_below(place))
        if not below:
            raise ArchiveMissing(
                f"{place}: no archive here or below", hint="an archive is the folder that run --out wrote"
            )
        found += [path for path in below if path not in found]
    return found


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
    shown = inspected(_as_legacy(recorded) if legacy_answers(root) else recorded, verification, run_dir=str(root))
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
    evidence = read_evidence(root, tool_digest=tool_digest(), digests=verification.digests)
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


def _as_legacy(ledger: Ledger) -> Ledger:
    """The ledger with its numerical verdict marked as one that no digest proves."""
    numerical = ledger.verdicts.numerical.model_copy(update={"evidence": "unverified-legacy"})
    return ledger.model_copy(update={"verdicts": ledger.verdicts.model_copy(update={"numerical": numerical})})


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


def _plans_below(place: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(place, followlinks=False):
        if PLAN in files:
            folders.clear()
            yield Path(folder)
        elif len(Path(folder).relative_to(place).parts) >= _DEEPEST_TREE:
            folders.clear()


def _copy(root: Path, work: Path | None) -> Path:
    where = work or _beside(root)
    if where.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"{where} lies in the archive {root}", hint="name a folder elsewhere with --work")
    if where.exists() and any(where.iterdir()):
        raise OutputExists(f"{where} exists", hint="--work takes a fresh folder")
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}", hint="name another folder with --work") from error
    try:
        shutil.copytree(root, where, symlinks=True, dirs_exist_ok=True, ignore=_special)
    except shutil.Error as error:
        source, _, reason = error.args[0][0]
        raise HostError(f"{source} cannot be copied to {where}: {reason}") from error
    return where


def _special(folder: str, names: list[str]) -> list[str]:
    """Pipes and devices, which a copy would wait for; `verify` has named them as damage."""

    def kept(name: str) -> bool:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)

    return [name for name in names if not kept(name)]


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
