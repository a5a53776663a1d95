"""When code runs: before serving or while serving. Only what start-up alone turns is settled for the whole life of a process."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.link.latches import is_state, settled_names
from sgl_graph.analyzer.static.linked import Guard

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.world import CallRecord, World


@dataclass(frozen=True, slots=True)
class Serving:
    """Names of functions in which a worker serves until it ends, and of those that serve administration."""

    loops: re.Pattern[str]
    administration: re.Pattern[str]


class Moments:
    """Which tests of objects' switches are open, given what start-up calls and what requests call."""

    def __init__(
        self, world: World, entries: Sequence[str], live: Iterable[CallRecord], serving: Serving | None
    ) -> None:
        self._requests: set[str] = set()
        self._at_start: set[str] = set()
        self._open: dict[str, frozenset[str]] = {}
        if serving is None:
            return
        callees: dict[str, set[str]] = {}
        for record in live:
            callees.setdefault(record.caller, set()).update(record.targets)
        loops = {name for name in callees if serving.loops.search(_simple(name))}
        administration = {
            name for targets in callees.values() for name in targets if serving.administration.search(_simple(name))
        }
        self._requests = _closure(callees, loops, administration)
        self._at_start = _closure(callees, entries, loops | administration)
        self._open = {
            name: functions
            for name, functions in world.latches.turned_by().items()
            if functions & self._at_start and not functions & self._requests
        }

    def once(self, function: str) -> bool:
        """Whether start-up executes a function, and no request does."""
        return function in self._at_start and function not in self._requests

    def settled(self, caller: str, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """Guards that rest on switches only where start-up both turns and asks them."""
        if not any(is_state(name) for guard in guards for name in guard.depends):
            return guards
        open_states = {} if caller in self._requests else self._open
        return tuple(replace(guard, depends=settled_names(guard.depends, open_states)) for guard in guards)


def _simple(name: str) -> str:
    return name.rsplit(":", 1)[-1].rsplit(".", 1)[-1]


def _closure(callees: dict[str, set[str]], starts: Iterable[str], without: set[str]) -> set[str]:
    found: set[str] = set()
    stack = list(starts)
    while stack:
        name = stack.pop()
        if name not in found:
            found.add(name)
            stack.extend(target for target in callees.get(name, ()) if target not in without)
    return found
