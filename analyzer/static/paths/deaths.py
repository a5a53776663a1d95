"""Captures that the source shows to end in an exception: the server dies while it starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sgl_graph.analyzer.records.pathmap import CodeRef, Component, PathEntry, Site
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import module_name
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.protocol import Configuration
from sgl_graph.analyzer.static.config.rehearsal import Failure, Stage, failure_of, failure_of_maker
from sgl_graph.analyzer.static.config.values import Value
from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.link.refusals import catches
from sgl_graph.analyzer.static.linked import Linked, Truth
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.parts import short
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import CAPTURES, outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.search import SiteSearch
from sgl_graph.analyzer.static.sites.tags import last_name


@dataclass(frozen=True, slots=True)
class Death:
    """A capture that raises: who raises what, and where.

    Attributes:
        name: of the path, or of the function whose captures are never come to.
        sites: the primitives that the exception keeps from being executed, or after which it is raised.
    """

    name: str
    sites: tuple[str, ...]
    by: str
    text: str
    file: str
    line: int


def deaths(search: SiteSearch, configuration: Configuration | None, paths: Sequence[PathEntry]) -> tuple[Death, ...]:
    """The captures at start-up that can only raise, at most one for each path."""
    if not isinstance(configuration, ResolvedConfiguration):
        return ()
    found: list[Death] = []
    for path in paths:
        if path.reachable != "yes" or path.trigger != "startup" or path.runner == path.backend:
            continue
        fatal = (
            _of_making(search, configuration, path)
            or next(_of_table(search, configuration, path), None)
            or _of_attention(search, configuration, path)
        )
        if fatal is not None:
            by, failure = fatal
            found.append(Death(path.name, path.sites, by, failure.text, failure.place.file, failure.place.line))
    return tuple(found)


def refusals(
    linked: Linked | None, reach: Reachability | None, chains: Chains, sites: Iterable[tuple[RawSite, Site]]
) -> tuple[Death, ...]:
    """Captures that start-up would begin, had an assertion before them not failed for certain."""
    if linked is None or reach is None:
        return ()
    cut: dict[str, list[str]] = {}
    for raw, site in sites:
        name = outermost(raw.scope).name
        refusal = linked.refused.get(name)
        if refusal is None or site.role != "capture" or site.reachable != "no" or raw.line < refusal.line:
            continue
        if linked.reached.get(name) is Truth.TRUE and reach.trigger(name, "capture") == "startup":
            cut.setdefault(name, []).append(site.id)
    found = []
    for name, ids in sorted(cut.items()):
        refusal = linked.refused[name]
        way = chains.to_function([name])
        if way and not any(_stops(linked, ref) for ref in way[1:-1]):
            text = f"AssertionError: {refusal.text} does not hold"
            found.append(Death(short(name), tuple(ids), short(name), text, refusal.file, refusal.line))
    return tuple(found)


def _stops(linked: Linked, call: CodeRef) -> bool:
    """Whether a call of a function stands in a `try` that goes on where an assertion fails."""
    names = (name for name in linked.reached if name.replace(".<locals>", "") == call.qualname)
    definition = next((d for name in names if (d := linked.definitions.get(name)) is not None), None)
    if definition is None:
        return True
    return any(
        statement[0] == "try" and catches(statement) and statement[1] <= call.line < statement[3][0][3]
        for statement in walk(definition.module.function_body(definition.index))
    )


def _of_making(search: SiteSearch, configuration: ResolvedConfiguration, path: PathEntry) -> tuple[str, Failure] | None:
    """What becomes of making the table, where every function that makes it for the runner raises."""
    for table in [name for name in search.owners.tables.effects if short(name) == path.backend]:
        failures = []
        for maker in _makers(search, path.runner, table):

            def arguments(stage: Stage, of: Scope = maker) -> dict[str, Value]:
                return _required(stage, of, receiver=False)

            failures.append(failure_of_maker(configuration, table, maker.name, arguments))
        settled = [failure for failure in failures if failure is not None]
        if settled and len(settled) == len(failures):
            return path.backend, settled[0]
    return None


def _makers(search: SiteSearch, runner: str, table: str) -> list[Scope]:
    """Functions that a runner's methods call and that make objects of a class."""
    types = search.types
    found: dict[str, Scope] = {}
    for name in [name for name in search.owners.runners.effects if short(name) == runner]:
        for method in (m for ancestor in types.mro(name) for m in types.methods(ancestor).values()):
            for call in method.calls:
                for tag in types.evaluate(method, call.expression[1]):
                    scope = types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                    if scope is None or scope.owner is not None or scope.parent is None or scope.name in found:
                        continue
                    made = (types.evaluate(scope, inner.expression[1]) for inner in scope.calls)
                    if any(f"class:{table}" in tags for tags in made):
                        found[scope.name] = scope
    return [found[name] for name in sorted(found)]


def _of_table(
    search: SiteSearch, configuration: ResolvedConfiguration, path: PathEntry
) -> Iterator[tuple[str, Failure]]:
    """What the table makes of the output of the forward pass that it captures."""
    output = profile.CAPTURED_OUTPUTS.get(path.family)
    tables = search.owners.tables.effects
    for table in [name for name in tables if short(name) == path.backend] if output is not None else ():
        for method, parameter in _capturing(search.types, table, tables[table]):

            def arguments(stage: Stage, forward: str = parameter, others: Scope = method) -> dict[str, Value]:
                given = _required(stage, others)
                return {**given, forward: stage.giving(stage.object(output or ""))}

            name = method.name.rpartition(".")[2]
            failure = failure_of(configuration, table, name, arguments)
            if failure is not None:
                maker = search.types.method(table, "__init__")

                def construction(stage: Stage, of: Scope | None = maker) -> dict[str, Value]:
                    return _required(stage, of) if of is not None else {}

                # The table as its constructor leaves it raises where the first capture does.
                first = failure_of(configuration, table, name, arguments, construction)
                yield path.backend, first or failure


def _capturing(types: GraphTypes, table: str, effects: Mapping[str, frozenset[str]]) -> Iterator[tuple[Scope, str]]:
    """Methods that capture what a parameter of theirs does, with the parameter."""
    for name, effect in sorted(effects.items()):
        method = types.method(table, name) if CAPTURES in effect else None
        if method is None or method.function is None:
            continue
        called = {call.expression[1][1] for call in method.calls if call.expression[1][0] == "n"}
        for parameter in method.function.parameters[1:]:
            if parameter.name in called and parameter.default is None:
                yield method, parameter.name
                break


def _required(stage: Stage, method: Scope, *, receiver: bool = True) -> dict[str, Value]:
    """Unknown values for the parameters without a default, but for the receiver."""
    assert method.function is not None
    return {
        parameter.name: stage.unknown()
        for parameter in method.function.parameters[receiver:]
        if parameter.default is None and parameter.kind not in ("*", "**")
    }


def _of_attention(
    search: SiteSearch, configuration: ResolvedConfiguration, path: PathEntry
) -> tuple[str, Failure] | None:
    """What the attention backend makes of a batch in the path's mode; only where every backend in question raises."""
    mode = profile.CAPTURED_MODES.get(path.family)
    backends = [c for c in path.components if c.kind == "attention" and c.reachable != "no"]
    if mode is None or not backends or not _asks_for_metadata(search, path.runner):
        return None

    def arguments(stage: Stage) -> dict[str, Value]:
        member = stage.member(profile.FORWARD_MODE_CLASS, mode)
        batch = stage.object(profile.FORWARD_BATCH_CLASS, {profile.FORWARD_MODE_ATTRIBUTE: member})
        return {profile.METADATA_BATCH: batch, profile.METADATA_CAPTURING: True}

    failures = [
        (backend.class_, failure_of(configuration, _qualname(backend), profile.METADATA_FUNCTION, arguments))
        for backend in backends
    ]
    settled = [(name, failure) for name, failure in failures if failure is not None]
    return settled[0] if len(settled) == len(failures) else None


def _asks_for_metadata(search: SiteSearch, runner: str) -> bool:
    """Whether the runner prepares its captures by the attention backend's function."""
    for name in search.owners.runners.effects:
        if short(name) == runner:
            for ancestor in search.types.mro(name):
                for method in search.types.methods(ancestor).values():
                    if any(last_name(call.expression[1]) == profile.METADATA_FUNCTION for call in method.calls):
                        return True
    return False


def _qualname(component: Component) -> str:
    return f"{module_name(component.file)[0]}:{component.class_}"
