"""Labels that a user wrote, held against those that a map knows: a typo is told before anything is launched."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.reconcile.coverage import requirement_of
from sgl_graph.analyzer.reconcile.mapview import MapView

_LABEL = re.compile(r"[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+(/[A-Za-z0-9_.+-]+)*(@\d+)?")
_SHOWN = 8


@dataclass(frozen=True)
class KnownLabels:
    """What a map knows of labels.

    Attributes:
        names: requirements, as `target:decode/lora`.
        pairs: their `runner:family`.
        sizes: captured sizes by pair, where the map lists all of them.
    """

    names: frozenset[str]
    pairs: frozenset[str]
    sizes: dict[str, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, view: MapView) -> KnownLabels:
        """The labels of a map's paths, reachable or not, and those that it requires."""
        names = {requirement_of(label) for label in view.labels}
        sizes: dict[str, set[int] | None] = {}
        for path in view.paths:
            names.update(f"{path.name}/{variant}" if variant else path.name for variant in path.variants)
            known = sizes.get(pair_of(path.name), set())
            sizes[pair_of(path.name)] = None if known is None or path.buckets is None else known | {*path.buckets}
        listed = {pair: frozenset(found) for pair, found in sizes.items() if found}
        return cls(frozenset(names), frozenset(map(pair_of, names)) | sizes.keys(), listed)

    def nearest(self, label: str) -> str | None:
        """The known label that reads most like this one."""
        known = sorted(self.names | self.pairs)
        found = get_close_matches(requirement_of(label), known, n=1, cutoff=0.5)
        return found[0] if found else None


def pair_of(label: str) -> str:
    """`runner:family` of a label."""
    return requirement_of(label).split("/", 1)[0]


def check_labels(labels: Sequence[str], view: MapView | None, where: str) -> list[str]:
    """Refuse labels that cannot be meant; what is merely unusual is told.

    Args:
        labels: As the user wrote them.
        view: The map of the run; None: nothing is known, so only the form is checked.
        where: What the labels were written in, for the message.

    Returns:
        A sentence for each label whose variant or size the map does not expect.

    Raises:
        ConfigError: One is no label, or names no `runner:family` of the map.
    """
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise ConfigError(
                f"{where}: {label!r} is no label", hint="labels read runner:family/variant, as target:decode/lora"
            )
    if view is None:
        return []
    known = KnownLabels.of(view)
    doubts = []
    for label in labels:
        if pair_of(label) not in known.pairs:
            raise _unknown(label, known, where)
        doubts += _doubts(label, known, where)
    return doubts


def _unknown(label: str, known: KnownLabels, where: str) -> ConfigError:
    if not known.names:
        return ConfigError(
            f"{where}: {label}: the map knows no label at all",
            hint="sgl-graph preflight shows why no capture is expected",
        )
    nearest = known.nearest(label)
    meant = f"; the nearest is {nearest}" if nearest else ""
    return ConfigError(
        f"{where}: {label}: the map knows no such runner and family{meant}", hint=f"it knows {_listed(known.names)}"
    )


def _doubts(label: str, known: KnownLabels, where: str) -> list[str]:
    name, pair = requirement_of(label), pair_of(label)
    expected = [one for one in known.names if pair_of(one) == pair]
    if expected and name not in expected:
        return [f"{where}: {name}: the map expects {pair} only as {_listed(expected)}"]
    size = label.rsplit("@", 1)[1] if "@" in label else None
    sizes = known.sizes.get(pair)
    if size is not None and sizes and int(size) not in sizes:
        return [f"{where}: {label}: the map expects no such size (it knows {_listed(map(str, sorted(sizes)), False)})"]
    return []


def _listed(items: Iterable[str], in_order: bool = True) -> str:
    found = sorted(items) if in_order else list(items)
    return ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
