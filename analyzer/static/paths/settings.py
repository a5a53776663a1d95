"""The resolved configuration as the map records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sgl_graph.analyzer.records import pathmap as records
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.protocol import ClassOf, Configuration, FunctionOf, InstanceOf, Place

_SIMPLE = (bool, int, float, str)
#: What a user can give or change; the evaluator's own reasons for an unknown are none of it.
_FACTS = ("flag:", "env:", "device", "model", "package:")


@dataclass(frozen=True, slots=True)
class PhaseSizes:
    """Configured sizes of one phase, and the function that computes them."""

    phase: str
    sizes: tuple[int, ...] | None
    source: records.CodeRef | None
    #: What a request pool of the size that the arguments ask for leaves of them, where they ask for one.
    clamped: tuple[int, ...] | None = None


class Settings:
    """Values, starting, open questions and sizes of a configuration; empty for None."""

    def __init__(self, configuration: Configuration | None) -> None:
        self.starts = records.Starts(value="unresolved", why="the configuration was not resolved")
        self.entries: tuple[records.ConfigValue, ...] = ()
        self.unresolved: tuple[records.Unresolved, ...] = ()
        self.buckets: tuple[PhaseSizes, ...] = ()
        self.values: dict[str, Any] = {}
        self.unconfirmed: frozenset[str] = frozenset()
        #: Phases of which it is not settled whether, or by what, they capture.
        self.open_phases: frozenset[str] = frozenset()
        if configuration is not None:
            self._take(configuration)

    @property
    def serves_adapters(self) -> bool:
        """Whether the launch certainly serves adapters."""
        return self.values.get(profile.ADAPTERS_FIELD) is True

    @property
    def adapters(self) -> int:
        """Adapters that the launch loads, none where that is not known."""
        named = self.values.get(profile.ADAPTER_PATHS_FIELD)
        return len(named) if self.serves_adapters and isinstance(named, (list, tuple, dict)) else 0

    def _take(self, given: Configuration) -> None:
        starts = given.starts
        self.starts = records.Starts(
            value="yes" if starts.value else "no", why=starts.why, file=starts.file or None, line=starts.line or None
        )
        self.entries = tuple(
            records.ConfigValue(
                name=entry.name,
                value=plain(entry.value),
                source=entry.source.value,
                automatic=entry.automatic,
                predicted=plain(entry.predicted),
                confirmed_by="server" if entry.confirmed_by == "server" else None,
                decided_by=code_ref(entry.decided_by),
                depends=tuple(name for name in entry.depends if name.startswith(_FACTS)),
            )
            for entry in sorted(given.entries, key=lambda e: e.name)
        )
        self.unresolved = tuple(
            records.Unresolved(
                what=item.what,
                predicted=plain(item.predicted),
                decided_by=code_ref(item.decided_by),
                settle_with=item.settle_with,
            )
            for item in given.unresolved
        )
        self.buckets = tuple(PhaseSizes(b.phase, b.sizes, code_ref(b.source), b.clamped) for b in given.buckets)
        self.values = {
            entry.name: entry.predicted if entry.value is None and entry.automatic else entry.value
            for entry in self.entries
        }
        self.unconfirmed = frozenset(
            entry.name
            for entry in self.entries
            if entry.confirmed_by is None and (entry.automatic or entry.source == "unresolved")
        )
        self._refuse_ranks()
        unsettled = {entry.name for entry in self.entries if entry.source == "unresolved"}
        self.open_phases = frozenset(
            phase
            for phase, off in profile.LEGACY_OFF_FIELDS.items()
            if f"{profile.GRAPH_CONFIG_FIELD}.{phase}.{profile.GRAPH_BACKEND}" in unsettled or off in unsettled
        )

    def _refuse_ranks(self) -> None:
        """A launch of less than one rank of a kind serves nothing, whether or not the checkout says so."""
        for name in profile.RANK_FIELDS:
            value = self.values.get(name)
            if self.starts.value == "yes" and type(value) is int and value < 1:
                self.starts = records.Starts(value="no", why=f"{name} {value} asks for no worker process")


def code_ref(place: Place | None) -> records.CodeRef | None:
    """A place of the checkout as a record."""
    if place is None:
        return None
    return records.CodeRef(file=place.file, line=place.line, qualname=place.qualname.replace(".<locals>", ""))


def plain(value: object) -> Any:
    """A configuration value in JSON's terms; objects by the name of their class."""
    if value is None or isinstance(value, _SIMPLE):
        return value
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (InstanceOf, ClassOf, FunctionOf)):
        return value.qualname
    return str(value)
