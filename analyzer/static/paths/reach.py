"""Whether a configuration can execute a primitive, by what trigger, and which condition decides it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import networkx as nx
from sgl_graph.analyzer.records.pathmap import Gate, Reach, Trigger
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.linked import Call, Closure, Guard, Linked, Truth
from sgl_graph.analyzer.static.sites.callees import leaves
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope, Test
from sgl_graph.analyzer.static.sites.tags import enclosing_method

_LOOPS = re.compile(profile.EVENT_LOOPS)
_ADMIN = re.compile(profile.ADMIN_HANDLERS)
#: Forms of sites that stand where a function is wrapped, and split where it is called.
_WRAPPING = {"break-point", "split-operator"}
#: What makes code run, the earliest first.
TRIGGERS: tuple[Trigger | None, ...] = ("startup", "request", "admin", None)
_SETTLED: dict[Truth, str] = {Truth.TRUE: "true", Truth.FALSE: "false", Truth.UNKNOWN: "unknown"}


@dataclass(frozen=True, slots=True)
class Reached:
    """The answer for one site."""

    reachable: Reach
    trigger: Trigger | None
    why: str
    gates: tuple[Gate, ...] = ()


class Reachability:
    """Answers about one linked configuration.

    Args:
        on_demand: classes that capture when a replay finds no graph: what start-up runs of them is a rehearsal at most.
        unread: files that code which runs imports, and that could not be read: they may call anything, and give anything
            to the rest, so that nothing is excluded any more but what a condition that was met excludes.
    """

    def __init__(
        self,
        linked: Linked,
        entries: Iterable[str],
        on_demand: frozenset[str] = frozenset(),
        unread: Sequence[str] = (),
    ) -> None:
        self._linked = linked
        self._unread = ", ".join(unread[:3]) + (", ..." if len(unread) > 3 else "")
        self._on_demand = on_demand
        self._entries = [entry for entry in entries if entry in linked.reached]
        self._calls_at: dict[tuple[str, int], list[Call]] = {}
        self._calls_of: dict[str, list[Call]] = {}
        self._by_text: dict[str, dict[str, list[Call]]] = {}
        for caller, calls in linked.calls.items():
            for call in calls:
                self._by_text.setdefault(_simple(call.text), {}).setdefault(caller, []).append(call)
                self._calls_at.setdefault((caller, call.line), []).append(call)
                for target in (*call.targets, *call.constructs):
                    self._calls_of.setdefault(target, []).append(call)
        graph = linked.graph
        loops = {name for name in graph if _LOOPS.search(_simple(name))}
        admin = {name for name in graph if _ADMIN.search(_simple(name))}
        #: Functions in which a worker serves, and those that serve administrative requests.
        self.serving = frozenset(loops | admin)
        self._startup = _closure(graph, self._entries, set(self.serving))
        self._request = _closure(graph, loops & linked.reached.keys(), admin)

    def of_site(self, site: RawSite) -> Reached:
        """Whether, when and why one site executes."""
        answer = self._of_site(site)
        settled = any(gate.value == "false" for gate in answer.gates) and self.call_of(site) is not None
        return answer if settled else self._not_excluded(answer)

    def _not_excluded(self, answer: Reached) -> Reached:
        """A `no` is none where code that could not be read may lead here."""
        if answer.reachable != "no" or not self._unread:
            return answer
        return Reached("unresolved", None, f"{answer.why}, but {self._unread} could not be read", answer.gates)

    def _of_site(self, site: RawSite) -> Reached:
        scope = site.scope
        function = self.function(scope)
        if function.reachable == "no":
            return function
        if site.call is None and site.tests:
            return self._beside(site, function)
        if site.form in ("split-operator", "split-call") and (uncut := self._uncut(site)) is not None:
            return uncut
        wrapped = _names_of_wrapped(site) if site.form in _WRAPPING else ()
        callers = self._callers_of_wrapper(site, wrapped) if wrapped else []
        if wrapped and not callers:
            return Reached("no", None, "nothing that runs calls it: only its wrapper is made")
        answer = self._where_it_stands(site, function, callers)
        if answer.reachable == "yes" and callers and not any(self._linked.reached[c] is Truth.TRUE for c in callers):
            # The wrapper is surely made, and it splits where it is called.
            return replace(answer, reachable="unresolved", why=f"only {min(callers)} calls it, which may not run")
        return answer

    def _uncut(self, site: RawSite) -> Reached | None:
        """The answer for an operator where nothing that surely runs reads the operators at which graphs are cut."""
        readers = {name: self._linked.reached.get(name) for name in site.targets}
        if not readers or Truth.TRUE in readers.values():
            return None
        reader = min((name for name, truth in readers.items() if truth is Truth.UNKNOWN), default=None)
        if reader is None:
            return Reached("no", None, "no graph is cut at operators: nothing that runs reads which are registered")
        gates = self._open_gates_to(reader) or self._open_gates_to_making(reader)
        return Reached("unresolved", None, _open_because(gates), gates)

    def _beside(self, site: RawSite, function: Reached) -> Reached:
        """The answer for a statement under tests that is no call: that of a call which runs when it does."""
        alike = [replace(site, call=call, line=call.line, api=render(call.expression[1])) for call in site.beside()]
        met = next((one for one in alike if self.call_of(one) is not None), None)
        if met is not None or alike:
            return self._where_it_stands(met or alike[0], function, ())
        if function.reachable == "unresolved":
            return function
        return replace(
            function, reachable="unresolved", why=f"whether {_condition(site.tests[-1])} holds was not evaluated"
        )

    def _where_it_stands(self, site: RawSite, function: Reached, callers: Sequence[str]) -> Reached:
        scope = site.scope
        call = self.call_of(site)
        if call is None:
            return self._left_out(site) if self._is_dead(site) else function
        gates = gates_of(call.guards)
        blocking = next((g for g in gates if g.value == "false"), None)
        if blocking is not None:
            return Reached("no", None, f"{blocking.text} does not hold", gates)
        if not call.active:
            return Reached("no", None, "the code before it always leaves the function here", gates)
        trigger = self.trigger(_running(scope).name, "replay" if self._lazy(scope) else site.role)
        if callers and site.call is not None:
            # Where a wrapper is made says nothing: it splits where it is called.
            trigger = min((self.trigger(caller, site.role) for caller in callers), key=TRIGGERS.index)
        if function.reachable == "unresolved":
            return Reached("unresolved", trigger, function.why, gates or function.gates)
        open_gates = [g for g in gates if g.value == "unknown" and g.depends]
        if open_gates:
            names = ", ".join(sorted({name for g in open_gates for name in g.depends}))
            return Reached("unresolved", trigger, f"{open_gates[0].text} is open: it rests on {names}", gates)
        truths = {self._linked.reached.get(target) for target in call.targets}
        if Truth.UNKNOWN in truths and Truth.TRUE not in truths and not call.externals:
            # The call stands where it surely comes to, but what it would call may never be there.
            target = min(t for t in call.targets if self._linked.reached.get(t) is Truth.UNKNOWN)
            open_gates_to = self._open_gates_to(target) or self._open_gates_to_making(target)
            return Reached("unresolved", trigger, _open_because(open_gates_to), open_gates_to or gates)
        return Reached("yes", trigger, "called from the worker's entry", gates)

    def settled_entries(self, sites: Sequence[RawSite], found: Sequence[Reached]) -> list[Reached]:
        """The same answers, but for calls that would start captures of which this configuration makes none."""
        capturing = {
            _running(site.scope).name
            for site, answer in zip(sites, found, strict=True)
            if site.role == "capture" and site.form != "entry" and answer.reachable != "no"
        }
        leading = _closure(self._linked.graph.reverse(copy=False), capturing, set()) | capturing

        def settle(site: RawSite, answer: Reached) -> Reached:
            if site.form != "entry" or answer.reachable == "no" or self._unread:
                return answer
            call = self.call_of(site)
            if call is None or not call.targets or call.targets & leading:
                return answer
            return Reached("no", None, "what it calls captures nothing in this configuration", answer.gates)

        return [settle(site, answer) for site, answer in zip(sites, found, strict=True)]

    def function(self, scope: Scope) -> Reached:
        """Whether a function, class body or module executes at all; a class body does with the code around it."""
        scope = _running(scope)
        truth = self._linked.reached.get(scope.name)
        if truth is Truth.TRUE:
            role = "replay" if self._lazy(scope) else ""
            return Reached("yes", self.trigger(scope.name, role), "called from the worker's entry")
        if truth is Truth.UNKNOWN:
            gates = self._open_gates_to(scope.name) or self._open_gates_to_making(scope.name)
            return Reached("unresolved", self.trigger(scope.name, ""), _open_because(gates), gates)
        excluding = self._excluding(scope.name)
        if excluding is not None:
            return Reached("no", None, f"{excluding.text} does not hold", (excluding,))
        return Reached("no", None, "no call from a worker's entry leads here")

    def trigger(self, function: str, role: str) -> Trigger | None:
        """What makes a function run: start-up before requests, requests before administration; replays by requests."""
        at_start, by_request = function in self._startup, function in self._request
        if role == "replay" and by_request:
            return "request"
        if at_start:
            return "startup"
        if by_request:
            return "request"
        return "admin" if function in self._linked.reached else None

    def _lazy(self, scope: Scope) -> bool:
        method = enclosing_method(scope)
        return method is not None and method.owner in self._on_demand

    def calls_of(self, target: str) -> list[Call]:
        """Calls that may lead to a function, or construct a class."""
        return self._calls_of.get(target, [])

    def _callers_of_wrapper(self, site: RawSite, names: Sequence[str]) -> list[str]:
        """Functions that run and call what wraps a split point: by its name, or as a value that they choose by it."""
        named = self._callers_by_name(names)
        if site.form == "split-operator":  # what is registered stays the function that it is
            calling = [c.caller for c in self.calls_of(_running(site.scope).name) if c.active]
        else:
            closure = self._closure_of(site)
            if closure is None:
                return named
            calling = list(closure.callers)
        # An object in the place of what is wrapped calls it from its `__call__`.
        objects = [caller for caller in calling if caller.endswith(".__call__")]
        calling += [call.caller for name in objects for call in self.calls_of(name) if call.active]
        calling = [caller for caller in calling if caller in self._linked.reached]
        if not calling and site.form != "split-operator":
            return []
        return named or sorted({caller for caller in calling if self._mentions(caller, names)})

    def _closure_of(self, site: RawSite) -> Closure | None:
        if site.call is None:
            return None
        made = self._linked.closures.get((_running(site.scope).name, site.call.line), ())
        return next((closure for closure in made if closure.expression == site.call.expression), None)

    def _mentions(self, function: str, names: Sequence[str]) -> bool:
        """Whether a function's own body reads any of the names."""
        definition = self._linked.definitions.get(function)
        if definition is None:
            return False
        body = definition.module.function_body(definition.index)
        return any(
            leaf[1] in names if leaf[0] == "n" else leaf[0] == "a" and leaf[2] in names for leaf in leaves(["t", *body])
        )

    def _callers_by_name(self, names: Iterable[str]) -> list[str]:
        """Functions that run and call a wrapped function by one of its names; the wrapper itself stands for all of them."""
        return sorted(
            caller
            for name in names
            for caller, calls in self._by_text.get(name, {}).items()
            if caller in self._linked.reached and any(call.active for call in calls)
        )

    @staticmethod
    def _is_dead(site: RawSite) -> bool:
        """Whether the function runs without ever coming to the call: the linker records every call that it meets."""
        # A loop over hooks of which none is known makes no call, and runs all the same.
        return site.call is not None and site.scope.kind == "function" and site.form != "captured-hook"

    @staticmethod
    def _left_out(site: RawSite) -> Reached:
        """The answer for a call that a settled condition around it keeps from being met."""
        tests = site.call.tests if site.call is not None else ()
        if not tests:
            return Reached("no", None, "the function always leaves before it comes here")
        test = tests[-1]
        text = _condition(test)
        gate = Gate(text=text, file=site.scope.module.path, line=test.line, value="false")
        return Reached("no", None, f"{text} does not hold", (gate,))

    def call_of(self, site: RawSite) -> Call | None:
        """The call that the linker recorded where a site stands."""
        candidates = self._calls_at.get((_running(site.scope).name, site.line), [])
        if site.call is not None:
            same = [call for call in candidates if call.expression == site.call.expression]
            candidates = same or [call for call in candidates if call.text == site.api] or candidates
        return max(candidates, key=lambda call: (call.active, len(call.guards)), default=None)

    def _excluding(self, function: str, depth: int = 12) -> Gate | None:
        """The nearest condition, known false, that keeps a function from being called."""
        seen = {function}
        level = [function]
        for _ in range(depth):
            above: list[str] = []
            for name in level:
                for call in sorted(self.calls_of(name), key=lambda c: (c.file, c.line)):
                    for gate in gates_of(call.guards):
                        if gate.value == "false":
                            return gate
                    if call.caller not in seen:
                        seen.add(call.caller)
                        above.append(call.caller)
            level = above
        return None

    def _open_gates_to_making(self, method: str) -> tuple[Gate, ...]:
        """Open conditions on the way to where the object of a method is made."""
        definition = self._linked.definitions.get(method)
        if definition is None or definition.owner is None:
            return ()
        owner = self._linked.classes.get(definition.owner)
        for name in (definition.owner, *sorted(owner.subclasses if owner is not None else ())):
            for call in self.calls_of(name):
                if name in call.constructs and call.active and call.caller in self._linked.reached:
                    gates = tuple(g for g in gates_of(call.guards) if g.value == "unknown" and g.depends)
                    if gates or (gates := self._open_gates_to(call.caller)):
                        return gates
        return ()

    def _open_gates_to(self, function: str, depth: int = 12) -> tuple[Gate, ...]:
        """The nearest conditions with an open configuration value on the way to a function."""
        seen = {function}
        level = [function]
        for _ in range(depth):
            above: list[str] = []
            for name in level:
                for call in sorted(self.calls_of(name), key=lambda c: (c.file, c.line)):
                    if not call.active or call.caller not in self._linked.reached:
                        continue
                    gates = tuple(g for g in gates_of(call.guards) if g.value == "unknown" and g.depends)
                    if gates:
                        return gates
                    if call.caller not in seen:
                        seen.add(call.caller)
                        above.append(call.caller)
            level = above
        return ()


def _open_because(gates: Sequence[Gate]) -> str:
    if not gates:
        return "only calls that the source does not settle lead here"
    names = ", ".join(sorted({name for gate in gates for name in gate.depends})) or "the source alone"
    return f"{gates[0].text} is open: it rests on {names}"


def gates_of(guards: Iterable[Guard]) -> tuple[Gate, ...]:
    """Guards as the report shows them."""
    return tuple(
        Gate(
            text=guard.text,
            file=guard.file,
            line=guard.line,
            value=_SETTLED[guard.value],  # type: ignore[arg-type]
            depends=tuple(guard.depends),
        )
        for guard in guards
    )


def _running(scope: Scope) -> Scope:
    """The function or module whose execution runs a scope's statements."""
    while scope.kind == "class" and scope.parent is not None:
        scope = scope.parent
    return scope


def _names_of_wrapped(site: RawSite) -> tuple[str, ...]:
    """Names by which the function of a split point is called; none where its wrapper is used otherwise.

    A decorated function has its own; a wrapper made by a call has those that the call's value is bound to.
    """
    if site.call is None:
        return (_simple(site.scope.name),)
    names = [
        target[1] if target[0] == "n" else target[2]
        for target, value, _, _ in site.scope.assignments
        if target[0] in ("n", "a") and value == site.call.expression
    ]
    return tuple(names)


def _condition(test: Test) -> str:
    return render(test.expression) if test.positive else f"not ({render(test.expression)})"


def _simple(name: str) -> str:
    return name.rsplit(":", 1)[-1].rsplit(".", 1)[-1]


def _closure(graph: nx.MultiDiGraph[str], starts: Iterable[str], without: set[str]) -> set[str]:
    """Everything reachable from the starts without passing through some nodes."""
    found: set[str] = set()
    stack = [name for name in starts if name in graph]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        found.add(name)
        stack.extend(target for target in graph.successors(name) if target not in found and target not in without)
    return found
