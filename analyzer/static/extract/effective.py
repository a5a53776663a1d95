"""What statements of a body do besides speaking: texts of messages go, whatever they evaluate on the way stays.

A call that prints or logs hands its arguments to code that shows them and returns nothing. So only those parts of its
arguments that run code themselves (attributes, calls, subscripts ...) are of any consequence: they stand in its place.
Everybody reads bodies in this form, so an edit of such a text, or a new one, makes no difference to any result.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sgl_graph.analyzer.static.extract import facts as f

_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical", "log"})
_LOG_WORDS = frozenset({"exc_info", "stack_info", "stacklevel", "extra"})
_PRINT_WORDS = frozenset({"sep", "end", "flush"})
_ERRORS = frozenset(
    name for name, item in vars(builtins).items() if isinstance(item, type) and issubclass(item, BaseException)
)
#: `global` as an encoded body holds it.
_GLOBAL = b"\xa6global"


@dataclass(frozen=True, slots=True)
class Speech:
    """What speaks in one module's functions.

    Attributes:
        loggers: names that stand for loggers of the standard library wherever a function of the module reads them.
        builtins: `print` and exceptions that the module does not name otherwise.
    """

    loggers: frozenset[str]
    builtins: frozenset[str]


def speech_of(facts: f.ModuleFacts) -> Speech:
    """The names through which a module's functions print, log and complain."""
    bound = _Bound()
    bound.block(facts, facts.body)
    if bound.star:
        return Speech(frozenset(), frozenset())  # whatever it binds
    local = {name for function in facts.functions for name in function.locals}
    once = {name for name, count in bound.names.items() if count == 1} - local
    loggers = frozenset(name for name in _made(facts, bound) if name in once)
    plain = (_ERRORS | {"print"}) - bound.names.keys() - local
    declared = declared_global(facts, loggers | plain)
    return Speech(loggers - declared, plain - declared)


def bound_at_top(facts: f.ModuleFacts) -> dict[str, int]:
    """Names that a module's top level binds, or may, with how often."""
    return bound_by_block(facts, facts.body)


def bound_by_block(facts: f.ModuleFacts, body: Iterable[f.Statement]) -> dict[str, int]:
    """Names that a module's or a class's body binds, or may, with how often."""
    bound = _Bound()
    bound.block(facts, body)
    return bound.names


def declared_global(facts: f.ModuleFacts, names: Iterable[str]) -> set[str]:
    """Of some names those that a function or a class of the module may bind at its top level."""
    declaring = [body for item in facts.functions if _GLOBAL in (body := bytes(item.body))]
    declared = {name for name in names if any(name.encode() in body for body in declaring)}
    for item in facts.classes:
        declared |= set(_globals(item.body))
    return declared


def effective(body: list[f.Statement], speech: Speech, *, messages: bool) -> list[f.Statement]:
    """A body without what it only says; nested blocks are changed in place.

    Args:
        messages: keep the texts of exceptions and assertions, for whom they are values.
    """
    found: list[f.Statement] = []
    for item in body:
        kind = item[0]
        if kind == "e":
            spoken = _spoken(item[2], speech)
            if spoken is None:
                found.append(item)
            else:
                found += [["e", item[1], part] for part in spoken]
            continue
        if kind == "raise" and not messages:
            item = _raised(item, speech)
        elif kind == "assert" and not messages and item[3] is not None:
            parts = list(_parts(item[3]))
            item = [kind, item[1], item[2], ["t", parts] if parts else None]
        else:
            for block in _blocks(item):
                block[:] = effective(block, speech, messages=messages)
        found.append(item)
    return found


def _blocks(item: f.Statement) -> Iterable[list[f.Statement]]:
    """The blocks of a compound statement."""
    kind = item[0]
    if kind in ("if", "while"):
        return item[3], item[4]
    if kind == "for":
        return item[4], item[5]
    if kind == "with":
        return (item[3],)
    if kind == "try":
        return (item[2], *(handler[2] for handler in item[3]), item[4], item[5])
    if kind == "match":
        return (case[2] for case in item[3])
    return ()


def _spoken(e: f.Expression, speech: Speech) -> list[f.Expression] | None:
    """What a call that prints or logs evaluates on the way; None where the expression is no such call."""
    if e[0] != "c":
        return None
    callee = e[1]
    if callee[0] == "a":
        if callee[1][0] != "n" or callee[1][1] not in speech.loggers or callee[2] not in _LEVELS:
            return None
        words = _LOG_WORDS
    elif callee[0] == "n" and callee[1] == "print" and "print" in speech.builtins:
        words = _PRINT_WORDS
    else:
        return None
    if any(argument[0] == "k" and argument[1] not in words for argument in e[2]):
        return None
    return [part for argument in e[2] for part in _parts(_given(argument))]


def _raised(item: f.Statement, speech: Speech) -> f.Statement:
    """`raise ValueError(f"no {name}")` with what its arguments are but for texts."""
    e = item[2]
    if e is None or e[0] != "c" or e[1][0] != "n" or e[1][1] not in speech.builtins:
        return item
    given: list[f.Expression] = []
    for argument in map(_given, e[2]):
        given += [argument] if argument[0] == "n" else _parts(argument)  # handlers may take a value out of it
    return ["raise", item[1], ["c", e[1], given, e[3]]]


def _given(argument: f.Expression) -> f.Expression:
    value: f.Expression = argument[-1] if argument[0] in ("k", "*", "**") else argument
    return value


def _parts(e: f.Expression) -> Iterator[f.Expression]:
    """The largest parts of a message that run code of their own; names, constants and texts made of them do not."""
    kind = e[0]
    if kind in ("n", "v", "x"):
        return
    if kind in ("f", "t", "L"):
        for item in e[1]:
            yield from _parts(item)
    elif kind == "b" and e[1] in ("%", "+") and (e[2][0] == "f" or (e[2][0] == "v" and isinstance(e[2][1], str))):
        yield from _parts(e[2])
        yield from _parts(e[3])
    else:
        yield e


# -- names of a module


def _made(facts: f.ModuleFacts, bound: _Bound) -> Iterator[str]:
    """Names that the module's own statements bind to `logging.getLogger(...)`."""
    if not bound.logging or bound.names.get("logging", 0) != bound.logging:
        return
    for item in facts.body:
        if item[0] == "=" and len(item[2]) == 1 and item[2][0][0] == "n" and item[3][0] == "c":
            callee = item[3][1]
            if callee[0] == "a" and callee[1] == ["n", "logging"] and callee[2] == "getLogger":
                yield item[2][0][1]


def _globals(body: Iterable[f.Statement]) -> Iterator[str]:
    for item in body:
        if item[0] == "global":
            yield from item[2][1:]
        for block in _blocks(item):
            yield from _globals(block)


class _Bound:
    """Names that a module's top level binds, with how often; more of them than it does are no harm."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        #: How often `import logging` binds the standard library's module.
        self.logging = 0
        self.star = False

    def _bind(self, name: str) -> None:
        self.names[name] = self.names.get(name, 0) + 1

    def block(self, facts: f.ModuleFacts, body: Iterable[f.Statement]) -> None:
        for item in body:
            kind = item[0]
            if kind == "def":
                self._bind(facts.functions[item[2]].name)
            elif kind == "class":
                self._bind(facts.classes[item[2]].name)
            elif kind == "import":
                for _, dotted, renamed in item[2]:
                    root = dotted.split(".")[0]
                    self._bind(renamed or root)
                    self.logging += renamed is None and root == "logging"
            elif kind == "from":
                if item[4] == "*":
                    self.star = True
                else:
                    for _, name, renamed in item[4]:
                        self._bind(renamed or name)
            elif kind == "del":
                self._targets(item[2])
            elif kind == "try":
                for handler in item[3]:
                    if handler[1] is not None:
                        self._bind(handler[1])
            if kind in ("=", "+=", ":", "for", "with"):
                self._targets(item[2])
            self._walrus(item)
            for block in _blocks(item):
                self.block(facts, block)

    def _targets(self, target: Any) -> None:
        """Every name in a target, also those that it only reads."""
        if isinstance(target, list):
            if len(target) == 2 and target[0] == "n" and isinstance(target[1], str):
                self._bind(target[1])
            else:
                for part in target:
                    self._targets(part)

    def _walrus(self, part: Any) -> None:
        if isinstance(part, list):
            if len(part) == 3 and part[0] == "w" and isinstance(part[1], str):
                self._bind(part[1])
            for item in part:
                self._walrus(item)
