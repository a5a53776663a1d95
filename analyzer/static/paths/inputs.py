"""What the paths of one configuration are made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.records.pathmap import Component, Site
from sgl_graph.analyzer.static.linked import Linked
from sgl_graph.analyzer.static.paths.captured import Captured, Owners
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.fitting import Fitting
from sgl_graph.analyzer.static.paths.parts import owner_of
from sgl_graph.analyzer.static.paths.settings import PhaseSizes
from sgl_graph.analyzer.static.sites.labels import Keys
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.search import SiteSearch


@dataclass(slots=True)
class PathInput:
    """What the paths are made from."""

    search: SiteSearch
    #: Raw site and its record, in the order of the report.
    sites: Sequence[tuple[RawSite, Site]]
    chains: Chains
    keys: Keys
    settings: Mapping[str, Any]
    unconfirmed: frozenset[str]
    #: Phases of which it is not settled whether, or by what, they capture.
    open_phases: frozenset[str]
    buckets: Mapping[str, PhaseSizes]
    #: What this configuration builds, by class.
    components: Sequence[tuple[str, Component]]
    worker: str
    #: Classes that an attribute of a class may hold under this configuration; None: not linked.
    holdings: Mapping[str, Mapping[str, frozenset[str]]] | None = None
    #: Device kinds that a class is made for, and that a primitive can act on.
    devices: Callable[[str], frozenset[str]] = lambda name: frozenset()
    devices_of: Callable[[RawSite], frozenset[str]] = lambda raw: frozenset()
    device: str | None = None
    #: The call graph; None: not linked.
    linked: Linked | None = None
    #: The code of a path, and the components that it comes to; None: not linked.
    captured: Captured | None = None
    owners: Owners | None = None
    #: What the draft's model lacks; None: not linked.
    fitting: Fitting | None = None
    #: By class of the receiver and function: texts that executions pass for a parameter (`Linked.arguments`).
    arguments: Mapping[tuple[str, str], Mapping[str, frozenset[str | None]]] = field(default_factory=dict)
    #: By class of the receiver, function and class: the same of the fields of records that it makes (`Linked.made`).
    made: Mapping[tuple[str, str, str], Mapping[str, frozenset[str | None]]] = field(default_factory=dict)

    def fits(self, table: str, raw: RawSite) -> bool:
        """Whether a primitive can act on the device of the configuration, as its table can; HIP's graphs are torch.cuda's."""
        used = {"hip": "cuda"}.get(self.device or "", self.device)
        made_for = self.devices(table)
        if used is None or (made_for and used not in made_for):
            return True  # not this table's device: the claim is the weakest of all its primitives
        kinds = self.devices_of(raw)
        return not kinds or bool(kinds & {used, "any", "host"})

    def launching(self, sites: Sequence[tuple[RawSite, Site]]) -> list[tuple[RawSite, Site]]:
        """What the segments of containers are launched by where that is code of the checkout, and no call of torch's own."""
        containers = self.search.owners.containers
        replays = [(raw, site) for raw, site in self.sites if site.role == "replay" and site.reachable != "no"]
        pending = [raw for raw, site in sites if (raw, site) in replays and owner_of(raw) in containers]
        found: list[tuple[RawSite, Site]] = []
        while pending:  # a segment may hand on to what all of them share
            functions = self.chains.led_to(pending.pop())
            further = [(raw, site) for raw, site in replays if raw.scope.name in functions and (raw, site) not in found]
            found += further
            pending += [raw for raw, _ in further]
        return found
