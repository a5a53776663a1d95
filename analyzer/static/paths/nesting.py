"""Paths inside paths: a capture, or a launch of captured graphs, in the region that another path captures.

Only what a captured region surely comes to is taken for nested: calls under no condition that is open, each to one
function alone. The graph that does not run there in truth would else pass for a part of its neighbour.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.linked import Call, Guard, Linked, Truth
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.rawsite import RawSite

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.paths.inputs import PathInput

#: Forms of sites that capture while they are entered.
_ENTERED = frozenset({"context", "saver-context", "container-context"})
_STATE = re.compile(profile.CAPTURE_STATE)


@dataclass(frozen=True, slots=True)
class Part:
    """What of a path matters here: its name, the class that it captures for, that of its table, and its primitives."""

    id: str
    runner: str
    table: str
    sites: Sequence[RawSite]
    #: Whether its graphs are split into segments, between which code runs eagerly.
    segmented: bool = False


def parents(given: PathInput, parts: Sequence[Part]) -> dict[str, str]:
    """Path to the path that it is nested in.

    Where code is handed to a split point, it runs between the segments of a segmented path, and captures there.
    """
    types = given.search.types
    segmented = [part.id for part in parts if part.segmented]
    handed = _handed(given) if segmented else set()
    found = {part.id: segmented[0] for part in parts if part.runner in handed}
    if given.linked is not None:
        for inner, outer in Nesting(given.linked, types, parts).parents().items():
            found.setdefault(inner, outer)
    return found


def _handed(given: PathInput) -> set[str]:
    """Functions that are handed to split points."""
    types = given.search.types
    return {
        tag[5:]
        for raw, _ in given.sites
        if raw.form == "break-point"
        for decorator in (raw.scope.decorators if raw.call is None else [raw.call.expression])
        if decorator[0] == "c"
        for argument in decorator[2]
        for tag in types.evaluate(raw.scope.parent or raw.scope, argument[2] if argument[0] == "k" else argument)
        if tag.startswith("func:")
    }


class Nesting:
    """Finds, for each path, the one in whose captured region it captures or replays."""

    def __init__(self, linked: Linked, types: GraphTypes, parts: Sequence[Part]) -> None:
        self._linked = linked
        self._types = types
        self._parts = sorted(parts, key=lambda part: part.id)

    def parents(self) -> dict[str, str]:
        """Path to the path around it, the first by name."""
        found: dict[str, str] = {}
        for outer in self._parts:
            region = self._region(outer)
            for inner in self._parts:
                apart = inner.runner not in (outer.runner, outer.table) and inner.id not in found
                if region and apart and found.get(outer.id) != inner.id and self._enters(region, outer, inner):
                    found[inner.id] = outer.id
        return found

    def _region(self, part: Part) -> set[str]:
        """Functions that surely run inside of what a path captures."""
        found: set[str] = set()
        queue: deque[str] = deque()

        def add(targets: Iterable[str]) -> None:
            for target in targets:
                if target not in found and target in self._linked.reached:
                    found.add(target)
                    queue.append(target)

        for site in part.sites:
            if site.role == "capture" and site.form in _ENTERED and site.call is not None:
                add(self._inside(part, site))
        while queue:
            for call in self._linked.calls.get(queue.popleft(), ()):
                if call.active and len(call.targets) == 1 and all(g.value is Truth.TRUE for g in call.guards):
                    add(call.targets)
        return found

    def _inside(self, part: Part, site: RawSite) -> Iterator[str]:
        """What the block that a capture context is entered for calls: of closures, those of the path's own runner."""
        assert site.call is not None
        definition = self._linked.definitions.get(site.scope.name)
        if definition is None:
            return
        calls = {id(call.expression): call for call in self._linked.calls.get(site.scope.name, ())}
        around = calls.get(id(site.call.expression))
        known: frozenset[Guard] = frozenset(around.guards) if around is not None else frozenset()
        for statement in walk(definition.module.function_body(definition.index)):
            if statement[0] == "with" and any(item[0] == site.call.expression for item in statement[2]):
                for expression in _calls_in(statement[3]):
                    call = calls.get(id(expression))
                    if call is not None and call.active and _sure(call, known):
                        yield from (t for t in sorted(call.targets) if self._own(part, t, call))

    def _own(self, part: Part, target: str, call: Call) -> bool:
        """Whether a callable that a table is handed is one of the path's runner; whatever else a table calls is its own."""
        outermost, inside, _ = target.partition(".<locals>")
        if not inside:
            return len(call.targets) == 1
        method = self._types.method(part.runner, outermost.rpartition(".")[2])
        return method is not None and method.name == outermost

    def _classes(self, part: Part) -> set[str]:
        return set(self._types.mro(part.runner)) | set(self._types.mro(part.table))

    def _enters(self, region: set[str], outer: Part, part: Part) -> bool:
        """Whether a region comes to where a path captures or replays: over the path's own methods, whatever they ask.

        What both paths run, a table that both file their graphs in above all, is the outer one's there.
        """
        own = self._classes(part) - self._classes(outer)
        sites = {site.scope.name for site in part.sites if site.role in ("capture", "replay") and site.form != "runner"}
        sites -= {site.scope.name for site in outer.sites}
        stack = [name for name in region if name in sites or self._owner(name) in own]
        seen: set[str] = set()
        while stack:
            name = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            if name in sites and self._acts(name, part):
                return True
            for call in self._linked.calls.get(name, ()):
                if call.active and not _asks_state(call):
                    stack += [t for t in call.targets if t in self._linked.reached and self._owner(t) in own]
        return False

    def _acts(self, function: str, part: Part) -> bool:
        """Whether one of a function's primitives runs without the function asking whether a capture is under way."""
        lines = {s.line for s in part.sites if s.scope.name == function and s.role in ("capture", "replay")}
        return any(
            call.active and call.line in lines and not _asks_state(call)
            for call in self._linked.calls.get(function, ())
        )

    def _owner(self, function: str) -> str | None:
        definition = self._linked.definitions.get(function.partition(".<locals>")[0])
        return definition.owner if definition is not None else None


def _sure(call: Call, known: frozenset[Guard]) -> bool:
    return all(guard.value is Truth.TRUE or guard in known for guard in call.guards)


def _asks_state(call: Call) -> bool:
    """Whether a call stands under a test of whether a capture is under way."""
    return any(_STATE.search(guard.text) for guard in call.guards if guard.value is not Truth.TRUE)


def _calls_in(part: Any) -> Iterator[Expression]:
    if isinstance(part, list):
        if len(part) == 4 and part[0] == "c" and isinstance(part[2], list):
            yield part
        for item in part:
            yield from _calls_in(item)
