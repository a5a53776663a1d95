"""What an outside observer can prove about each primitive, with the reason; never more than the source shows."""

from __future__ import annotations

from dataclasses import dataclass

from sgl_graph.analyzer.records.pathmap import Inspectability, Reason
from sgl_graph.analyzer.static.sites.devices import DeviceKinds
from sgl_graph.analyzer.static.sites.owners import Owners
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.tags import enclosing_method

LIFETIME: Inspectability = "lifetime-inspectable"
REPLAY_ONLY: Inspectability = "replay-observable-only"
PARTIAL: Inspectability = "partial"
UNSUPPORTED: Inspectability = "unsupported"
UNRESOLVED: Inspectability = "unresolved"

#: Weakest claim last: a whole is no better than its weakest part.
ORDER: tuple[Inspectability, ...] = (LIFETIME, PARTIAL, REPLAY_ONLY, UNRESOLVED, UNSUPPORTED)

_SEGMENTED = {"container", "container-context", "container-replay"}
_BREAKS = {"segment-end", "break-record", "break-point", "split-operator", "split-call"}
_CUDA = {"cuda", "any"}
_FILING = {"store", "dropped", "eligibility"}
_CHOOSING = {"factory", "chosen-by", "class-table", "alternatives", "picked"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a configuration adds: the device kind in use (None: unknown), and whether saver contexts are in force."""

    device: str | None = None
    saver_active: bool = False


def weakest(classes: list[Inspectability]) -> Inspectability:
    """The class of something made of parts."""
    return max(classes, key=ORDER.index, default=UNRESOLVED)


class Classifier:
    """Classifies the primitives of one search."""

    def __init__(self, owners: Owners, sites: list[RawSite]) -> None:
        self._owners = owners
        self._devices = DeviceKinds(owners, sites)
        #: Classes whose replay goes through executables of their own.
        self._executables = {
            method.owner
            for site in sites
            if site.form in ("exec", "exec-launch")
            and (method := enclosing_method(site.scope)) is not None
            and method.owner is not None
        }
        self._segmented = self._classes_with(sites, _SEGMENTED)

    def _classes_with(self, sites: list[RawSite], forms: set[str]) -> set[str]:
        found = set()
        for site in sites:
            method = enclosing_method(site.scope)
            if site.form in forms and method is not None and method.owner in self._owners.tables:
                found.add(method.owner or "")
        return found

    def devices_of(self, site: RawSite) -> frozenset[str]:
        """Device kinds for which the site can act."""
        return self._devices.of_site(site)

    def devices_of_class(self, name: str) -> frozenset[str]:
        """Device kinds that a class is made for; nothing when nothing says so."""
        return self._devices.of_class(name)

    def classify(self, site: RawSite, around: Surroundings | None = None) -> tuple[Inspectability, Reason]:
        """Class of one site and the reason for it."""
        around = around or Surroundings()
        found, code, text = self._decide(site, around)
        return found, Reason(text=text, code=code, file=site.scope.module.path, line=site.line)

    def _decide(self, site: RawSite, around: Surroundings) -> tuple[Inspectability, str, str]:
        kinds = self._devices.of_site(site)
        if kinds and not kinds & _CUDA:
            names = ", ".join(sorted(kinds)).replace("host", "a compiled callable")
            return UNSUPPORTED, "SGG006", f"the graph belongs to {names}: no hook reads it"
        if site.form in ("compiled", "compiler"):
            return UNSUPPORTED, "SGG006", "a compiled callable stands in for a graph: there is no device graph to read"
        if site.form == "captured-hook":
            return UNRESOLVED, "SGG007", "callables registered elsewhere run inside the captured body"
        if site.form in ("body", "rebound", "mode"):
            return (
                UNRESOLVED,
                "SGG007",
                "what is captured, or decides about it, is given, put or turned here when it runs",
            )
        if site.form == "sizes":
            return (
                UNRESOLVED,
                "SGG012",
                "how many graphs there are, and of which sizes, comes out when the server starts",
            )
        if site.form in _CHOOSING:
            return UNRESOLVED, "SGG008", "which class captures is decided here, or by what it calls, when it runs"
        if site.form == "replaced":
            return (
                PARTIAL,
                "SGG014",
                "the device library does here, while capturing, what the checkout has put in its place",
            )
        if site.form == "ended" and any(self._out_of_sight(name) for name in site.targets):
            return PARTIAL, "SGG014", "graphs end here of which some are segments, or executables behind torch's back"
        if site.form == "runner-chosen":
            return UNRESOLVED, "SGG008", "the class that captures is taken from a table or a plugin"
        if (
            site.form == "saver-region"
            or (site.form == "saver-context")
            or ("saver-context" in site.forms and around.saver_active)
        ):
            return PARTIAL, "SGG004", "memory under the memory saver: pages are swapped outside the caching allocator"
        if site.form in ("second-allocator", "pool-drop"):
            return PARTIAL, "SGG009", "blocks of the graph pool get a second owner, or the pool is dropped"
        if site.form == "eager-between":
            return UNSUPPORTED, "SGG003", "eager code between segments: its kernels are in no graph"
        if site.form in _BREAKS:
            return (
                PARTIAL,
                "SGG003",
                "a split point: what runs here is eager at each replay, inputs are kept by weak reference",
            )
        if self._behind_torch(site):
            return PARTIAL, "SGG005", "the executable is made, updated or launched through cuda-python"
        if site.form in _SEGMENTED or self._is_segmented(site):
            return PARTIAL, "SGG002", "one logical replay is several segments with eager code in between"
        return self._plain(site, kinds, around)

    def _plain(self, site: RawSite, kinds: frozenset[str], around: Surroundings) -> tuple[Inspectability, str, str]:
        if around.device == "hip":
            return REPLAY_ONLY, "SGG010", "the replay can be intercepted; graph nodes cannot be read on this device"
        if around.device is not None and around.device not in ("cuda", "hip"):
            if kinds and not kinds & {around.device, "any"}:
                return (
                    UNSUPPORTED,
                    "SGG006",
                    f"made for {', '.join(sorted(kinds))}: no hook reads what {around.device} has instead",
                )
            return UNSUPPORTED, "SGG006", f"under {around.device} this leads to graphs that no hook reads"
        if site.form == "preallocation":
            return LIFETIME, "SGG013", "made before the capture, outside its pool, by torch's own allocator"
        if site.form == "entry":
            return LIFETIME, "SGG011", "the captures that it leads to can be intercepted one by one"
        if site.form in ("dropped", "ended"):
            return LIFETIME, "SGG014", "graphs end here: their objects are let go of, as torch's own"
        if site.form == "rearmed":
            return (
                LIFETIME,
                "SGG014",
                "the event outlives captures: recorded in one, it is a node that each replay arms anew, and that can be read",
            )
        if site.role == "dispatch":
            return LIFETIME, "SGG012", "a choice in Python: it is seen through the captures and replays it leads to"
        return LIFETIME, "SGG001", "a plain graph object: capture and replay are Python calls, memory is torch's own"

    def _out_of_sight(self, function: str) -> bool:
        owner = self._types_owner(function)
        return owner in self._segmented or owner in self._executables

    def _behind_torch(self, site: RawSite) -> bool:
        if site.form in ("exec", "exec-launch", "stream-capture", "node-by-node"):
            return True
        method = enclosing_method(site.scope)
        if method is not None and method.owner in self._executables:
            return True
        owners = [self._types_owner(name) for name in site.targets]
        return bool(owners) and all(owner in self._executables for owner in owners)

    def _is_segmented(self, site: RawSite) -> bool:
        """Whether a call, or a method, belongs to a table of segmented graphs alone."""
        method = enclosing_method(site.scope)
        if site.form in _FILING and method is not None:
            return method.owner in self._segmented
        if site.form == "session" and site.call is None and method is not None:
            return method.owner in self._segmented
        if site.form not in ("table-replay", "table-capture", "table-run", "session"):
            return False
        owners = [owner for name in site.targets if (owner := self._types_owner(name)) is not None]
        concrete = [owner for owner in owners if owner in self._owners.tables]
        return bool(concrete) and all(owner in self._segmented for owner in concrete)

    def _types_owner(self, name: str) -> str | None:
        scope = self._owners.types.scopes.get(name)
        if scope is None:
            return None
        return scope.name if scope.kind == "class" else scope.owner
