"""Workspaces that objects of this configuration keep for their kernels: who holds one, and whose memory it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from sgl_graph.analyzer.records.pathmap import Component, Reach
from sgl_graph.analyzer.static.config.walking import calls_in, walk
from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.linked import Call, ClassInfo, Linked, Truth
from sgl_graph.analyzer.static.paths.memory import CACHING
from sgl_graph.analyzer.static.paths.parts import worse

_NAME = re.compile(r"workspaces?(_buffers?)?$", re.IGNORECASE)
#: Functions of torch that take memory from its caching allocator.
_ALLOCATING = re.compile(r"^torch\.(empty|zeros|ones|full|rand|tensor)\w*$")


def workspaces_of(linked: Linked, built: Callable[[str], Reach]) -> Iterator[tuple[str, Component]]:
    """One component for each class that is built and keeps a workspace, with the class.

    Args:
        built: whether this configuration makes objects of a class.
    """
    for info in sorted(linked.classes.values(), key=lambda i: i.qualname):
        names = {name for name in info.attributes if _NAME.search(name)}
        made = built(info.qualname) if names else "no"
        if made == "no":
            continue
        kept = sorted(_stores(linked, info, names), key=_telling)
        if kept:
            line, memory, path, _ = kept[0]
            reach: Reach = "yes" if any(store[3] == "yes" for store in kept) else "unresolved"
            yield (
                info.qualname,
                Component(
                    kind="workspace",
                    class_=info.qualname.rpartition(":")[2],
                    memory=memory,
                    reachable=worse(made, reach),
                    file=path,
                    line=line,
                ),
            )


def _telling(store: tuple[int, str, str, Reach]) -> tuple[bool, str, int]:
    """The most telling store first: the first one of torch's own memory."""
    line, memory, path, _ = store
    return memory != CACHING, path, line


def _stores(linked: Linked, info: ClassInfo, names: set[str]) -> Iterator[tuple[int, str, str, Reach]]:
    """Where methods that run store into the attributes: line, whose memory it is, file, and whether that runs."""
    for ancestor in info.ancestors:
        home = linked.classes.get(ancestor)
        for function in home.methods.values() if home is not None else ():
            definition, truth = linked.definitions.get(function), linked.reached.get(function)
            if definition is None or truth is None or not definition.facts.parameters:
                continue
            receiver = definition.facts.parameters[0].name
            calls = {id(call.expression): call for call in linked.calls.get(function, ())}
            body = definition.module.function_body(definition.index)
            for statement in walk(body):
                if statement[0] == "=" and any(_is_kept(target, receiver, names) for target in statement[2]):
                    found = _source(linked, function, body, statement, calls)
                    if found is not None:
                        memory, certain = found
                        reach: Reach = "yes" if certain and truth is Truth.TRUE else "unresolved"
                        yield statement[1], memory, definition.module.path, reach


def _is_kept(target: Expression, receiver: str, names: set[str]) -> bool:
    return bool(target[0] == "a" and target[1] == ["n", receiver] and target[2] in names)


def _source(
    linked: Linked, function: str, body: list[Statement], statement: Statement, calls: dict[int, Call]
) -> tuple[str, bool] | None:
    """Whose memory a stored value is, and whether the store certainly happens; None where the source proves neither."""
    value = statement[3]
    if value[0] == "v":
        return None
    made = [statement]
    if value[0] == "n":
        # A local: what it was bound to says whose memory it is, while the store itself may stand under conditions.
        made = [s for s in walk(body) if s[0] == "=" and ["n", value[1]] in s[2]]
    found = [calls[id(e)] for s in made for e in calls_in(s) if id(e) in calls]
    if any(not call.active for call in found):
        return None
    certain = value[0] == "c" and all(_settled(call) for call in found)
    names = [f"{function}.<locals>.<lambda:{line}>" for s in made for line in _lambdas(s)]
    lambdas = [call for name in names for call in linked.calls.get(name, ())]
    if any(_ALLOCATING.match(path) for call in (*found, *lambdas) for path in call.externals):
        return CACHING, certain
    libraries = sorted(
        {path for call in found for path in call.externals if not path.startswith(("torch.", "builtins."))}
    )
    return (f"made by {libraries[0]}, whose allocator is not known", certain) if libraries else None


def _settled(call: Call) -> bool:
    return not any(guard.value is Truth.UNKNOWN and guard.depends for guard in call.guards)


def _lambdas(part: list[Any]) -> Iterator[int]:
    """Lines of the lambdas in a statement."""
    if len(part) == 3 and part[0] == "l":
        yield part[2]
    for item in part:
        if isinstance(item, list):
            yield from _lambdas(item)
