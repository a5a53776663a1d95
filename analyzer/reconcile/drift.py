"""Drift: where the map predicted one thing and the server or its receipts show another; it moves no verdict."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sgl_graph.analyzer.reconcile.mapview import MapPath, MapView
from sgl_graph.analyzer.reconcile.observation import WorkerObservation
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


def dispatch_drift(
    view: MapView, server_info: Mapping[str, Any] | None, overridden: Collection[str] = ()
) -> list[Drift]:
    """Settings whose prediction the server's resolved arguments contradict."""
    found = []
    for item in view.config:
        name = str(item.get("name"))
        if name in overridden:
            continue
        predicted = _prediction(item)
        reported, observed = _lookup(server_info or {}, name)
        if reported and predicted is not None and not _same(predicted, observed):
            found.append(
                Drift(
                    kind="dispatch" if item.get("automatic") or item.get("source") == "unresolved" else "setting",
                    subject=name,
                    predicted=str(predicted),
                    observed=str(observed),
                    text=f"{name}: predicted {predicted}, the server resolved {observed}{_decider(item)}",
                )
            )
    return found


def dispatch_table(view: MapView, server_info: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Each automatic or unresolved setting, predicted against reported: confirmed, differs or not reported."""
    rows = []
    for item in view.config:
        if not item.get("automatic") and item.get("source") != "unresolved":
            continue
        predicted = _prediction(item)
        reported, observed = _lookup(server_info or {}, str(item.get("name")))
        if not reported:
            status = "not reported"
        elif predicted is None:
            status = "settled by the server"
        else:
            status = "confirmed" if _same(predicted, observed) else "differs"
        rows.append(
            {
                "name": item.get("name"),
                "predicted": predicted,
                "observed": observed if reported else "unknown",
                "status": status,
            }
        )
    return rows


def observed_map(view: MapView, workers: Sequence[WorkerObservation]) -> dict[str, Any]:
    """`map.observed.json`: the map as predicted, and beside each path what every worker showed."""
    paths = []
    for item, path in zip(view._list("paths"), view.paths, strict=True):
        seen = [_observed(path, view, worker) for worker in workers if _concerns(path, worker, view)]
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
        seen = [_observed(path, view, worker) for worker in workers if _concerns(path, worker, view)]
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


def _observed(path: MapPath, view: MapView, worker: WorkerObservation) -> dict[str, Any]:
    mine = [c for c in worker.captures if view.path_of(c.path, c.label) is path]
    labels = sorted({c.label for c in mine if c.label})
    replayed = {label: n for label, n in sorted(worker.labels_replayed().items()) if label in labels}
    sizes = {_size(label) for label in replayed}
    unreplayed = sorted(b for b in path.buckets if b not in sizes) if path.buckets is not None else "unknown"
    refuted = _refutation(path, [c.complete for c in mine])
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


def _refutation(path: MapPath, complete: Sequence[bool]) -> str | None:
    """Why the receipts contradict the class, or None; no captures refute nothing."""
    if not complete:
        return None
    if path.inspectability == "lifetime-inspectable" and not all(complete):
        return f"{complete.count(False)} of {len(complete)} captures could not be read whole"
    if path.inspectability in ("replay-observable-only", "unsupported") and any(complete):
        return f"{complete.count(True)} of {len(complete)} captures were read whole"
    return None


def _concerns(path: MapPath, worker: WorkerObservation, view: MapView) -> bool:
    if worker.role == path.worker:
        return True
    return any(view.path_of(c.path, c.label) is path for c in worker.captures)


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
        seen = [_observed(path, view, w) for w in workers if _concerns(path, w, view)]
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
        captured = {_size(label) for one in seen for label in one["labels"]} - {None}
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
        why = _refutation(path, complete)
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


def _size(label: str) -> int | None:
    size = label.rsplit("@", 1)[1] if "@" in label else ""
    return int(size) if size.isdigit() else None


def _numbers(values: Any) -> str:
    return " ".join(str(v) for v in sorted(values))


def _prediction(item: Mapping[str, Any]) -> Any:
    unresolved = item.get("source") == "unresolved" or item.get("predicted") is not None
    return item.get("predicted") if unresolved else item.get("value")


def _decider(item: Mapping[str, Any]) -> str:
    by = item.get("decided_by")
    return f" ({by.get('file')}:{by.get('line')})" if isinstance(by, Mapping) and by.get("file") else ""


def _lookup(info: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """A setting in the server's answer, by its name or by a dotted path into nested settings."""
    if name in info:
        return True, info[name]
    at: Any = info
    for part in name.split("."):
        if not isinstance(at, Mapping) or part not in at:
            return False, None
        at = at[part]
    return True, at


def _same(predicted: Any, observed: Any) -> bool:
    if predicted == observed:
        return True
    if isinstance(predicted, list | tuple) and isinstance(observed, list | tuple):
        return list(predicted) == list(observed)
    if isinstance(predicted, bool) or isinstance(observed, bool) or predicted is None or observed is None:
        return False
    return str(predicted) == str(observed)
