"""Every device-graph primitive of a checkout, found by what the code does; independent of any configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.checkout.textindex import TextIndex
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites import breaks, compiled, deciders, entries, pools, preallocations
from sgl_graph.analyzer.static.sites.callees import leaves, may_lead_to
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import CAPTURES, REPLAYS, Owners, is_own_call, outermost
from sgl_graph.analyzer.static.sites.primitives import GRAPH_METHODS, UNMISTAKABLE, Api, api_of, is_graph
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import last_name

#: Modules are found by names that those found before make known.
_ROUNDS = 3
_NAMES = {
    "graph", "graph_pool_handle", "make_graphed_callables", "MemPool", "use_mem_pool", "cuda_graph", "region",
    "get_npu_backend", *GRAPH_METHODS,
}  # fmt: skip
_CUDA_NAME = re.compile(r"(?:cuda|cu|hip)(?:Graph[A-Z]|Stream(?:Begin|End)Capture)")


class _ApiNames(set[str]):
    """Names under which a graph interface may be called."""

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        return super().__contains__(name) or name.endswith("Graph") or _CUDA_NAME.match(name) is not None


API_NAMES = _ApiNames(_NAMES)


@dataclass(slots=True)
class SiteSearch:
    """What the search found, for the modules that come after it."""

    types: GraphTypes
    owners: Owners
    sites: list[RawSite]


def find_sites(project: Project, index: TextIndex | None = None) -> SiteSearch:
    """All graph primitives in the serving package, sorted by file and line.

    Args:
        index: of the package's texts, where there is one already.
    """
    index = index or TextIndex(project)
    types = GraphTypes(project, index.first())
    found = _direct(types)
    owners = Owners(types, _effects(found))
    for _ in range(_ROUNDS):
        more = index.mentioning(_outside_names(types, owners))
        if not more:
            break
        types.extend(more)
        owners = Owners(types, _effects(found))
    found += _owner_sites(types, owners)
    types.extend(index.mentioning(pools.givers(types, found)))
    types.extend(index.mentioning(pools.takers(types, found)))
    found += pools.find(types, found)
    types.extend(index.mentioning(profile.SPLIT_REGISTRARS | profile.SPLIT_LISTS))
    types.extend(index.mentioning(breaks.listed_operators(types)))
    found += breaks.find(types, owners, found)
    found += compiled.find(types, _indexed(types))
    found += entries.find(types, owners, found, index.mentioning)
    found += deciders.find(types, owners, found, index.mentioning)
    types.extend(index.matching(preallocations.HEADER))
    index.release()
    found += preallocations.find(types)
    return SiteSearch(types, owners, _unique(found))


def _outside_names(types: GraphTypes, owners: Owners) -> set[str]:
    """Names by which other modules get at graph-owning classes and split functions."""
    classes = {*owners.containers, *owners.contexts}
    for level in (owners.tables, owners.runners, owners.composites):
        classes |= set(level.effects)
    names = {_short(name) for name in classes}
    return names | _makers(types, {_short(name) for name in owners.tables.effects}) | set(breaks.splitters(owners))


def _makers(types: GraphTypes, names: set[str]) -> set[str]:
    """Functions that make an instance of one of the classes: whoever calls one need not name the class."""
    return {
        scope.qualname
        for scope in types.scopes.values()
        if scope.kind == "function"
        and "." not in scope.qualname
        and scope.returns
        and any(last_name(call.expression[1]) in names for call in scope.calls)
    }


def _short(name: str) -> str:
    return name.rsplit(":", 1)[-1].rsplit(".", 1)[-1]


# -- graph interfaces called directly


def _direct(types: GraphTypes) -> list[RawSite]:
    found: list[RawSite] = []
    for scope in _indexed(types):
        touched = False
        for call in scope.calls:
            sites = _api_sites(types, scope, call)
            found += sites
            touched = touched or bool(sites)
        if touched:
            found += _contexts_given_a_graph(types, scope, found)
            found += _chosen(types, scope)
    return found


def _chosen(types: GraphTypes, scope: Scope) -> list[RawSite]:
    """Where a graph class, or a capture context, is bound to a local that is called later."""
    found = []
    for target, value, line, _ in scope.assignments:
        if target[0] != "n" or value[0] not in ("a", "i", "bo"):
            continue
        if not any(last_name(leaf) in API_NAMES for leaf in leaves(value)):
            continue
        apis = [api for tag in types.evaluate(scope, value) if (api := api_of(tag)) is not None]
        for form, role in (("constructor", "capture"), ("context", "dispatch")):
            devices = frozenset(api.device for api in apis if api.form == form)
            if devices:
                found.append(RawSite(scope, line, role, "chosen", render(value), devices))
    return found


def _indexed(types: GraphTypes) -> list[Scope]:
    wanted = set(types.indexed)
    return [scope for scope in types.scopes.values() if scope.module.name in wanted]


def _api_sites(types: GraphTypes, scope: Scope, call: CallFact) -> list[RawSite]:
    callee = call.expression[1]
    name = last_name(callee)
    if name == "partial" and call.expression[2]:
        return _handed_out(types, scope, call, call.expression[2][0])
    found = [
        site
        for argument in call.expression[2]
        if argument[0] == "a" and argument[2] in GRAPH_METHODS
        for site in _handed_out(types, scope, call, argument)
    ]
    if not may_lead_to(scope, callee, API_NAMES):
        return found
    tags = types.evaluate(scope, callee)
    apis = _apis(types, tags)
    if not apis and name in UNMISTAKABLE and not any(tag.startswith(("func:", "class:")) for tag in tags):
        apis = [Api(UNMISTAKABLE[name], "handle" if name == "graph_pool_handle" else name, "any")]
    return found + _group(scope, call, apis)


def _apis(types: GraphTypes, tags: Iterable[str]) -> list[Api]:
    apis = []
    for tag in sorted(tags):
        api = api_of(tag)
        if api is None and tag.startswith("func:"):
            # A function of the checkout that hands out a library's context: an adapter.
            target = types.scopes.get(tag[5:])
            made = types.returns(target) if target is not None and tag.endswith((".cuda_graph", ".region")) else ()
            api = next((a for t in sorted(made) if (a := api_of(t.removesuffix("()"))) is not None), None)
        if api is not None and api.form != "memory-pool":
            apis.append(api)
    return apis


def _handed_out(types: GraphTypes, scope: Scope, call: CallFact, value: Expression) -> list[RawSite]:
    """A graph method or context that is passed on instead of called."""
    name = last_name(value)
    if name is None or name not in API_NAMES:
        return []
    apis = _apis(types, types.evaluate(scope, value))
    return _group(scope, call, [api for api in apis if api.form != "saver-region"])


def _group(scope: Scope, call: CallFact, apis: list[Api]) -> list[RawSite]:
    """One site a role; what may differ between the alternatives is kept."""
    found = []
    for role in sorted({api.role for api in apis}):
        alike = [api for api in apis if api.role == role and api.form != "saver-region"]
        if alike:
            plain = [api for api in alike if api.form != "saver-context"]
            found.append(
                RawSite(
                    scope=scope,
                    line=call.line,
                    role=role,
                    form=(plain or alike)[0].form,
                    api=render(call.expression[1]),
                    devices=frozenset(api.device for api in alike),
                    forms=frozenset(api.form for api in alike),
                    call=call,
                )
            )
    return found


def _contexts_given_a_graph(types: GraphTypes, scope: Scope, known: list[RawSite]) -> list[RawSite]:
    """Entering anything that is handed a graph object captures into it."""
    lines = {site.line for site in known if site.scope is scope and site.role == "capture"}
    found = []
    for call in scope.calls:
        if not call.entered or call.line in lines:
            continue
        devices = set()
        for argument in call.expression[2]:
            value = argument[2] if argument[0] == "k" else argument
            devices |= {device for tag in types.evaluate(scope, value) if (device := is_graph(tag)) is not None}
        if devices:
            found.append(
                RawSite(
                    scope, call.line, "capture", "context", render(call.expression[1]), frozenset(devices), call=call
                )
            )
    return found


def _effects(sites: Iterable[RawSite]) -> dict[str, set[str]]:
    """What each function does to graphs, by the direct sites in it."""
    effects: dict[str, set[str]] = {}
    for site in sites:
        if (
            site.role in ("capture", "replay")
            and site.form not in ("instantiate", "compiler", "chosen")
            and not _passing(site)
        ):
            effect = CAPTURES if site.role == "capture" else REPLAYS
            effects.setdefault(outermost(site.scope).name, set()).add(effect)
    return effects


def _passing(site: RawSite) -> bool:
    """Whether a replay is of a graph that the same function has just made and keeps nowhere."""
    if site.role != "replay" or site.call is None or site.call.expression[1][0] != "a":
        return False
    receiver = site.call.expression[1][1]
    bindings = site.scope.bindings.get(receiver[1], []) if receiver[0] == "n" else []
    if not bindings or not all(b.kind == "value" and b.expression[0] == "c" for b in bindings):
        return False
    kept = any(value == receiver for _, value, _, _ in site.scope.assignments) or any(
        value == receiver for value, _ in site.scope.returns
    )
    made_here = all((last_name(b.expression) or "").endswith("Graph") for b in bindings)
    return made_here and not kept


# -- calls on graph-owning classes


def _owner_sites(types: GraphTypes, owners: Owners) -> list[RawSite]:
    found: list[RawSite] = []
    sessions = _sessions(types, owners)
    owners.watch(sessions)
    for scope in list(types.scopes.values()):
        if scope.name in sessions and not any(last_name(d) == "abstractmethod" for d in scope.decorators):
            found.append(RawSite(scope, scope.line, "capture", "session", scope.name.rsplit(".", 1)[-1], NO_DEVICES))
        for call, tags in owners.resolved(scope):
            site = _owner_site(types, owners, sessions, scope, call, tags)
            if site is not None:
                found.append(site)
        found += _stores(types, owners, scope)
    return found


NO_DEVICES: frozenset[str] = frozenset()


def _owner_site(
    types: GraphTypes, owners: Owners, sessions: set[str], scope: Scope, call: CallFact, tags: frozenset[str]
) -> RawSite | None:
    text = render(call.expression[1])
    classes = {tag[6:] for tag in tags if tag.startswith("class:")}
    functions = sorted(tag[5:] for tag in tags if tag.startswith("func:"))
    own = is_own_call(scope, call)

    def site(role: str, form: str, targets: Iterable[str]) -> RawSite:
        return RawSite(scope, call.line, role, form, text, NO_DEVICES, targets=tuple(sorted(targets)), call=call)

    if classes & owners.proxies:
        return site("update", "proxy", classes & owners.proxies)
    if any(owners.makes_proxies(name) for name in functions) and not own:
        return site("update", "register", functions)
    if classes & owners.contexts:
        return site("capture", "container-context", classes & owners.contexts)
    if classes & owners.containers:
        return site("capture", "container", classes & owners.containers)
    building = {
        name
        for name in classes
        if CAPTURES in (owners.runners.of(name, "__init__") or owners.tables.of(name, "__init__"))
    }
    if building:
        several = len(classes) > 1 or call.expression[1][0] != "n"
        return site("capture", "runner-chosen" if several else "runner", classes)
    if call.entered and set(functions) & sessions:
        return site("capture", "session", functions)
    if any(owners.is_container_replay(name) for name in functions) and not own:
        return site("replay", "container-replay", functions)
    for effects_of, form in ((owners.table_effects, "table"), (owners.runner_effects, "runner")):
        effects = frozenset().union(*(effects_of(name) for name in functions)) if functions else frozenset()
        if not effects:
            continue
        if own:
            # Inside a table, the step from its public method to the one that replays.
            inside = form == "table" and REPLAYS in effects and CAPTURES not in effects and _replaying(owners, scope)
            return site("replay", "own-replay", functions) if inside else None
        if call.entered and form == "table":
            return None
        if effects == {REPLAYS}:
            return site("replay", f"{form}-replay", functions)
        if effects == {CAPTURES}:
            return site("capture", f"{form}-capture", functions)
        return site("dispatch", f"{form}-run", functions)
    return None


def _replaying(owners: Owners, scope: Scope) -> bool:
    """Whether the calling method is itself one that replays a table's graphs."""
    holder = outermost(scope)
    return holder.function is not None and REPLAYS in owners.tables.of(holder.owner or "", holder.function.name)


def _sessions(types: GraphTypes, owners: Owners) -> set[str]:
    """Methods of tables that are entered around a whole series of captures: they bind a pool or a stream for it."""
    names = {
        name
        for table in owners.tables.effects
        for name, method in types.methods(table).items()
        if any(last_name(d) == "contextmanager" for d in method.decorators) and _binds_and_clears(method)
    }
    return {
        method.name
        for table in owners.tables.effects
        for owner in types.mro(table)
        for name, method in types.methods(owner).items()
        if name in names
    }


def _binds_and_clears(method: Scope) -> bool:
    """A context manager that keeps something on its object while it is entered, and its parameter at that."""
    parameters = {p.name for p in method.function.parameters[1:]} if method.function is not None else set()
    return any(value[0] == "n" and value[1] in parameters for _, value, _, _ in method.assignments)


def _stores(types: GraphTypes, owners: Owners, scope: Scope) -> list[RawSite]:
    """Where a captured graph is filed under its key."""
    found = []
    for target, value, line, _ in scope.assignments:
        if target[0] != "s" or value[0] in ("v", "x", "L", "d"):
            continue
        tags = types.evaluate(scope, value) if _may_be_graph(scope, value, owners) else frozenset()
        graphs = {tag for tag in tags if is_graph(tag) or (tag.startswith("obj:") and tag[4:] in owners.containers)}
        if graphs:
            found.append(
                RawSite(scope, line, "dispatch", "store", render(target), NO_DEVICES, key=target, targets=tuple(graphs))
            )
    return found


def _may_be_graph(scope: Scope, value: Expression, owners: Owners) -> bool:
    return "graph" in (last_name(value) or "").lower() or may_lead_to(scope, value, API_NAMES)


def _unique(sites: list[RawSite]) -> list[RawSite]:
    """One site a line, role and scope; the most telling form wins."""
    best: dict[tuple[str, int, str, str], RawSite] = {}
    for site in sites:
        key = (site.scope.module.path, site.line, site.scope.name, site.role)
        other = best.get(key)
        if other is None:
            best[key] = site
        elif other.form != site.form:
            best[key] = replace(
                other, devices=other.devices | site.devices, forms=other.forms | site.forms | {site.form}
            )
    return sorted(best.values(), key=lambda s: (s.scope.module.path, s.line, s.role, s.form))
