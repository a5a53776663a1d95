"""Sentences and cells that the formats of a path map share."""

from __future__ import annotations

from collections.abc import Sequence

from sgl_graph.analyzer.records.pathmap import PathEntry, PathMap

BOUNDARIES = (
    "A map is a prediction from source: only the receipts of a run confirm a class, a label or a replay.",
    "Automatic choices are unresolved until the server's own resolved arguments confirm them.",
    "This tool changes no dependency, downloads no model, and launches nothing during preflight.",
)


def sizes(values: Sequence[int] | None) -> str:
    """A list of sizes in a cell."""
    if values is None:
        return "open"
    if not values:
        return "none"
    if len(values) <= 4:
        return " ".join(map(str, values))
    return f"{len(values)}: {values[0]}..{values[-1]}"


def heading(made: PathMap) -> str:
    """One line on what was mapped."""
    release = made.checkout.sglang_version or "unknown release"
    commit = f", commit {made.checkout.commit[:12]}" if made.checkout.commit else ""
    dirty = ", dirty" if made.checkout.dirty else ""
    name = made.device.name or made.device.kind
    device = f"device {name} ({made.device.source})" if name else "device not known"
    return f"SGLang {release}{commit}{dirty}; {device}"


def roles(made: PathMap) -> str:
    """The workers in words."""
    return ", ".join(
        f"{worker.role} x {worker.count if worker.count is not None else '?'} (injection {worker.injection.reaches})"
        for worker in made.workers
    )


def chain(path: PathEntry) -> list[str]:
    """The chain of a path, one line a call."""
    return [f"{ref.qualname.rpartition(':')[2]}  {ref.file}:{ref.line}" for ref in path.chain]


def where(path: PathEntry) -> str:
    """When a path is captured."""
    return {"startup": "start-up", "request": "while serving", "admin": "by an admin call"}.get(path.trigger or "", "?")
