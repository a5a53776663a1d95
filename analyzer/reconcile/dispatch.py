"""Settings as the map predicted them against what the server reports of itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.records.ledger import Drift


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
    if _names(predicted) and _names(observed):
        return set(predicted) == set(observed)
    if isinstance(predicted, list | tuple) and isinstance(observed, list | tuple):
        return len(predicted) == len(observed) and all(map(_fits, predicted, observed))
    if isinstance(predicted, Mapping) and isinstance(observed, Mapping):
        return predicted.keys() == observed.keys() and all(
            _fits(item, observed[key]) for key, item in predicted.items()
        )
    if isinstance(predicted, bool) or isinstance(observed, bool) or predicted is None or observed is None:
        return False
    return str(predicted) == str(observed)


def _names(value: Any) -> bool:
    """A list of different names: a server that keeps a set reports it as a list, in an order of its own at each start."""
    return isinstance(value, list | tuple) and all(isinstance(x, str) for x in value) and len(set(value)) == len(value)


def _fits(predicted: Any, observed: Any) -> bool:
    """As `_same`, inside a container: a member that no source tells, such as a random identity, is null in a map."""
    return (
        predicted is None
        or predicted == observed
        or (isinstance(predicted, list | tuple | Mapping) and _same(predicted, observed))
    )
