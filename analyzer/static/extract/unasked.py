"""Statements of modules and classes that bind names which nobody looked up, and do nothing else.

A function without decorators, a constant and an import of a module from outside have no effect but to bind a name. Where
the analysis looked for no such name in the module (of a method: in any class), its result is the same with the
statement, without it, and with another one in its place. An asked name is one that was looked for, whether it was found or not.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator
from typing import Any

from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.effective import bound_at_top, bound_by_block, declared_global

#: Marks among asked names, which no name can be: all names were gone through; executed statements were counted.
EVERY, STEPS = "*", "import"
_BUILTINS = frozenset(dir(builtins))


def unasked(facts: f.ModuleFacts, asked: Collection[str], inside: Callable[[str], bool]) -> frozenset[int]:
    """Positions in a module's body of the statements that nobody could tell from no statement.

    Args:
        asked: names that were looked up in the module.
        inside: whether a dotted name, or a name of the module itself, is a module of the checkout.
    """
    if EVERY in asked:
        return frozenset()
    found: dict[int, list[str]] = {}
    for position, item in enumerate(facts.body):
        names = _bound_by(facts, item, asked, inside)
        if names and not any(_known_otherwise(name, asked) or inside(name) for name in names):
            found[position] = names
    if not found:
        return frozenset()
    counts = bound_at_top(facts)
    declared = declared_global(facts, {name for names in found.values() for name in names})
    return frozenset(
        position
        for position, names in found.items()
        if all(counts[name] == 1 and name not in declared for name in names)
    )


def unasked_methods(
    facts: f.ModuleFacts, asked: Collection[str], sought: Collection[str], patterns: Collection[tuple[str, str]]
) -> frozenset[tuple[int, int]]:
    """Methods that nobody looked for, each as the index of its class and its position in the class body.

    Args:
        asked: names that were looked up in the module.
        sought: names that were looked for in any class.
        patterns: beginnings and ends of names of which all were looked for.
    """
    if EVERY in asked:
        return frozenset()
    found: set[tuple[int, int]] = set()
    for index, item in enumerate(facts.classes):
        names = {
            position: facts.functions[statement[2]].name
            for position, statement in enumerate(item.body)
            if statement[0] == "def" and _bound_by(facts, statement, asked, lambda name: False)
        }
        free = {
            position: name
            for position, name in names.items()
            if name not in sought
            and not _known_otherwise(name, asked)
            and not any(name.startswith(first) and name.endswith(last) for first, last in patterns)
        }
        if free:
            counts = bound_by_block(facts, item.body)
            mentioned = set(_mentioned(facts, item.body))
            found.update((index, p) for p, name in free.items() if counts[name] == 1 and name not in mentioned)
    return frozenset(found)


def _mentioned(facts: f.ModuleFacts, part: Any) -> Iterator[str]:
    """Names that a class body, with the headers and the classes in it, may read."""
    if not isinstance(part, list):
        return
    if len(part) == 2 and part[0] == "n" and isinstance(part[1], str):
        yield part[1]
    elif len(part) == 3 and part[0] == "def" and isinstance(part[2], int):
        function = facts.functions[part[2]]
        yield from _mentioned(facts, [function.decorators, [p.default for p in function.parameters]])
    elif len(part) == 3 and part[0] == "class" and isinstance(part[2], int):
        inner = facts.classes[part[2]]
        yield from _mentioned(
            facts, [inner.bases, [value for _, value in inner.keywords], inner.decorators, inner.body]
        )
    else:
        for item in part:
            yield from _mentioned(facts, item)


def _known_otherwise(name: str, asked: Collection[str]) -> bool:
    """Whether a name was asked for, or may have been without a trace: who finds a builtin notes no lookup."""
    return name in asked or name in _BUILTINS or name.startswith("__")


def _bound_by(
    facts: f.ModuleFacts, item: f.Statement, asked: Collection[str], inside: Callable[[str], bool]
) -> list[str]:
    """The names that a statement binds if that is all that it does, else nothing."""
    kind = item[0]
    if kind == "def":
        function = facts.functions[item[2]]
        defaults = [parameter.default for parameter in function.parameters if parameter.default is not None]
        return [function.name] if not function.decorators and all(map(_is_scalar, defaults)) else []
    if kind == "=" and _is_scalar(item[3]) and all(target[0] == "n" for target in item[2]):
        return [target[1] for target in item[2]]
    if kind == "import" and STEPS not in asked and not any(inside(dotted.split(".")[0]) for _, dotted, _ in item[2]):
        return [renamed or dotted.split(".")[0] for _, dotted, renamed in item[2]]
    if kind == "from" and item[3] == 0 and item[4] != "*" and not inside(item[2].split(".")[0]):
        return [renamed or name for _, name, renamed in item[4]]
    return []


def _is_scalar(e: f.Expression) -> bool:
    return bool(e[0] == "v") or bool(e[0] == "u" and e[1] == "-" and e[2][0] == "v")
