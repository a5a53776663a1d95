"""The map beside what every worker showed: `map.observed.json` and the path table of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sgl_graph.analyzer.reconcile.mapview import MapPath, MapView
from sgl_graph.analyzer.reconcile.observation import WorkerObservation


def observed_map(view: MapView, workers: Sequence[WorkerObservation]) -> dict[str, Any]:
    """`map.observed.json`: the map as predicted, and beside each path what every worker showed."""
    paths = []
    for item, path in zip(view._list("paths"), view.paths, strict=True):
        seen = [path_observed(path, view, worker) for worker in workers if concerns(path, worker, view)]
        paths.append({**item, "observed": seen, "status": _status(path, seen)})
    unmapped = [
        {"worker": w.id, "graph": c.graph, "label": c.label or "unknown", "site": c.site or "unknown"}
        for w in workers
        for c in w.captures
        if view.path_of(c.path, c.label) is None
    ]
    return {**view.body, "schema": "sgl-graph.observed-map/1", "paths": paths, "unmapped_captures": unmapped}


def path_rows(view: MapView, workers: Sequence[WorkerObservation]) -> list[dict[str, Any]]:
    """The path table of the report: a row a path that is not known unreachable."""
    rows = []
    for path in view.paths:
        seen = [path_observed(path, view, worker) for worker in workers if concerns(path, worker, view)]
        if path.reachable == "no" and not seen:
            continue
        captured = sorted({label for one in seen for label in one["labels"]})
        replayed = sorted({label for one in seen for label in one["replayed"]})
        rows.append(
            {
                "path": path.id,
                "name": path.name,
                "backend": path.backend,
                "class": path.inspectability,
                "predicted_buckets": list(path.buckets) if path.buckets is not None else "unknown",
                "captured": captured,
                "replayed": replayed,
                "unreplayed": [label for label in captured if label not in replayed],
                "status": _status(path, seen),
                "decided_at": path.decided_at,
            }
        )
    return rows


def path_observed(path: MapPath, view: MapView, worker: WorkerObservation) -> dict[str, Any]:
    """What one worker showed of a path."""
    mine = [c for c in worker.captures if view.path_of(c.path, c.label) is path]
    labels = sorted({c.label for c in mine if c.label})
    replayed = {label: n for label, n in sorted(worker.labels_replayed().items()) if label in labels}
    sizes = {label_size(label) for label in replayed}
    unreplayed = sorted(b for b in path.buckets if b not in sizes) if path.buckets is not None else "unknown"
    refuted = refutation(path, [c.complete for c in mine])
    status = "refuted" if refuted else "verified" if mine and replayed else "unverified"
    return {
        "worker": worker.id,
        "captures": len(mine),
        "inspections": sum(1 for c in mine if c.complete),
        "labels": labels,
        "replayed": replayed,
        "unreplayed_buckets": unreplayed,
        "status": status,
    }


def _status(path: MapPath, seen: Sequence[Mapping[str, Any]]) -> str:
    states = {one["status"] for one in seen}
    if "refuted" in states or (path.reachable == "no" and any(one["captures"] for one in seen)):
        return "refuted"
    return "verified" if states == {"verified"} else "unverified"


def refutation(path: MapPath, complete: Sequence[bool]) -> str | None:
    """Why the receipts contradict the class, or None; no captures refute nothing."""
    if not complete:
        return None
    if path.inspectability == "lifetime-inspectable" and not all(complete):
        return f"{complete.count(False)} of {len(complete)} captures could not be read whole"
    if path.inspectability in ("replay-observable-only", "unsupported") and any(complete):
        return f"{complete.count(True)} of {len(complete)} captures were read whole"
    return None


def concerns(path: MapPath, worker: WorkerObservation, view: MapView) -> bool:
    if worker.role == path.worker:
        return True
    return any(view.path_of(c.path, c.label) is path for c in worker.captures)


def label_size(label: str) -> int | None:
    """The size of a raw label."""
    size = label.rsplit("@", 1)[1] if "@" in label else ""
    return int(size) if size.isdigit() else None
