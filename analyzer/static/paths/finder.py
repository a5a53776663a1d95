"""The capture paths of one configuration: who captures what into which table, along which calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sgl_graph.analyzer.records.pathmap import (
    CodeRef,
    Component,
    Family,
    Inspectability,
    PathEntry,
    Reach,
    Reason,
    Site,
    Trigger,
)
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.paths.inputs import PathInput
from sgl_graph.analyzer.static.paths.labels import PathLabels
from sgl_graph.analyzer.static.paths.nesting import Part, parents
from sgl_graph.analyzer.static.paths.parts import PHASES, has_own_pool, owner_of, short, strongest, worse
from sgl_graph.analyzer.static.paths.unseen import with_unseen
from sgl_graph.analyzer.static.sites.classify import weakest
from sgl_graph.analyzer.static.sites.families import family_of_name, is_draft
from sgl_graph.analyzer.static.sites.owners import CAPTURES, outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.tags import class_tags, enclosing_method

_CORE = ("capture", "replay", "pool", "break", "update")


#: Forms of primitives that take nothing from what is known of a path: they choose, begin or lead to what others tell, or end
#: graphs, of this table or of another.
_UNTELLING = {
    "captured-hook", "runner-chosen", "entry", "session", "table-capture", "table-replay", "ended", "dropped",
}  # fmt: skip


class PathFinder:
    """Makes one path a (family, role, runner, table)."""

    def __init__(self, given: PathInput) -> None:
        self._in = given
        self._owners = given.search.owners
        self._types = given.search.types
        self._by_class: dict[str, list[tuple[RawSite, Site]]] = {}
        self._constructions: dict[str, list[tuple[RawSite, Site]]] = {}
        self._labels = PathLabels(given)
        self._entered: dict[str, Part] = {}
        for raw, site in given.sites:
            owner = owner_of(raw)
            if owner is not None:
                self._by_class.setdefault(owner, []).append((raw, site))
            if raw.form in ("runner", "runner-chosen"):
                for name in raw.targets:
                    self._constructions.setdefault(name, []).append((raw, site))

    def find(self) -> tuple[PathEntry, ...]:
        """All paths, sorted by name."""
        found: list[PathEntry] = []
        used: set[str] = set()
        without: list[str] = []
        for runner in sorted(self._owners.runners.effects):
            if not self._capturing(runner):
                continue
            tables = self._tables_of(runner)
            if not tables:
                without.append(runner)
            used |= set(tables)
            found += [self._runner_path(runner, table, draft) for table in tables for draft in self._sides(runner)]
        for table in sorted(self._owners.tables.effects.keys() - used):
            if self._capturing_table(table):
                made = () if is_draft(table) else self._in.chains.sides(table)
                found += [self._table_path(table, without, draft) for draft in made or [is_draft(table)]]
        found = [path for path in [*found, *self._loose_paths()] if path.reachable != "no"]
        found = with_unseen(found, [component for _, component in self._in.components], frozenset(self._in.unconfirmed))
        around = parents(self._in, [self._entered[path.id] for path in found])
        found = [path.model_copy(update={"nested_in": around.get(path.id)}) for path in found]
        return tuple(sorted(found, key=lambda p: (p.name, p.runner, p.backend, p.id)))

    # -- runners on tables

    def _capturing(self, runner: str) -> bool:
        return any(CAPTURES in effects for effects in self._owners.runners.effects[runner].values())

    def _capturing_table(self, table: str) -> bool:
        return any(CAPTURES in effects for effects in self._owners.tables.effects[table].values())

    def _tables_of(self, runner: str) -> list[str]:
        """Tables that the runner's calls may land in, narrowed by what its attribute holds in this configuration."""
        found: set[str] = set()
        attributes: set[str] = set()
        captures: list[RawSite] = []
        for ancestor in self._types.mro(runner):
            for raw, _ in self._by_class.get(ancestor, ()):
                if raw.form not in ("table-capture", "session") or raw.call is None:
                    continue
                if raw.form == "table-capture" and self._runs_for(runner, raw):
                    captures.append(raw)
                callee = raw.call.expression[1]
                if callee[0] != "a":
                    continue
                if callee[1][0] == "a":
                    attributes.add(callee[1][2])
                for name in class_tags(self._types.evaluate(raw.scope, callee[1])):
                    found |= {t for t in (name, *self._types.subclasses(name)) if t in self._owners.tables}
        capturing = {t for t in found if self._capturing_table(t) and self._by_class.get(t)}
        made_for = self._in.devices(runner)
        if made_for:
            capturing = {t for t in capturing if not self._in.devices(t) or self._in.devices(t) & made_for}
        held = (
            self._held(runner, attributes) or self._in.chains.receivers(captures) & self._owners.tables.effects.keys()
        )
        if held and not capturing & held and all(self._beside(name, capturing) for name in held):
            return []  # what it holds in this configuration captures nothing itself
        return sorted(capturing & held) if capturing & held else sorted(capturing)

    def _beside(self, name: str, tables: set[str]) -> bool:
        """Whether a class was made to stand in the place of these tables: they have a base in common."""
        own = set(self._types.mro(name))
        return any(own & set(self._types.mro(table)) for table in tables)

    def _held(self, runner: str, attributes: set[str]) -> set[str]:
        holdings = self._in.holdings or {}
        held: set[str] = set()
        for ancestor in (runner, *self._types.mro(runner)[1:], *self._types.subclasses(runner)):
            for attribute in attributes:
                held |= holdings.get(ancestor, {}).get(attribute, frozenset())
            if held:
                break
        return held

    def _sides(self, runner: str) -> list[bool]:
        """Whether the runner works for the target, the draft, or either in turn."""
        family = family_of_name(runner)
        if is_draft(runner) or family.startswith("draft"):
            return [True]
        made = self._in.chains.sides(runner)
        if made:
            return list(made)
        if self._speculative() and self._in.chains.linked and family.startswith("prefill"):
            return [side for side in (False, True) if self._chain_to(runner, side) or not side]
        return [False]

    def _lacking(self, runner: str) -> bool:
        return self._in.fitting is not None and self._in.fitting.leaves_draft_out(runner)

    def _speculative(self) -> bool:
        value = self._in.settings.get(profile.SPECULATIVE_FIELD)
        return value not in (None, "", "NONE", "none")

    def _runner_path(self, runner: str, table: str, draft: bool) -> PathEntry:
        family = self._family(runner, table, draft)
        sites = self._sites_of([*self._types.mro(runner), *self._with_parts(table)])
        built = self._constructions.get(runner, [])
        sites += [pair for pair in built if pair not in sites]
        reachable, trigger = self._reach(sites, table, built, runner)
        begun = [site for raw, site in sites if raw.form == "table-capture" and self._runs_for(runner, raw)]
        if begun:
            reachable = worse(reachable, strongest(begun)[0])
        if draft and True in self._in.chains.sides(runner):
            reachable = worse(reachable, self._in.chains.draft_truth(runner))
            trigger = self._in.chains.draft_trigger(runner) or trigger
        if draft and self._lacking(runner):
            reachable = "no"
        sizes = self._in.buckets.get(PHASES.get(family, ""))
        if sizes is not None and sizes.sizes == ():
            reachable = "no"  # the resolved configuration leaves this phase nothing to capture
        chain = self._chain_to(runner, draft)
        chain += [ref for ref in self._in.chains.into(self._types, runner, table) if ref not in chain]
        role = "draft" if draft else "target"
        return self._entry(family, role, runner, table, sites, reachable, trigger, tuple(chain))

    def _runs_for(self, runner: str, raw: RawSite) -> bool:
        """Whether an object of the runner's class runs this method: it has it, or inherits it and does not replace it."""
        method = enclosing_method(raw.scope)
        if method is None:
            return False
        found = self._types.method(runner, method.name.rpartition(".")[2])
        return found is not None and found.name == method.name

    def _family(self, runner: str, table: str, draft: bool) -> Family:
        family = family_of_name(runner)
        if family.startswith("prefill"):
            segmented = any(raw.form.startswith("container") for raw, _ in self._by_class.get(table, ()))
            return "prefill-breakable" if segmented else "prefill-full"
        return self._verifying(family)

    def _verifying(self, family: Family) -> Family:
        """Decode graphs verify what a draft proposes where there is one; the draft's own take as many tokens at once."""
        return "verify" if family == "decode" and self._speculative() else family

    def _chain_to(self, runner: str, draft: bool) -> list[CodeRef]:
        built = [raw for raw, _ in self._constructions.get(runner, [])]
        return self._in.chains.to_construction(runner, built, draft)

    # -- tables that serve themselves, and graphs that functions keep

    def _table_path(self, table: str, without: Sequence[str], draft: bool) -> PathEntry:
        """A table that serves itself, or a runner (one of `without`) whose own tables this configuration leaves out."""
        family = self._verifying(family_of_name(table))
        phase = PHASES.get(family)
        runners = [r for r in without if phase is not None and PHASES.get(family_of_name(r)) == phase]
        runner = runners[0] if len(runners) == 1 and not is_draft(table) else table
        sites = self._sites_of(self._with_parts(table))
        built = self._constructions.get(runner, []) if runner != table else []
        reachable, trigger = self._reach(sites, table, built, runner)
        if self._inherited(table):
            reachable = "no"
        captures = [raw for raw, _ in sites if raw.role == "capture" and raw.scope.kind == "function"]
        chain = self._in.chains.to_table(self._types, table, [outermost(raw.scope).name for raw in captures], draft)
        if draft and not is_draft(table):
            reachable = worse(reachable, self._in.chains.draft_truth(table))
            trigger = self._in.chains.draft_trigger(table) or trigger
            reachable = "no" if self._lacking(table) else reachable
        role = "draft" if draft else "target"
        return self._entry(family, role, runner, table, [*sites, *built], reachable, trigger, tuple(chain))

    def _loose_paths(self) -> list[PathEntry]:
        """Captures by functions and classes that own no table: tuners, compiled callables, call records."""
        groups: dict[str, list[tuple[RawSite, Site]]] = {}
        owned = {
            name
            for level in (self._owners.tables, self._owners.runners, self._owners.composites)
            for name in level.effects
            if level is not self._owners.tables or self._capturing_table(name)
        }
        owned |= self._owners.contexts | self._owners.containers
        compiled = {
            r.scope.module.name: owner for r, _ in self._in.sites if r.form == "compiled" and (owner := owner_of(r))
        }
        for raw, site in self._in.sites:
            owner = owner_of(raw)
            if raw.form not in ("constructor", "context", "compiled", "graphed-callables") or owner in owned:
                continue
            if owner is None and raw.role != "capture":
                continue
            if owner is not None and any(owner in self._types.mro(name) for name in owned):
                continue
            home = compiled.get(raw.scope.module.name) if raw.form == "compiled" else None
            groups.setdefault(owner or home or outermost(raw.scope).name, []).append((raw, site))
        found = []
        for name, sites in sorted(groups.items()):
            if not any(raw.role == "capture" for raw, _ in sites):
                continue
            reachable, trigger = strongest(site for raw, site in sites if raw.role == "capture")
            chain = self._in.chains.to_function([outermost(raw.scope).name for raw, _ in sites])
            family = family_of_name(name)
            found.append(self._entry(family, "target", name, name, sites, reachable, trigger, tuple(chain)))
        return found

    # -- common parts

    def _with_parts(self, table: str) -> list[str]:
        """A table's ancestors, and the containers and capture contexts that its methods make."""
        found = list(self._types.mro(table))
        for ancestor in list(found):
            for raw, _ in self._by_class.get(ancestor, ()):
                if raw.form.startswith("container"):
                    found += [owner for name in raw.targets if (owner := self._class_of(name)) and owner not in found]
        return found

    def _class_of(self, name: str) -> str | None:
        scope = self._types.scopes.get(name)
        return None if scope is None else scope.name if scope.kind == "class" else scope.owner

    def _sites_of(self, classes: Iterable[str]) -> list[tuple[RawSite, Site]]:
        return [
            pair for name in dict.fromkeys(classes) for pair in self._by_class.get(name, ()) if pair[1].role in _CORE
        ]

    def _reach(
        self,
        sites: Sequence[tuple[RawSite, Site]],
        table: str,
        built: Sequence[tuple[RawSite, Site]],
        runner: str,
    ) -> tuple[Reach, Trigger | None]:
        """A path runs when its runner can be built, and its table can capture."""
        own = [site for raw, site in sites if raw.role == "capture" and owner_of(raw) in self._types.mro(table)]
        reachable, trigger = strongest(own)
        if built and runner != table:
            made, started = strongest(site for _, site in built)
            alive = self._in.chains.constructed(runner)
            if alive is not None:
                made = worse(made, alive)
            reachable = worse(reachable, made)
            trigger = started or trigger
        elif runner != table and self._in.chains.linked:
            alive = self._in.chains.constructed(runner)
            reachable = worse(reachable, alive) if alive is not None else reachable
        return reachable, trigger

    def _inherited(self, table: str) -> bool:
        """Whether no such object is made: what runs of it is inherited, and runs for another class."""
        chains = self._in.chains
        made = {chains.constructed(name) for name in self._types.subclasses(table) if name != table} - {"no", None}
        return chains.linked and chains.constructed(table) == "no" and (bool(made) or not chains.enters(table))

    def _entry(
        self,
        family: Family,
        role: str,
        runner: str,
        table: str,
        sites: Sequence[tuple[RawSite, Site]],
        reachable: Reach,
        trigger: Trigger | None,
        chain: tuple[CodeRef, ...],
    ) -> PathEntry:
        name = f"{role}:{family}"
        if PHASES.get(family) in self._in.open_phases:
            reachable = worse(reachable, "unresolved")  # what captures this phase, if anything, is not settled
        identity = f"{name}:{short(runner)}:{short(table)}"
        self._entered[identity] = Part(
            identity, runner, table, [raw for raw, _ in sites], family == "prefill-breakable" and runner != table
        )
        live = [(raw, site) for raw, site in sites if site.reachable != "no"]
        # All that the configuration builds counts: a call that the source does not show may lead to any of it.
        outside = [c for _, c in self._in.components if c.reachable != "no" and "not the caching allocator" in c.memory]
        components = self._components(runner, table, sites)
        fitting = [(raw, site) for raw, site in live or sites if self._in.fits(table, raw)]
        inspectability, reasons = self._class([*(fitting or sites), *self._in.launching(sites)], outside)
        return PathEntry(
            id=identity,
            family=family,
            worker=self._in.worker,
            runner=short(runner),
            backend=short(table),
            name=name,
            sites=tuple(site.id for _, site in sites),
            components=components,
            label=self._labels.of(family, runner, table, sites, self._constructions.get(runner, ())),
            chain=chain,
            nested_in=None,
            independent=has_own_pool(sites),
            depends_on_unconfirmed=self._dependencies(sites, chain, components),
            reachable=reachable,
            trigger=trigger,
            inspectability=inspectability,
            reasons=reasons,
        )

    def _class(
        self, sites: Sequence[tuple[RawSite, Site]], outside: Sequence[Component]
    ) -> tuple[Inspectability, tuple[Reason, ...]]:
        """The weakest of the path's captures and replays; eager work between segments alone lowers nothing."""
        telling = [
            site
            for raw, site in sites
            if site.role in ("capture", "replay", "update")
            and not raw.form.startswith("container")
            and raw.form not in _UNTELLING
        ]
        classes: list[Inspectability] = [site.inspectability for site in telling]
        reasons = [
            reason for site in telling for reason in site.reasons if site.inspectability != "lifetime-inspectable"
        ]
        if outside:
            classes.append("partial")
            reasons += [
                Reason(text=f"{c.class_}: {c.memory}", code="SGG020", file=c.file, line=c.line) for c in outside
            ]
        if not reasons:
            reasons = [reason for site in telling[:2] for reason in site.reasons]
        unique = {(r.file, r.line, r.text): r for r in reasons}
        return weakest(classes), tuple(unique[key] for key in sorted(unique))

    def _components(self, runner: str, table: str, sites: Sequence[tuple[RawSite, Site]]) -> tuple[Component, ...]:
        """The components that the code which the path captures comes to; all where no calls are known."""
        if self._in.captured is None or self._in.owners is None:
            return tuple(component for _, component in self._in.components)
        own = set(self._types.mro(runner))
        starts = [
            outermost(raw.scope).name
            for raw, _ in sites
            if raw.role == "capture" and ((owner_of(raw) in own and self._runs_for(runner, raw)) or runner == table)
        ]
        maker = self._types.method(runner, "__init__")
        code = self._in.captured.code(runner, [*starts, *([maker.name] if maker is not None else [])])
        reached = self._in.owners.in_code(code)
        return tuple(
            component.model_copy(update={"reached_at": reached[name]})
            for name, component in self._in.components
            if name in reached
        )

    def _dependencies(
        self, sites: Sequence[tuple[RawSite, Site]], chain: Sequence[CodeRef], components: Sequence[Component]
    ) -> tuple[str, ...]:
        """Predictions that the path rests on: conditions at its primitives and along its chain, choices of components."""
        named = {name for _, site in sites for gate in site.gates for name in gate.depends}
        named |= self._in.chains.depends(chain)
        for component in components:
            named |= set(profile.COMPONENT_FIELDS.get(component.kind, ()))
        return tuple(sorted(named & self._in.unconfirmed))
