"""The code that a path's capture runs: what its runner executes from its constructor on, as far as resolved calls lead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from sgl_graph.analyzer.records.pathmap import CodeRef
from sgl_graph.analyzer.static.linked import Call, Known, Linked
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.scopes import public

#: Stands between a function and what is defined in it.
_INSIDE = ".<locals>"


class Captured:
    """Finds the code of paths.

    The call graph knows a runner's methods, and the closures that it hands to a table, for all runners at once. Of a class
    of runners only what the path's own runner executes is followed, and of others only those that it makes.

    Args:
        capturing: classes whose objects capture for others: runners, and what forwards to them.
    """

    def __init__(self, linked: Linked, types: GraphTypes, capturing: Iterable[str]) -> None:
        self._linked = linked
        self._types = types
        self._capturing = {base for name in capturing for base in types.mro(name)}

    def code(self, runner: str, starts: Iterable[str]) -> dict[str, Call | None]:
        """Functions that run when a runner captures, the nearest first, each with the call that leads to it.

        Args:
            runner: its class.
            starts: functions that begin the capture.
        """
        first = sorted(name for name in set(starts) if name in self._linked.reached)
        made = {runner}
        while True:
            found = self._closure(first, made)
            more = self._makes(found) - made
            if not more:
                return found
            made |= more

    def _closure(self, starts: Iterable[str], made: set[str]) -> dict[str, Call | None]:
        found: dict[str, Call | None] = dict.fromkeys(starts)
        queue = deque(found)
        while queue:
            for call in self._calls(queue.popleft()):
                for target in sorted(self._theirs(call, made)):
                    if target not in found and target in self._linked.reached and self._runs(target, made):
                        found[target] = call
                        queue.append(target)
        return found

    def _calls(self, function: str) -> Iterator[Call]:
        return (c for c in self._linked.calls.get(function, ()) if c.active and c.known is not Known.NAME_ONLY)

    def _theirs(self, call: Call, made: set[str]) -> Iterable[str]:
        """What a call leads to: of the classes that its receiver may have, those of these runners count where there are any.

        A runner that borrows another's method is a receiver of the calls in it, whether it keeps its graphs itself or not.
        """
        own = made & call.receivers
        if not own:
            return call.targets
        others = {base for name in call.receivers for base in self._types.mro(name)}
        return [t for t in call.targets if self._owner(t) not in others or self._executes(t, own)]

    def _makes(self, code: Iterable[str]) -> set[str]:
        """Other classes of runners that some code makes."""
        return {name for f in code for call in self._calls(f) for name in call.constructs} & self._capturing

    def _runs(self, function: str, made: set[str]) -> bool:
        """Whether a function is none of a runner's, or one that a runner of these classes executes."""
        return self._owner(function) not in self._capturing or self._executes(function, made)

    def _owner(self, function: str) -> str | None:
        definition = self._linked.definitions.get(function.partition(_INSIDE)[0])
        return definition.owner if definition is not None else None

    def _executes(self, function: str, classes: Iterable[str]) -> bool:
        """Whether an object of one of the classes executes a method (or what is defined in it) under its name."""
        outermost = function.partition(_INSIDE)[0]
        name = outermost.rpartition(".")[2]
        return any((m := self._types.method(cls, name)) is not None and m.name == outermost for cls in classes)


class Owners:
    """Finds which classes captured code comes to.

    Args:
        names: the classes in question.
    """

    def __init__(self, linked: Linked, names: Iterable[str]) -> None:
        self._linked = linked
        self._names = {name for name in names if name in linked.classes}
        self._by_method: dict[str, list[str]] = {}
        for name in sorted(self._names):
            for method in self._methods(name):
                self._by_method.setdefault(method, []).append(name)

    def in_code(self, code: Mapping[str, Call | None]) -> dict[str, CodeRef]:
        """Of the classes, those of which some code calls or makes objects, and those that these hold; with the nearest call."""
        found: dict[str, CodeRef] = {}
        for function in code:
            for call in self._linked.calls.get(function, ()):
                if call.active:
                    for name in self._by(call):
                        found.setdefault(name, CodeRef(file=call.file, line=call.line, qualname=public(call.caller)))
        waiting = list(found)
        while waiting:
            holder = waiting.pop()
            held = set().union(*self._linked.classes[holder].attributes.values())
            for name in sorted((held & self._names) - found.keys()):
                # What forwards by names that it is given makes no call that the source shows.
                found[name] = found[holder]
                waiting.append(name)
        return found

    def _by(self, call: Call) -> Iterator[str]:
        for target in sorted(call.targets):
            for name in self._by_method.get(target, ()):
                if name in call.receivers or call.known is Known.OVERRIDE:
                    yield name
        yield from sorted(call.constructs & self._names)

    def _methods(self, name: str) -> Iterator[str]:
        """The functions that an object of a class executes under their names."""
        seen: set[str] = set()
        for ancestor in self._linked.classes[name].ancestors:
            home = self._linked.classes.get(ancestor)
            for short, method in home.methods.items() if home is not None else ():
                if short not in seen:
                    seen.add(short)
                    yield method
