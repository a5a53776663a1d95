"""Set the serving environment's own answer beside the prediction: it sharpens what is unresolved and confirms nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sgl_graph.analyzer.static.config.protocol import Entry, Source


@dataclass(frozen=True, slots=True)
class Sharpened:
    """Entries after `--resolve`, and the names whose prediction it changed."""

    entries: tuple[Entry, ...]
    changed: tuple[str, ...]


def sharpen(entries: Sequence[Entry], resolved: Mapping[str, Any]) -> Sharpened:
    """Replace predictions of unresolved entries by what the serving environment answers.

    That environment was asked without a device, so its answer stays a prediction (`confirmed_by` is the server's alone);
    values that source, flags and facts settle are left as they are.
    """
    result: list[Entry] = []
    changed: list[str] = []
    for entry in entries:
        known, value = _look_up(resolved, entry.name)
        if known and entry.source is Source.UNRESOLVED and value is not None and value != entry.predicted:
            entry = replace(entry, predicted=value)
            changed.append(entry.name)
        result.append(entry)
    return Sharpened(tuple(result), tuple(changed))


def _look_up(resolved: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    value: Any = resolved
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return False, None
        value = value[part]
    return True, value
