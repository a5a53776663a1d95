"""Who owns graphs: containers of segments, tables that capture and replay by key, runners on top of a table.

Found by what the classes do. A *container* stands for one logical graph and replays what it holds without being told
which. A *table* captures and replays graphs that it stores itself. A *runner* calls a table's capturing and
replaying methods. A *composite* forwards a call to runners under the same name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sgl_graph.analyzer.static.sites.callees import may_lead_to, words_of_calls
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope
from sgl_graph.analyzer.static.sites.tags import enclosing_method, last_name, self_name

CAPTURES, REPLAYS = "C", "R"
#: Methods that nobody calls by name to have a graph run.
_NOT_ASKED = ("__init__", "__call__")
Effects = frozenset[str]
NOTHING: Effects = frozenset()


@dataclass(slots=True)
class Level:
    """The classes of one kind and what each of their methods does."""

    effects: dict[str, dict[str, Effects]] = field(default_factory=dict)

    def __contains__(self, name: object) -> bool:
        return name in self.effects

    def of(self, class_name: str, method: str) -> Effects:
        """Effects of a method, nothing when unknown."""
        return self.effects.get(class_name, {}).get(method, NOTHING)


class Owners:
    """Graph-owning classes of a checkout, derived from the functions that touch graphs directly."""

    def __init__(self, types: GraphTypes, direct: dict[str, set[str]]) -> None:
        self.types = types
        self.direct = direct
        self.containers: set[str] = set()
        self.contexts: set[str] = set()
        #: Containers that stand for an executable of a table: making one registers a graph, it captures none.
        self.proxies: set[str] = set()
        self.tables = Level()
        self.runners = Level()
        self.composites = Level()
        self._resolved: dict[str, list[tuple[CallFact, frozenset[str]]]] = {}
        self._names: set[str] = set()
        self._watched: set[str] = set()
        self._lending: set[tuple[str, str]] = set()
        self._words: dict[str, set[str]] = {}
        self._find_containers_and_tables()
        self.refresh()
        self._find_runners()
        self.refresh()
        self._find_composites()
        self.refresh()

    # -- what a callee does

    def table_effects(self, function: str) -> Effects:
        """Effects of calling a function that is a method of a table, or of an abstract base of tables."""
        return self._through(self.tables, function)

    def runner_effects(self, function: str) -> Effects:
        """As `table_effects`, for runners and composites."""
        return self._through(self.runners, function) | self._through(self.composites, function)

    def _through(self, level: Level, function: str) -> Effects:
        scope = self.types.scopes.get(function)
        if scope is None or scope.owner is None:
            return NOTHING
        name = function.rsplit(".", 1)[-1]
        own = level.of(scope.owner, name)
        if own:
            return own
        found: set[str] = set()
        for child in self.types.subclasses(scope.owner):
            found |= level.of(child, name)
        return frozenset(found)

    def is_container_replay(self, function: str) -> bool:
        """Whether a function replays a container as a whole."""
        scope = self.types.scopes.get(function)
        return scope is not None and scope.owner in self.containers and REPLAYS in self.direct.get(function, ())

    def makes_proxies(self, function: str) -> bool:
        """Whether a function turns captured graphs into executables of its own."""
        scope = self.types.scopes.get(function)
        if not self.proxies or scope is None or scope.owner not in self.tables:
            return False
        made = {tag[6:] for _, tags in self.resolved(scope) for tag in tags if tag.startswith("class:")}
        return bool(made & self.proxies)

    # -- construction

    def _find_containers_and_tables(self) -> None:
        for _ in range(3):
            before = (len(self.containers), len(self.contexts), sum(map(len, self.direct.values())))
            for name in self._touched_classes():
                self._sort(name)
            self.refresh()
            self._spread_from_containers()
            if before == (len(self.containers), len(self.contexts), sum(map(len, self.direct.values()))):
                break

    def _touched_classes(self) -> list[str]:
        owners = {scope.owner for name in self.direct if (scope := self.types.scopes.get(name)) is not None}
        found = {owner for owner in owners if owner is not None}
        for owner in list(found):
            found.update(self.types.subclasses(owner))
        return sorted(found)

    def _sort(self, name: str) -> None:
        effects = self.class_effects(name, self.direct)
        done = frozenset().union(*effects.values()) if effects else NOTHING
        if CAPTURES in effects.get("__enter__", NOTHING):
            self.contexts.add(name)
            return
        if REPLAYS not in done:
            return
        if CAPTURES not in done and any(
            REPLAYS in found and self._needs_nothing(name, method) for method, found in effects.items()
        ):
            self.containers.add(name)
            self.tables.effects.pop(name, None)
            return
        if name not in self.containers:
            # A table that captures when it is made replays later; if that recaptures on the way, it is still a replay.
            early = CAPTURES in effects.get("__init__", NOTHING)
            self.tables.effects[name] = {
                m: frozenset({REPLAYS}) if early and REPLAYS in found and m != "__init__" else found
                for m, found in effects.items()
                if found
            }

    def class_effects(self, class_name: str, direct: dict[str, set[str]]) -> dict[str, Effects]:
        """Effects of each method of a class, calls through its own receiver included."""
        methods: dict[str, list[Scope]] = {}
        for ancestor in self.types.mro(class_name):
            for name, scope in self.types.methods(ancestor).items():
                overrides = methods.setdefault(name, [])
                if not overrides or _calls_super(overrides[-1]):
                    overrides.append(scope)
        result: dict[str, set[str]] = {
            name: {effect for scope in scopes for effect in (*direct.get(scope.name, ()), *self._lent(scope, direct))}
            for name, scopes in methods.items()
        }
        calls = {
            name: {called for scope in scopes for called in self._own_calls(scope)} & methods.keys()
            for name, scopes in methods.items()
        }
        changed = True
        while changed:
            changed = False
            for name, called in calls.items():
                for other in called:
                    if not result[other] <= result[name]:
                        result[name] |= result[other]
                        changed = True
        return {name: frozenset(found) for name, found in result.items()}

    def _lent(self, scope: Scope, direct: dict[str, set[str]]) -> set[str]:
        """Effects of methods of other classes that a method calls on its own object."""
        found: set[str] = set()
        for lent in self.types.borrowed.get(scope.owner or "", ()):
            name = lent.function.name if lent.function is not None else ""
            if lent.owner is None or (lent.owner, name) in self._lending:
                continue
            calls = (call for call in scope.calls if call.expression[1][0] == "a" and call.expression[1][2] == name)
            if any(not is_own_call(scope, call) for call in calls):
                self._lending.add((lent.owner, name))
                found |= self.class_effects(lent.owner, direct).get(name, NOTHING)
                self._lending.discard((lent.owner, name))
        return found

    def _own_calls(self, scope: Scope) -> set[str]:
        """Names of methods that a method calls (or hands out) on its receiver."""
        receiver = self_name(scope)
        found: set[str] = set()
        for inner in scope.walk():
            for call in inner.calls:
                function = call.expression[1]
                if function[0] == "a" and function[1] in (["n", receiver], ["c", ["n", "super"], [], call.line]):
                    found.add(function[2])
        return found

    def _needs_nothing(self, class_name: str, method: str) -> bool:
        """Whether a method can be called without saying which graph."""
        scope = self.types.method(class_name, method)
        if scope is None or scope.function is None or method == "__init__":
            return False
        parameters = scope.function.parameters[1:]
        return not any(p.default is None and p.kind in ("p", "n", "k") for p in parameters)

    def _spread_from_containers(self) -> None:
        """Functions that make, enter or replay containers touch graphs too."""
        for scope in list(self.types.scopes.values()):
            for call, tags in self.resolved(scope):
                holder = outermost(scope)
                for tag in tags:
                    kind, _, name = tag.partition(":")
                    if kind == "class" and name in (self.contexts | self.containers) - self.proxies:
                        self.direct.setdefault(holder.name, set()).add(CAPTURES)
                    elif kind == "func" and self.is_container_replay(name):
                        self.direct.setdefault(holder.name, set()).add(REPLAYS)
                    elif kind == "func" and self._hands_itself_over(scope, call, name):
                        self.direct.setdefault(holder.name, set()).add(REPLAYS)
                        self.proxies.add(holder.owner or "")

    def _hands_itself_over(self, scope: Scope, call: CallFact, function: str) -> bool:
        """`self.registry.replay(self, ...)`: the receiver is the graph, the table only launches it."""
        receiver = self_name(enclosing_method(scope))
        passes_self = receiver is not None and ["n", receiver] in call.expression[2]
        return passes_self and self.table_effects(function) == {REPLAYS}

    def _find_runners(self) -> None:
        through: dict[str, dict[str, set[str]]] = {}
        for scope in list(self.types.scopes.values()):
            method = enclosing_method(scope)
            if method is None or method.owner is None:
                continue
            for call, tags in self.resolved(scope):
                if is_own_call(scope, call):
                    continue
                for tag in tags:
                    if tag.startswith("func:"):
                        effects = self.table_effects(tag[5:])
                        if len(effects) == 1:
                            table = self.types.scopes[tag[5:]].owner or ""
                            entry = through.setdefault(method.name, {})
                            entry.setdefault(table, set()).update(effects)
        owners = {self.types.scopes[name].owner for name in through}
        candidates = {owner for owner in owners if owner is not None}
        for owner in list(candidates):
            candidates.update(self.types.subclasses(owner))
        for name in sorted(candidates - self.tables.effects.keys() - self.containers):
            self._sort_runner(name, through)

    def _sort_runner(self, name: str, through: dict[str, dict[str, set[str]]]) -> None:
        methods = {scope.name for a in self.types.mro(name) for scope in self.types.methods(a).values()}
        captured_in = {t for m in methods for t, found in through.get(m, {}).items() if CAPTURES in found}
        related = {r for t in captured_in for r in (*self.types.mro(t), *self.types.subclasses(t))}
        direct = {
            m: {e for t, found in through.get(m, {}).items() if t in related for e in found}
            for m in methods
            if m in through
        }
        effects = self.class_effects(name, {m: found for m, found in direct.items() if found})
        done = frozenset().union(*effects.values()) if effects else NOTHING
        if {CAPTURES, REPLAYS} <= done:
            self.runners.effects[name] = {
                # A runner's replaying method may recapture on the way; its purpose is the replay.
                m: frozenset({REPLAYS}) if REPLAYS in found and m != "__init__" else found
                for m, found in effects.items()
                if found
            }

    def _find_composites(self) -> None:
        for scope in list(self.types.scopes.values()):
            method = enclosing_method(scope)
            if method is None or method.owner is None or method.owner in self.runners:
                continue
            for call, tags in self.resolved(scope):
                name = last_name(call.expression[1])
                if method.function is None or name != method.function.name or is_own_call(scope, call):
                    continue
                effects = {e for tag in tags if tag.startswith("func:") for e in self._through(self.runners, tag[5:])}
                if effects:
                    entry = self.composites.effects.setdefault(method.owner, {})
                    entry[name] = entry.get(name, NOTHING) | effects

    def capturing(self) -> frozenset[str]:
        """Runners, and what captures by handing on to them."""
        return frozenset((*self.runners.effects, *self.composites.effects))

    def on_demand(self) -> frozenset[str]:
        """Tables with a method of their own that captures or replays as it finds a graph or not.

        An object that is called in the place of a function is not asked by its users: they call what they always call, as
        the pieces of a compiled model do, and who runs the model once for each size decides what is captured.
        """
        return frozenset(
            name
            for name, methods in self.tables.effects.items()
            if any({CAPTURES, REPLAYS} <= found for method, found in methods.items() if method not in _NOT_ASKED)
        )

    def refresh(self) -> None:
        """Begin a round: what was learned in the last one widens which calls can matter."""
        self._names = self._interesting() | self._watched
        self._resolved.clear()

    def watch(self, functions: Iterable[str]) -> None:
        """Let calls of further functions count among those that can matter."""
        self._watched = {name.rsplit(".", 1)[-1] for name in functions}
        self.refresh()

    def resolved(self, scope: Scope) -> list[tuple[CallFact, frozenset[str]]]:
        """The calls of a scope with what each callee may be; only calls that could matter are evaluated."""
        known = self._resolved.get(scope.name)
        if known is None:
            known = (
                []
                if self._cannot_matter(scope)
                else [
                    (call, self.types.evaluate(scope, call.expression[1]))
                    for call in scope.calls
                    if may_lead_to(scope, call.expression[1], self._names)
                ]
            )
            self._resolved[scope.name] = known
        return known

    def _cannot_matter(self, scope: Scope) -> bool:
        """Whether no call of a scope, nor anything a local alias was bound to, has one of the names."""
        words = self._words.get(scope.name)
        if words is None:
            words = self._words[scope.name] = words_of_calls(scope)
        return words.isdisjoint(self._names) and "<lambda>" not in words

    def _interesting(self) -> set[str]:
        """Last names of callees that may lead to a graph-owning class."""
        found: set[str] = set()
        for name in self.direct:
            found.add(name.rsplit(".", 1)[-1].rsplit(":", 1)[-1])
        for name in (*self.containers, *self.contexts):
            found.add(name.rsplit(":", 1)[-1].rsplit(".", 1)[-1])
        for level in (self.tables, self.runners, self.composites):
            for owner, methods in level.effects.items():
                found.update(methods)
                found.add(owner.rsplit(":", 1)[-1].rsplit(".", 1)[-1])
        return found


def _calls_super(scope: Scope) -> bool:
    """Whether an override hands on to the method that it overrides."""
    own = scope.function.name if scope.function is not None else ""
    return any(
        function[0] == "a" and function[2] == own and function[1][0] == "c" and function[1][1] == ["n", "super"]
        for call in scope.calls
        if (function := call.expression[1])
    )


def is_own_call(scope: Scope, call: CallFact) -> bool:
    """Whether the receiver of a call is the method's own object."""
    function = call.expression[1]
    if function[0] != "a":
        return False
    if function[1][0] == "c" and function[1][1] == ["n", "super"]:
        return True
    return bool(function[1] == ["n", self_name(enclosing_method(scope))])


def outermost(scope: Scope) -> Scope:
    """The method or module-level function whose body holds a scope."""
    at = scope
    while at.kind == "function" and at.parent is not None and at.parent.kind == "function":
        at = at.parent
    return at
