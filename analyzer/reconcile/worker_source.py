"""Did the workers import the source that was mapped? By the digest of each module, as imported and as in the checkout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sgl_graph.analyzer.reconcile.observation import WorkerObservation
from sgl_graph.analyzer.records.ledger import WorkerSource

PACKAGE = "sglang"


@dataclass(frozen=True)
class SourceStatement:
    """Over all workers that recorded modules, and for each."""

    status: WorkerSource
    text: str
    by_worker: Mapping[str, WorkerSource] = field(default_factory=dict)


def worker_source(workers: Sequence[WorkerObservation], index: Mapping[str, str] | None) -> SourceStatement:
    """Compare what the workers imported with the checkout.

    Args:
        workers: Their observations.
        index: sha256 by dotted module name of the checkout; None when nothing was kept to compare with.
    """
    if index is None:
        return SourceStatement("unknown", "unknown: the digests of the checkout's modules were not kept")
    by_worker: dict[str, WorkerSource] = {}
    digests = frozenset(index.values())
    compared = 0
    first: str | None = None
    for worker in workers:
        modules = {name: digest for name, digest in worker.modules.items() if _is_ours(name)}
        if not modules:
            by_worker[worker.id] = "unknown"
            continue
        wrong = sorted(name for name, digest in modules.items() if not _known(name, digest, index, digests))
        compared += len(modules)
        by_worker[worker.id] = "differs" if wrong else "matches"
        if wrong and first is None:
            what = "is not in the checkout" if wrong[0] not in index else "differs from the checkout"
            first = f"{worker.id} imported {len(wrong)} of {len(modules)} modules that differ: {wrong[0]} {what}"
            if worker.root:
                first += f" (imported from {worker.root})"
    recorded = {worker: status for worker, status in by_worker.items() if status != "unknown"}
    if "differs" in recorded.values():
        return SourceStatement("differs", first or "differs", by_worker)
    # One that stays silent although it holds graphs leaves the whole unknown.
    silent = [w.id for w in workers if by_worker.get(w.id) == "unknown" and w.captures]
    if not recorded or silent:
        why = f"{silent[0]} recorded none" if silent else "no worker recorded the modules it imported"
        return SourceStatement("unknown", f"unknown: {why}", by_worker)
    text = f"{len(recorded)} workers imported the checkout's own source ({compared} module digests agree)"
    return SourceStatement("matches", text, by_worker)


def _known(name: str, digest: str, index: Mapping[str, str], digests: frozenset[str]) -> bool:
    """Whether the checkout holds this file under this name; a module that goes by another name is known by its content."""
    return index[name] == digest if name in index else digest in digests


def _is_ours(name: str) -> bool:
    return name == PACKAGE or name.startswith(f"{PACKAGE}.")
