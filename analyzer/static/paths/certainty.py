"""What certainly runs where the model is not known: of several classes that a call may meet, none certainly is the one."""

from __future__ import annotations

from sgl_graph.analyzer.static.linked import Call, Guard, Known, Linked, Truth

_MAKING = frozenset({"__init__", "__new__", "__post_init__"})


def without_model(linked: Linked) -> dict[str, Truth]:
    """Reached functions, certain only where no choice among alternatives lies on the way to them.

    The linker counts every target of a certain call as certain. That is right for a loop over the layers of a model that
    is known; without its configuration every model class is a target, and one of them runs.
    """
    known = linked.reached
    stack = [name for name in known if name in linked.entries or name.endswith(":<module>")]
    certain: set[str] = set()
    alternatives = {name: _alternatives(calls) for name, calls in linked.calls.items()}
    while stack:
        name = stack.pop()
        if name in certain or known.get(name) is not Truth.TRUE:
            continue
        certain.add(name)
        if name not in linked.graph:
            continue
        either = alternatives.get(name, set())
        for _, target, data in linked.graph.out_edges(name, data=True):
            if (
                data["known"] is not Known.NAME_ONLY
                and (data["line"], target) not in either
                and _settled(data["guards"])
            ):
                stack.append(target)
    return {name: Truth.TRUE if name in certain else Truth.UNKNOWN for name in known}


def _settled(guards: tuple[Guard, ...]) -> bool:
    return all(g.value is Truth.TRUE or (g.value is Truth.UNKNOWN and not g.depends) for g in guards)


def _alternatives(calls: list[Call]) -> set[tuple[int, str]]:
    """Line and target of calls that have other targets besides, of which one runs."""
    firm: set[tuple[int, str]] = set()
    found: set[tuple[int, str]] = set()
    for call in calls:
        # Making one object runs several functions; any other call runs one of its targets.
        made = len(call.constructs) == 1 and all(map(_makes, call.targets))
        either = len(call.constructs) > 1 or (len(call.targets) > 1 and not made)
        (found if either else firm).update((call.line, target) for target in call.targets)
    return found - firm


def _makes(function: str) -> bool:
    return function.rpartition(".")[2] in _MAKING
