"""Chains of resolved calls from a worker's entry to a capture, none of them known by name only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from sgl_graph.analyzer.records.pathmap import CodeRef, Reach, Trigger
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.linked import Known, Linked, Step, Truth
from sgl_graph.analyzer.static.paths.parts import PHASES
from sgl_graph.analyzer.static.paths.reach import TRIGGERS, Reachability
from sgl_graph.analyzer.static.sites.families import family_of_name, is_draft
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.scopes import Scope, public
from sgl_graph.analyzer.static.sites.tags import last_name


class Chains:
    """Shortest chains over the linked graph; empty without one."""

    def __init__(self, linked: Linked | None, reach: Reachability | None, entries: Iterable[str]) -> None:
        self._linked = linked
        self._reach = reach
        self._entries = list(entries)
        self._trees: dict[tuple[str, bool | None, bool], dict[str, tuple[str, str, int] | None]] = {}

    @property
    def linked(self) -> bool:
        """Whether there is a call graph to ask."""
        return self._linked is not None

    def to_function(self, names: Sequence[str]) -> list[CodeRef]:
        """The shortest chain from an entry to any of the functions."""
        return self._shortest(names, None)

    def to_construction(self, runner: str, built: Sequence[RawSite], draft: bool) -> list[CodeRef]:
        """The shortest chain to where a runner is built, through code of the draft model or around it."""
        if self._linked is None or self._reach is None:
            return []
        if draft and self.sides(runner):
            return self.to_draft(runner)
        makers = {call.caller for call in self._reach.calls_of(runner) if call.active and runner in call.constructs}
        makers |= {raw.scope.name for raw in built}
        through_draft = draft and not is_draft(runner)
        chain = self._shortest(sorted(makers), True if through_draft else None if draft else False)
        if not chain and not through_draft:
            chain = self._shortest(sorted(makers), None)
        return chain

    def to_table(self, types: GraphTypes, table: str, captures: Sequence[str], draft: bool) -> list[CodeRef]:
        """The shortest chain to where a table that serves itself captures, for one side.

        Args:
            captures: functions that capture; code of the draft may lead to the target's, too, and is the longer way then.
        """
        if is_draft(table):
            return self._shortest(captures, None)
        if draft:
            chain, maker = self.to_draft(table), types.method(table, "__init__")
            tree = self._tree(maker.name, None) if maker is not None else {}
            inside = min((self._path(tree, name) for name in captures if name in tree), key=len, default=[])
            return [*chain, *inside]
        return self._shortest(captures, False) or self._shortest(captures, None)

    def sides(self, runner: str) -> tuple[bool, ...]:
        """Whether a runner is made for the target's worker (False), for the draft's (True), or for both; empty: not known.

        What administration alone makes for the draft, of a class that start-up makes for the target, repeats captures: there is
        nothing of the draft's to be captured again. Nor is there where captures are turned off while the draft's are made.
        """
        made = dict(self._linked.sides.get(runner, {})) if self._linked is not None else {}
        if True in made and made[True].ways and not self._ways(runner):
            del made[True]
        draft, target = self.draft_trigger(runner), self._target_trigger(runner)
        return tuple(side for side in sorted(made) if not side or draft != "admin" or target in (None, "admin"))

    def draft_trigger(self, runner: str) -> Trigger | None:
        """What makes a runner be made for the draft: the earliest of all ways."""
        ways = self._ways(runner)
        return ways[0][0] if ways else None

    def draft_truth(self, runner: str) -> Reach:
        """Whether a runner is made for the draft for certain."""
        making = self._linked.sides.get(runner, {}).get(True) if self._linked is not None else None
        return "no" if making is None else "yes" if making.truth is Truth.TRUE else "unresolved"

    def to_draft(self, runner: str) -> list[CodeRef]:
        """The shortest chain to where a runner is made for the draft, among those that the earliest trigger starts."""
        ways = self._ways(runner)
        best: list[CodeRef] = []
        for trigger, way in ways:
            steps = [CodeRef(file=step.file, line=step.line, qualname=public(step.caller)) for step in way]
            for entry in self._entries:
                before = self._plain(entry, way[0].caller, None, starting=trigger == "startup")
                if trigger == ways[0][0] and before and (not best or len(before) - 1 + len(steps) < len(best)):
                    best = [*before[:-1], *steps]
        return best

    def _ways(self, runner: str) -> list[tuple[Trigger | None, tuple[Step, ...]]]:
        making = self._linked.sides.get(runner, {}).get(True) if self._linked is not None else None
        if making is None or self._reach is None:
            return []
        off = profile.LEGACY_OFF_FIELDS.get(PHASES.get(family_of_name(runner), ""), "")
        ways = [way for way in making.ways if not self._turned_off(way[0], off)]
        found = [(self._reach.trigger(way[0].caller, ""), way) for way in ways]
        return sorted(found, key=lambda pair: (TRIGGERS.index(pair[0]), pair[1]))

    def _turned_off(self, step: Step, field: str) -> bool:
        """Whether a function, before it makes a call, turns off what this field of the arguments turns off, and not on again."""
        definition = self._linked.definitions.get(step.caller) if self._linked is not None else None
        if definition is None or not field:
            return False
        stores = [
            (statement[1], statement[3] == ["v", True])
            for statement in walk(definition.module.function_body(definition.index))
            if statement[0] == "=" and any(target[0] == "a" and target[2] == field for target in statement[2])
        ]
        return max((store for store in stores if store[0] < step.line), default=(0, False))[1]

    def _target_trigger(self, runner: str) -> Trigger | None:
        assert self._reach is not None or self._linked is None
        if self._linked is None or self._reach is None or False not in self._linked.sides.get(runner, {}):
            return None
        calls = [call for call in self._reach.calls_of(runner) if call.active and runner in call.constructs]
        return min((self._reach.trigger(call.caller, "") for call in calls), key=TRIGGERS.index, default=None)

    def into(self, types: GraphTypes, runner: str, table: str) -> list[CodeRef]:
        """From the runner's constructor over its capturing method to the table's."""
        if self._linked is None:
            return []
        start = types.method(runner, "__init__")
        ends = [
            method.name
            for ancestor in types.mro(table)
            for method in types.methods(ancestor).values()
            if method.name in self._linked.reached
            and any((last_name(c.expression[1]) or "").endswith("Graph") or c.entered for c in method.calls)
        ]
        if start is None:
            return []
        tree = self._tree(start.name, None)
        return next((self._path(tree, end) for end in sorted(ends) if end in tree), [])

    def led_to(self, raw: RawSite) -> frozenset[str]:
        """Functions that a primitive's call may reach."""
        call = self._reach.call_of(raw) if self._reach is not None else None
        return call.targets if call is not None and call.active else frozenset()

    def constructed(self, class_name: str) -> Reach | None:
        """Whether this configuration builds objects of a class; None when the linker says nothing of it."""
        if self._linked is None or self._reach is None:
            return None
        calls = [call for call in self._reach.calls_of(class_name) if class_name in call.constructs]
        best: Reach = "no"
        for call in calls:
            truth = self._linked.reached.get(call.caller)
            if truth is None or not call.active:
                continue
            open_guards = any(g.value is Truth.UNKNOWN and g.depends for g in call.guards)
            if truth is Truth.TRUE and not open_guards:
                return "yes"
            best = "unresolved"
        return best

    def receivers(self, sites: Sequence[RawSite]) -> set[str]:
        """Classes of the objects on which calls are made in this configuration."""
        if self._reach is None:
            return set()
        calls = [call for site in sites if (call := self._reach.call_of(site)) is not None and call.active]
        return {name for call in calls for name in call.receivers}

    def enters(self, class_name: str) -> bool:
        """Whether any code of a class's own body runs."""
        prefix = class_name + "."
        return self._linked is not None and any(name.startswith(prefix) for name in self._linked.reached)

    def depends(self, chain: Sequence[CodeRef]) -> set[str]:
        """Configuration that the unsettled conditions along a chain rest on."""
        if self._linked is None:
            return set()
        wanted = {(ref.qualname, ref.line) for ref in chain}
        names = {ref.qualname for ref in chain}
        return {
            name
            for caller in self._linked.graph
            if public(caller) in names
            for _, _, data in self._linked.graph.out_edges(caller, data=True)
            if (public(caller), data["line"]) in wanted
            for guard in data["guards"]
            if guard.value is Truth.UNKNOWN
            for name in guard.depends
        }

    def clamp_of(self, types: GraphTypes, runner: str, built: Sequence[RawSite] = ()) -> str | None:
        """What bounds the runner's list of sizes besides the configuration: `x <= bound` where the list is made.

        The nearest class that asks a function for its sizes counts; where that function bounds nothing, the function that
        builds the runner may have bounded the list before. A runner that asks for none has those of the runners that it makes.
        """
        targets = asked_for_sizes(types, runner)
        found = next((bound for target in targets if (bound := bound_of(target)) is not None), None)
        if found is not None:
            return found
        for inner in self._made_by(types, runner) if not targets else ():
            found = self.clamp_of(types, inner)
            if found is not None:
                return found
        return next((bound for raw in built if (bound := bound_of(raw.scope)) is not None), None)

    @staticmethod
    def _made_by(types: GraphTypes, runner: str) -> list[str]:
        """Other runners that the methods of one make."""
        names = {
            tag[6:]
            for ancestor in types.mro(runner)
            for method in types.methods(ancestor).values()
            for call in method.calls
            if (last_name(call.expression[1]) or "").endswith("Runner")
            for tag in types.evaluate(method, call.expression[1])
            if tag.startswith("class:")
        }
        return sorted(name for name in names if runner not in types.mro(name))

    def _shortest(self, names: Sequence[str], draft: bool | None) -> list[CodeRef]:
        """The shortest chain to any of the functions; one that start-up takes comes before any that serving takes."""
        best: list[CodeRef] = []
        for starting in (False,) if draft else (True, False):
            for entry in self._entries:
                for name in names:
                    path = self._through_draft(entry, name) if draft else self._plain(entry, name, draft, starting)
                    if path and (not best or len(path) < len(best)):
                        best = path
            if best:
                break
        return best

    def _plain(self, entry: str, name: str, draft: bool | None, starting: bool) -> list[CodeRef]:
        tree = self._tree(entry, draft, starting)
        return self._path(tree, name) if name in tree else []

    def _through_draft(self, entry: str, name: str) -> list[CodeRef]:
        """The shortest chain that passes code of the draft model."""
        before, after = self._tree(entry, None), self._distances_to(name)
        middles = [node for node in before if is_draft(node) and node in after]
        if not middles:
            return []
        middle = min(middles, key=lambda node: (len(self._path(before, node)) + after[node], node))
        first, second = self._path(before, middle), self._path(self._tree(middle, None), name)
        return [*first[:-1], *second] if len(first) > 1 else second

    def _distances_to(self, name: str) -> dict[str, int]:
        """Calls between every function that leads to one and that one."""
        found = {name: 0}
        queue = deque([name])
        graph = self._linked.graph if self._linked is not None else None
        while queue and graph is not None:
            at = queue.popleft()
            for caller, _, data in graph.in_edges(at, data=True) if at in graph else ():
                if caller not in found and data["known"] is not Known.NAME_ONLY:
                    found[caller] = found[at] + 1
                    queue.append(caller)
        return found

    def _tree(self, start: str, draft: bool | None, starting: bool = False) -> dict[str, tuple[str, str, int] | None]:
        """Breadth-first tree from a function.

        Args:
            draft: False keeps out of the draft model's code.
            starting: keeps out of the loops in which a worker serves, and of what administrative requests call.
        """
        key = (start, draft if draft is False else None, starting)
        aside = self._reach.serving if starting and self._reach is not None else frozenset()
        known = self._trees.get(key)
        if known is not None:
            return known
        tree: dict[str, tuple[str, str, int] | None] = {start: None}
        queue = deque([start])
        graph = self._linked.graph if self._linked is not None else None
        while queue and graph is not None:
            name = queue.popleft()
            if name not in graph:
                continue
            edges = sorted(
                (target, data["file"], data["line"])
                for _, target, data in graph.out_edges(name, data=True)
                if data["known"] is not Known.NAME_ONLY
            )
            for target, file, line in edges:
                if target in tree or target in aside or (key[1] is False and is_draft(target)):
                    continue
                tree[target] = (name, file, line)
                queue.append(target)
        self._trees[key] = tree
        return tree

    def _path(self, tree: dict[str, tuple[str, str, int] | None], name: str) -> list[CodeRef]:
        """Functions from the root to a name; each with the line of the call that it makes to the next."""
        found: list[CodeRef] = []
        at, called_at = name, ("", 0)
        while True:
            step = tree[at]
            found.append(CodeRef(file=called_at[0], line=called_at[1], qualname=public(at)))
            if step is None:
                break
            at, called_at = step[0], (step[1], step[2])
        found.reverse()
        if len(found) > 1:
            # The last function makes no further call: it is shown where it is called from.
            last = found[-1]
            before = tree[name]
            assert before is not None
            found[-1] = CodeRef(file=before[1], line=before[2], qualname=last.qualname)
        elif self._linked is not None and (home := self._linked.definitions.get(name)) is not None:
            found[-1] = CodeRef(file=home.module.path, line=home.facts.line, qualname=public(name))
        return found


def asked_for_sizes(types: GraphTypes, runner: str) -> list[Scope]:
    """Functions that a runner asks for its sizes: those of the nearest of its classes that asks any."""
    for ancestor in types.mro(runner):
        targets = [
            target
            for method in types.methods(ancestor).values()
            for call in method.calls
            if _makes_sizes(call.expression)
            for tag in types.evaluate(method, call.expression[1])
            if tag.startswith("func:") and (target := types.scopes.get(tag[5:])) is not None
        ]
        if targets:
            return targets
    return []


def reads_setting(types: GraphTypes, runner: str, name: str) -> bool:
    """Whether a method of a runner keeps the setting of this name, as it is or sorted."""
    values = (
        value
        for ancestor in types.mro(runner)
        for method in types.methods(ancestor).values()
        for _, value, _, _ in method.assignments
    )
    return any(value[0] == "a" and value[2] == name for value in map(_elements, values))


def _elements(value: Expression) -> Expression:
    """What a list is made of, where a call of one argument (`sorted` and the like) keeps its elements."""
    while value[0] == "c" and len(value[2]) == 1:
        value = value[2][0]
    return value


def _makes_sizes(call: Expression) -> bool:
    name = last_name(call[1]) or ""
    return "capture" in name and ("size" in name or "tokens" in name or "bs" in name)


def bound_of(scope: Scope) -> str | None:
    """The last bound of `[x for x in sizes if x <= bound]`, followed to what it was read or computed from."""
    found = None
    kept = [value for target, value, _, _ in scope.assignments if target[0] == "n"]
    for value in [*kept, *(value for value, _ in scope.returns)]:
        value = _elements(value)
        if value[0] != "C":
            continue
        for element, _, tests in value[3]:
            for test in tests:
                if test[0] == "cmp" and test[1] == element and test[2][0][0] in ("<=", "<"):
                    found = _origin(scope, test[2][0][1])
    return found


def _origin(scope: Scope, bound: Expression) -> str:
    """The attribute that a bound was first read from."""
    if bound[0] == "n":
        for binding in scope.bindings.get(bound[1], ()):
            if binding.kind == "value" and binding.expression[0] in ("a", "b"):
                return render(binding.expression)
    return render(bound)
