"""Which reached functions run for certain: no condition of unsettled configuration, and no bare name, lies on the way.

A method runs for an object. Where code makes objects of its class, but all of that under conditions that are not settled, no
call of the method is certain, however certain the call itself is: an attribute that may hold one may hold nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import networkx as nx
from sgl_graph.analyzer.static.link.values import ClassValue
from sgl_graph.analyzer.static.linked import Call, Case, Guard, Known, Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.values import FunctionValue
    from sgl_graph.analyzer.static.link.world import World

_MAKING = frozenset({"__init__", "__new__", "__post_init__"})


def certain(
    world: World,
    graph: nx.MultiDiGraph[str],
    calls: Mapping[str, Sequence[Call]],
    entries: Sequence[str],
    names: Iterable[str],
    case: Case | None = None,
) -> dict[str, Truth]:
    """Reached functions; TRUE where one certainly runs, in a case if one is given."""
    passes = settled if case is None else lambda guards: settled(case.decided(guards))
    classes = {cls.qualname: [base.qualname for base in cls.line] for cls in world.classes.values()}
    makers = {
        caller: [call for call in made if call.active and call.constructs]
        for caller, made in calls.items()
        if any(call.constructs for call in made)
    }
    made_somewhere = {
        base for made in makers.values() for call in made for name in call.constructs for base in classes.get(name, ())
    }
    owners = {f.qualname: _owner(f) for f in world.functions.values()}
    reached = set(names)
    made: set[str] = set()
    waiting: dict[str, set[str]] = {}
    found: set[str] = set()
    # Whatever was loaded was imported: module level runs.
    stack = [name for name in reached if name in entries or name.endswith(":<module>")]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        owner = owners.get(name)
        if owner in made_somewhere and owner not in made:
            waiting.setdefault(owner, set()).add(name)
            continue
        found.add(name)
        for call in makers.get(name, ()):
            if passes(call.guards):
                for base in {base for cls in call.constructs for base in classes.get(cls, ())} - made:
                    made.add(base)
                    stack.extend(waiting.pop(base, ()))
        if name not in graph:
            continue
        for _, target, data in graph.out_edges(name, data=True):
            if target not in found and data["known"] is not Known.NAME_ONLY and passes(data["guards"]):
                stack.append(target)
    return {name: Truth.TRUE if name in found else Truth.UNKNOWN for name in sorted(reached)}


def settled(guards: tuple[Guard, ...]) -> bool:
    """Whether conditions rest on nothing but what running code can tell."""
    return all(g.value is Truth.TRUE or (g.value is Truth.UNKNOWN and not g.depends) for g in guards)


def _owner(function: FunctionValue) -> str | None:
    """The class whose object a function is called for; none for constructors and for functions of the class itself."""
    owner = function.owner
    if not isinstance(owner, ClassValue) or function.facts.name in _MAKING:
        return None
    decorators = {d[1] for d in function.facts.decorators if d[0] == "n"}
    return None if decorators & {"staticmethod", "classmethod"} else owner.qualname
