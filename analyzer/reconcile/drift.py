"""Drift: where the map predicted one thing and the server or its receipts show another; it moves no verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sgl_graph.analyzer.reconcile.dispatch import dispatch_drift
from sgl_graph.analyzer.reconcile.mapview import MapPath, MapView
from sgl_graph.analyzer.reconcile.observation import WorkerObservation
from sgl_graph.analyzer.reconcile.observed import concerns, label_size, path_observed, refutation
from sgl_graph.analyzer.records.ledger import Drift

_LIMIT = 200


def drift(
    view: MapView | None,
    workers: Sequence[WorkerObservation],
    server_info: Mapping[str, Any] | None,
    overridden: Collection[str] = (),
) -> list[Drift]:
    """All drift, in the order dispatch, captures, paths, classes, workers.

    Args:
        view: The map, or None when there is none.
        workers: Observations of the instrumented launch.
        server_info: The server's resolved arguments, or None when it reported none.
        overridden: Settings that the launch itself set otherwise than the command (its port).
    """
    found: list[Drift] = []
    if view is not None:
        found += dispatch_drift(view, server_info, overridden)
        found += _unmapped(view, workers)
        found += _unexecuted(view, workers)
        found += _classes(view, workers)
    found += _between_workers(workers)
    return found[:_LIMIT]


def _unmapped(view: MapView, workers: Sequence[WorkerObservation]) -> list[Drift]:
    found: dict[tuple[str, str], list[str]] = {}
    for worker in workers:
        for capture in worker.captures:
            if view.path_of(capture.path, capture.label) is None:
                found.setdefault((capture.site or "unknown", capture.label or "unknown"), []).append(worker.id)
    return [
        Drift(
            kind="unmapped-capture",
            subject=site,
            observed=label,
            text=f"{len(ids)} captures at {site} (label {label}) match no path of the map; seen in {ids[0]}",
        )
        for (site, label), ids in sorted(found.items())
    ]


def _unexecuted(view: MapView, workers: Sequence[WorkerObservation]) -> list[Drift]:
    found = []
    for path in view.paths:
        if path.reachable == "no":
            for worker in workers:
                if any(view.path_of(c.path, c.label) is path for c in worker.captures):
                    found.append(
                        Drift(
                            kind="reachability",
                            subject=path.id,
                            predicted="unreachable",
                            observed="captured",
                            text=f"{path.name} was held unreachable, and {worker.id} captured it",
                        )
                    )
                    break
            continue
        if path.reachable != "yes" or path.nested_in:
            continue
        seen = [path_observed(path, view, w) for w in workers if concerns(path, w, view)]
        if not seen:
            continue
        if not any(one["captures"] for one in seen):
            found.append(
                Drift(
                    kind="path-unexecuted",
                    subject=path.id,
                    predicted="captured",
                    observed="no capture",
                    text=f"{path.name} ({path.backend}) was predicted and never captured{_see(path)}",
                )
            )
            continue
        captured = {label_size(label) for one in seen for label in one["labels"]} - {None}
        if path.buckets is not None and captured and captured != set(path.buckets):
            found.append(
                Drift(
                    kind="buckets",
                    subject=path.id,
                    predicted=_numbers(path.buckets),
                    observed=_numbers(captured),
                    text=(
                        f"{path.name}: predicted buckets {_numbers(path.buckets)}, captured {_numbers(captured)}"
                        f"{f' (clamped by {path.clamped_by})' if path.clamped_by else ''}{_see(path)}"
                    ),
                )
            )
        unreplayed = sorted({x for one in seen for x in one["labels"] if x not in one["replayed"]})
        if unreplayed:
            found.append(
                Drift(
                    kind="bucket-unreplayed",
                    subject=path.id,
                    predicted="replayed",
                    observed="captured only",
                    text=f"{path.name}: captured and never replayed: {', '.join(unreplayed[:12])}"
                    f"{' ...' if len(unreplayed) > 12 else ''}{_see(path)}",
                )
            )
    return found


def _classes(view: MapView, workers: Sequence[WorkerObservation]) -> list[Drift]:
    found = []
    for path in view.paths:
        complete = [c.complete for w in workers for c in w.captures if view.path_of(c.path, c.label) is path]
        why = refutation(path, complete)
        if why:
            found.append(
                Drift(
                    kind="class",
                    subject=path.id,
                    predicted=path.inspectability,
                    observed=why,
                    text=f"{path.name}: predicted {path.inspectability}, but {why}",
                )
            )
    return found


def _between_workers(workers: Sequence[WorkerObservation]) -> list[Drift]:
    """Workers of one role that captured or replayed different labels; one entry for all labels that the same ones lack."""
    found = []
    roles: dict[str, list[WorkerObservation]] = {}
    for worker in workers:
        roles.setdefault(worker.role, []).append(worker)
    for role, group in sorted(roles.items()):
        for what, sets in (
            ("captured", [w.labels_captured() for w in group]),
            ("replayed", [set(w.labels_replayed()) for w in group]),
        ):
            lacking: dict[tuple[str, ...], list[str]] = {}
            for label in sorted(set().union(*sets)):
                without = tuple(w.shown for w, labels in zip(group, sets, strict=True) if label not in labels)
                if without and len(without) < len(group):
                    lacking.setdefault(without, []).append(label)
            for without, labels in lacking.items():
                listed = ", ".join(labels)
                found.append(
                    Drift(
                        kind="workers-differ",
                        subject=listed,
                        predicted=f"the same on every {role}",
                        observed=f"not {what} on {', '.join(without)}",
                        text=f"{what} on some {role} workers and not on {', '.join(without)}: {listed}",
                    )
                )
    return found


def _see(path: MapPath) -> str:
    return "" if path.decided_at == "unknown" else f"; see {path.decided_at}"


def _numbers(values: Any) -> str:
    return " ".join(str(v) for v in sorted(values))
