"""What an archive holds, read back from its files: a fresh run and any later inspection see the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from sgl_graph.analyzer.errors import ArchiveCorrupt, ArchiveMissing, ConfigError, SchemaUnknown
from sgl_graph.analyzer.reconcile.ledger import Evidence
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.reconcile.observation import Observer, Window, WorkerObservation, observe
from sgl_graph.analyzer.records import plan as plan_record
from sgl_graph.analyzer.records.archive import MAP, PLAN, RECEIPTS
from sgl_graph.analyzer.records.base import first_problem
from sgl_graph.analyzer.records.ledger import LaunchOutcome
from sgl_graph.analyzer.records.outputs import LEGACY_SCHEMA, OutputSet, read_output_set
from sgl_graph.analyzer.records.plan import Plan
from sgl_graph.analyzer.records.receipts import WorkerReceipts, read_receipts
from sgl_graph.analyzer.records.strict_json import parse_json

OUTCOME, SERVER_INFO, SOURCE, IDENTITIES = "launch.json", "server_info.json", "source.json", "identities.json"
OUTPUTS_SUFFIX = ".outputs.json"
#: No file of an honest archive but a receipts file or a server's log is larger.
LARGEST_JSON = 64 << 20
#: The launches whose receipts carry the verdicts of lifetime and coverage.
WATCHED = ("instrumented", "program")


def read_json(root: Path, name: str) -> Any:
    """A JSON file of the archive; None when it is not there.

    Raises:
        ArchiveCorrupt: It is too large, a link, or not JSON.
    """
    path = root / name
    if not path.exists() and not path.is_symlink():
        return None
    if path.is_symlink() or not path.is_file():
        raise ArchiveCorrupt(f"{path}: not a plain file")
    if path.stat().st_size > LARGEST_JSON:
        raise ArchiveCorrupt(f"{path}: {path.stat().st_size} bytes is more than any honest file of its kind")
    try:
        return parse_json(path.read_bytes())
    except ValueError as error:
        raise ArchiveCorrupt(f"{path}: not JSON: {error}") from error


def read_plan(root: Path) -> Plan:
    """The plan of an archive.

    Raises:
        ArchiveMissing: There is none.
        SchemaUnknown: It is of a schema that this release does not know.
        ArchiveCorrupt: It is not what a run writes.
    """
    body = read_json(root, PLAN)
    if body is None:
        raise ArchiveMissing(f"{root}: no {PLAN} here", hint="an archive is the folder that run --out wrote")
    if not isinstance(body, dict) or body.get("schema") != plan_record.SCHEMA:
        schema = body.get("schema") if isinstance(body, dict) else None
        raise SchemaUnknown(
            f"{root / PLAN}: schema {schema!r} is unknown", hint=f"this release reads {plan_record.SCHEMA}"
        )
    try:
        return Plan.model_validate(body)
    except (ValidationError, RecursionError) as error:
        raise ArchiveCorrupt(f"{root / PLAN}: {first_problem(error)}") from error


def read_evidence(
    root: Path, *, tool_digest: str, view: MapView | None = None, digests: Mapping[str, str] | None = None
) -> Evidence:
    """Everything that the ledger is made from.

    Args:
        root: The archive.
        tool_digest: Of the tool that judges now.
        view: Another map than the archive's own.
        digests: sha256 of files that were read just now.

    Raises:
        ArchiveMissing, ArchiveCorrupt, SchemaUnknown: The plan cannot be read. Damage elsewhere becomes a limitation.
    """
    plan = read_plan(root)
    limitations: list[str] = []
    outcomes = {name: _outcome(root, name, plan, limitations) for name in _launch_names(plan)}
    answers = {name: _answers(root, name, plan, limitations) for name in outcomes}
    files = receipt_files(root)
    watched = next((name for name in WATCHED if name in outcomes), "instrumented")
    windows = [Window(w.set, w.began, w.ended) for w in outcomes[watched].windows] if watched in outcomes else []
    if plan.mode == "program":
        windows = [Window("program", 0, (1 << 63) - 1)]
    # One pass: long receipts are verified and decoded once for all that is judged from them.
    observers = [Observer(receipts, windows) for receipts in files]
    fed = [receipts.tapped(observer.feed) for receipts, observer in zip(files, observers, strict=True)]
    lifetime = lifetime_verdict(fed) if files else None
    identities = _mapping(root, IDENTITIES, limitations) or {}
    return Evidence(
        plan=plan,
        launches=outcomes,
        answers=answers,
        workers=[observer.result() for observer in observers],
        lifetime=lifetime,
        view=view or _view(root, limitations),
        server_info=_mapping(root, f"{watched}/{SERVER_INFO}", limitations),
        source_index=_index(root, limitations),
        file_digests=_digests(
            root, [*(f"{RECEIPTS}/{Path(r.name).name}" for r in files), f"{watched}/{OUTCOME}", PLAN], digests or {}
        ),
        identities=identities,
        eager_captured=eager_captures(root),
        limitations=limitations,
        tool_digest=tool_digest,
        overridden=("port", "nccl_port", "random_seed"),
    )


def receipt_files(root: Path, folder: str = RECEIPTS) -> list[WorkerReceipts]:
    """The receipts of each worker, by name."""
    place = root / folder
    if place.is_symlink() or not place.is_dir():
        return []
    paths = (path for path in sorted(place.glob("*.jsonl")) if path.is_file() and not path.is_symlink())
    return [read_receipts(path) for path in paths if path.name.isprintable()]


def observed(root: Path, folder: str, windows: list[Window]) -> list[WorkerObservation]:
    """Observations of the receipts in a folder, whole or still being written."""
    return [observe(receipts, windows) for receipts in receipt_files(root, folder)]


def legacy_answers(root: Path) -> bool:
    """Whether the numerical verdict rests on answers of the schema that had no digests."""
    for launch in ("eager", "ordinary"):
        for path in sorted((root / launch).glob(f"*{OUTPUTS_SUFFIX}")):
            try:
                body = read_json(root, f"{launch}/{path.name}")
            except ArchiveCorrupt:
                continue
            if isinstance(body, dict) and body.get("schema") == LEGACY_SCHEMA:
                return True
    return False


def eager_captures(root: Path) -> int | None:
    """Graphs that the eager launch captured, by receipts that are whole; None when nothing whole tells."""
    workers = observed(root, f"eager/{RECEIPTS}", [])
    captures = sum(len(w.captures) for w in workers)
    if captures:
        return captures
    return 0 if workers and all(w.whole for w in workers) else None


def _launch_names(plan: Plan) -> list[str]:
    return [*(launch.name for launch in plan.launches), *(name for name in plan.skipped)]


def _outcome(root: Path, name: str, plan: Plan, limitations: list[str]) -> LaunchOutcome:
    if name in plan.skipped:
        return LaunchOutcome(state="skipped", reason=plan.skipped[name])
    body = _mapping(root, f"{name}/{OUTCOME}", limitations)
    if body is None:
        return LaunchOutcome(
            state="failed", reason="no record of this launch: it was not reached, or its record is lost"
        )
    try:
        return LaunchOutcome.model_validate(body)
    except ValidationError as error:
        limitations.append(f"{name}/{OUTCOME}: {first_problem(error)}")
        return LaunchOutcome(state="failed", reason="its record is damaged")


def _answers(root: Path, name: str, plan: Plan, limitations: list[str]) -> dict[str, OutputSet]:
    found = {}
    for request_set in plan.request_sets:
        file = f"{name}/{request_set.name}{OUTPUTS_SUFFIX}"
        try:
            body = read_json(root, file)
            if body is None:
                continue
            answers = read_output_set(body)
        except (ArchiveCorrupt, ValueError, RecursionError) as error:
            limitations.append(f"{file}: {first_problem(error)}")
            continue
        if answers.launch != name or answers.set != request_set.name:
            limitations.append(f"{file}: holds the answers of {answers.launch}/{answers.set}")
            continue
        found[request_set.name] = answers
    return found


def _view(root: Path, limitations: list[str]) -> MapView | None:
    path = root / MAP
    if not path.is_file() or path.is_symlink() or path.stat().st_size > LARGEST_JSON:
        return None
    try:
        return MapView.parse(path.read_bytes(), MAP)
    except ConfigError as error:
        limitations.append(error.message)
        return None


def _mapping(root: Path, name: str, limitations: list[str]) -> Mapping[str, Any] | None:
    try:
        body = read_json(root, name)
    except ArchiveCorrupt as error:
        limitations.append(error.message)
        return None
    return body if isinstance(body, dict) else None


def _index(root: Path, limitations: list[str]) -> dict[str, str] | None:
    """Module digests of the checkout; one that is no digest is damage, and the module then unknown."""
    body = _mapping(root, SOURCE, limitations)
    if body is None:
        return None
    found = {name: digest for name, digest in body.items() if isinstance(digest, str)}
    if len(found) < len(body):
        limitations.append(f"{SOURCE}: {len(body) - len(found)} modules have no digest")
    return found


def _digests(root: Path, names: list[str], known: Mapping[str, str]) -> dict[str, str]:
    """Digests of the files that lifetime and coverage rest on: receipts, the windows of the traffic, the plan."""
    found = {}
    for name in sorted(names):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue
        if name in known:
            found[name] = known[name]
            continue
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        found[name] = digest.hexdigest()
    return found
