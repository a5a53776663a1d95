"""Puts the map together: primitives, reach, classes, paths, labels, traffic and gaps of one configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from sgl_graph.analyzer.records import pathmap as records
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project, headers_in
from sgl_graph.analyzer.static.config.model_classes import model_classes
from sgl_graph.analyzer.static.config.protocol import Configuration
from sgl_graph.analyzer.static.linked import Case, Linked
from sgl_graph.analyzer.static.paths.captured import Captured, Owners
from sgl_graph.analyzer.static.paths.certainty import without_model
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.components import components_of
from sgl_graph.analyzer.static.paths.deaths import deaths, refusals
from sgl_graph.analyzer.static.paths.finder import PathFinder
from sgl_graph.analyzer.static.paths.fitting import Fitting
from sgl_graph.analyzer.static.paths.gaps import gaps_of
from sgl_graph.analyzer.static.paths.inputs import PathInput
from sgl_graph.analyzer.static.paths.parts import PHASES
from sgl_graph.analyzer.static.paths.reach import Reachability, Reached
from sgl_graph.analyzer.static.paths.settings import Settings
from sgl_graph.analyzer.static.paths.splits import settled_splits
from sgl_graph.analyzer.static.paths.topology import missing_entry, worker_entries, workers
from sgl_graph.analyzer.static.paths.traffic import either_way, labels_of, traffic_for
from sgl_graph.analyzer.static.paths.unread import cut_short, lost_of, problems_of, unread_by
from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings
from sgl_graph.analyzer.static.sites.families import family_of_site
from sgl_graph.analyzer.static.sites.labels import Keys
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.search import SiteSearch, find_sites

#: Links from entry functions; asks at its end for the classes whose objects capture.
Linker = Callable[[Sequence[str], Callable[[], frozenset[str]]], Linked]


@dataclass(frozen=True, slots=True)
class Request:
    """What a map is asked for.

    Attributes:
        identity: which source it is.
        command: the serving command, without assignments.
        env: variables given with the command.
        model_known: whether a model configuration was found.
        budget: most requests that the traffic may hold.
    """

    identity: records.CheckoutIdentity
    command: tuple[str, ...]
    env: Mapping[str, str]
    device: records.DeviceFacts
    model_known: bool = False
    budget: int | None = None


@dataclass(slots=True)
class Parts:
    """What the analysis yields before it becomes records; tests look inside."""

    search: SiteSearch
    linked: Linked | None
    sites: list[tuple[RawSite, records.Site]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Given:
    """What every answer about one configuration stands on, however its open tests fall."""

    search: SiteSearch
    classifier: Classifier
    entries: Sequence[str]
    settings: Settings
    unread: Sequence[str]
    missing: str
    device: str | None
    #: Names of the classes of the target's model (False) and of the draft's (True).
    models: Mapping[bool, str]

    def answers(self, linked: Linked | None) -> tuple[Reachability | None, list[Reached]]:
        """Whether each primitive is reached."""
        search, settings = self.search, self.settings
        reach = None
        if linked is not None:
            reach = Reachability(linked, self.entries, search.owners.on_demand(), self.unread)
        found = [_reached(reach, settings.starts, raw, self.missing) for raw in search.sites]
        if reach is not None:
            found = settled_splits(search.sites, reach.settled_entries(search.sites, found))
        return reach, [_in_open_phase(raw, answer, settings) for raw, answer in zip(search.sites, found, strict=True)]

    def records(self, reached: Sequence[Reached], linked: Linked | None) -> list[tuple[RawSite, records.Site]]:
        """The primitives with their answers and classes."""
        sites = self.search.sites
        saver = any(r.form == "saver-context" and a.reachable != "no" for r, a in zip(sites, reached, strict=True))
        around = Surroundings(device=self.device, saver_active=saver and linked is not None)
        return site_records(self.search, self.classifier, reached, around)


def build(
    project: Project,
    request: Request,
    configuration: Configuration | None,
    linker: Linker | None,
    *,
    searched: Callable[[], SiteSearch] | None = None,
    on_step: Callable[[str], None] = lambda text: None,
) -> tuple[records.PathMap, Parts]:
    """The map of one configuration.

    Args:
        project: the checkout.
        configuration: the resolved launch; None: nothing of it is known.
        linker: links the checkout from the entry functions it is given; None: nothing is known to be reachable.
        searched: waits for the primitives of the checkout where they are being looked for already; it is asked last.
        on_step: told what is being done.
    """
    settings = Settings(configuration)

    @cache
    def found_sites() -> SiteSearch:
        on_step("looking for graph primitives")
        return find_sites(project) if searched is None else searched()

    linked = None
    entries = [name for _, name in worker_entries(project) if _runs_here(name, settings)]
    missing = "" if entries else missing_entry(project, encoder=_encoder(settings))
    if linker is not None and settings.starts.value != "no" and not missing:
        on_step("linking from the worker's entry")
        linked = linker(entries, lambda: found_sites().owners.capturing())
        if not request.model_known:
            linked.reached = without_model(linked)
    search = found_sites()
    unread = unread_by(project, linked)
    on_step("classifying")
    classifier = Classifier(search.owners, search.sites)
    given = _Given(
        search, classifier, entries, settings, unread, missing, request.device.kind, model_classes(configuration)
    )
    reach, reached = given.answers(linked)
    parts = Parts(search, linked, given.records(reached, linked))
    processes = workers(project, settings.values, linked.reached if linked is not None else ())
    found: tuple[tuple[str, records.Component], ...] = ()
    if linked is not None and reach is not None:
        found = components_of(project, linked, reach, ranks=processes[0].count if processes else None)
    paths = _paths(given, linked, parts.sites, reach, found, processes)
    if settings.starts.value == "no":
        paths = ()
    labels = labels_of(paths)
    # What a case makes certain is so for a model that is known: without it, one of many classes runs on the way.
    if linked is not None and request.model_known and any(path.reachable == "unresolved" for path in paths):
        labels = either_way(
            paths, labels, [[_labels_in(given, linked, c, found, processes) for c in pair] for pair in linked.cases]
        )
    traffic = traffic_for(paths, labels, request.budget, settings.adapters)
    sites = tuple(site for _, site in parts.sites)
    problems = problems_of(project, linked)
    lost = lost_of(project, unread, problems)
    return (
        records.PathMap(
            checkout=request.identity,
            command=request.command,
            env=dict(request.env),
            device=request.device,
            starts=settings.starts,
            config=settings.entries,
            workers=processes,
            sites=sites,
            paths=paths,
            unresolved=settings.unresolved,
            gaps=gaps_of(
                starts=settings.starts,
                device=request.device,
                model_known=request.model_known,
                workers=processes,
                sites=sites,
                paths=paths,
                unresolved=settings.unresolved,
                labels=labels,
                traffic=traffic,
                problems=problems,
                cut_short=cut_short(linked, problems),
                lost=lost,
                missing=missing,
                dying=(
                    *deaths(search, configuration, paths),
                    *refusals(linked, reach, Chains(linked, reach, entries), parts.sites),
                ),
                adapters=settings.serves_adapters,
            ),
            labels=labels,
            traffic=traffic,
            problems=problems,
            stats=records.Stats(
                functions_reached=_functions_reached(linked),
                functions_total=_functions_total(project),
            ),
        ),
        parts,
    )


def _labels_in(
    given: _Given,
    linked: Linked,
    case: Case,
    components: Sequence[tuple[str, records.Component]],
    processes: Sequence[records.WorkerEntry],
) -> tuple[str, ...]:
    """Labels to expect where a test falls one way."""
    decided = case.of(linked)
    reach, reached = given.answers(decided)
    return labels_of(_paths(given, decided, given.records(reached, decided), reach, components, processes))


def _encoder(settings: Settings) -> bool:
    return settings.values.get(profile.ENCODER_FIELD) is True


def _runs_here(entry: str, settings: Settings) -> bool:
    role = next(role for role, name in profile.WORKER_ENTRIES if name == entry)
    return (role == "encoder") == _encoder(settings)


def _reached(reach: Reachability | None, starts: records.Starts, raw: RawSite, missing: str) -> Reached:
    if starts.value == "no":
        return Reached("no", None, f"the server does not start: {starts.why}")
    if reach is None:
        return Reached("unresolved", None, missing or "the checkout was not linked")
    return reach.of_site(raw)


def _in_open_phase(raw: RawSite, answer: Reached, settings: Settings) -> Reached:
    """A capture or replay of a phase of which it is not settled what captures it, if anything, is not certain."""
    phase = PHASES.get(family_of_site(raw))
    if answer.reachable != "yes" or phase not in settings.open_phases or raw.form == "entry":
        return answer
    if raw.role not in ("capture", "replay"):
        return answer
    return replace(answer, reachable="unresolved", why=f"what captures the {phase} phase, if anything, is open")


def site_records(
    search: SiteSearch, classifier: Classifier, reached: Sequence[Reached], around: Surroundings
) -> list[tuple[RawSite, records.Site]]:
    """Primitives as maps list them, each with where it is reached and what can be proved of it."""
    counts: Counter[str] = Counter()
    found = []
    for raw, answer in zip(search.sites, reached, strict=True):
        inspectability, reason = classifier.classify(raw, around)
        module, _, name = raw.scope.public_name.partition(":")
        stem = f"{raw.role}:{module.rpartition('.')[2]}.{name}"
        counts[stem] += 1
        site = records.Site(
            id=stem if counts[stem] == 1 else f"{stem}/{counts[stem]}",
            file=raw.scope.module.path,
            line=raw.line,
            qualname=raw.scope.public_name,
            role=raw.role,  # type: ignore[arg-type]
            api=raw.api,
            family=family_of_site(raw),
            gates=answer.gates,
            reachable=answer.reachable,
            trigger=answer.trigger,
            why=answer.why,
            inspectability=inspectability,
            reason=reason.text,
            reasons=(reason,),
        )
        found.append((raw, site))
    return found


def _paths(
    given: _Given,
    linked: Linked | None,
    sites: list[tuple[RawSite, records.Site]],
    reach: Reachability | None,
    components: Sequence[tuple[str, records.Component]],
    processes: Sequence[records.WorkerEntry],
) -> tuple[records.PathEntry, ...]:
    search, settings, classifier = given.search, given.settings, given.classifier
    holdings = {name: info.attributes for name, info in linked.classes.items()} if linked is not None else None
    captured = Captured(linked, search.types, search.owners.capturing()) if linked is not None else None
    finder = PathFinder(
        PathInput(
            search=search,
            sites=sites,
            chains=Chains(linked, reach, given.entries),
            keys=Keys(search.owners),
            settings=settings.values,
            unconfirmed=settings.unconfirmed,
            open_phases=settings.open_phases,
            buckets={sizes.phase: sizes for sizes in settings.buckets},
            components=components,
            worker=processes[0].role if processes else "scheduler",
            linked=linked,
            captured=captured,
            owners=Owners(linked, [name for name, _ in components]) if linked is not None else None,
            holdings=holdings,
            devices=classifier.devices_of_class,
            devices_of=classifier.devices_of,
            device=given.device,
            arguments=linked.arguments if linked is not None else {},
            made=linked.made if linked is not None else {},
            fitting=Fitting(linked, given.models),
        )
    )
    return finder.find()


def _functions_reached(linked: Linked | None) -> int:
    return sum(not name.endswith("<module>") for name in linked.reached) if linked is not None else 0


def _functions_total(project: Project) -> int:
    """Functions of the serving package, counted by their headers: most modules are never parsed."""
    paths = (path for path in project.sources.paths() if path.startswith("sglang/srt/"))
    project.counted.update((path, headers_in(project.sources.text(path))) for path in paths)
    return sum(project.counted.values())
