"""Which calls have certainly been made before others: a name of a module is not what it was once a setter has run.

A module's top level gives a name a literal, and a function of the module sets it to what it is given. Where every way from
an entry to a reader passes a call of that setter first, no reader sees the literal. It is kept back while linking goes on,
and handed out after all where that is not proven.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from sgl_graph.analyzer.static.checkout.project import Module
from sgl_graph.analyzer.static.checkout.questions import question
from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import ASYNC, GENERATOR, Expression, Statement
from sgl_graph.analyzer.static.link.frame import GuardLink
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.linked import Known, Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.cells import Cell
    from sgl_graph.analyzer.static.link.values import Values
    from sgl_graph.analyzer.static.link.world import CallRecord, World

_FUNCTION = re.compile(rb"^def (\w+)\(([^)]*)\)[^\n]*:[^\n]*\n((?:[ \t]+[^\n]*\n|[ \t]*\n)*)", re.MULTILINE)
_GLOBAL = re.compile(rb"^    global (\w+)[ \t]*$", re.MULTILINE)
_LEAVES = re.compile(rb"\b(?:return|yield)\b")
_WORD = re.compile(rb"\w+")
_LITERAL = rb"^%s(?:[ \t]*:[^=\n]+)?[ \t]*=[ \t]*(?:True|False|None|-?\d+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*(?:#[^\n]*)?$"


@question
def switches(text: bytes) -> list[list[str]]:
    """Names that a module's top level gives one literal, each with a function that always sets it to what it is given."""
    found: list[list[str]] = []
    for function in _FUNCTION.finditer(text) if b"\n    global " in text else ():
        name, parameters, body = function.groups()
        given = set(_WORD.findall(parameters))
        for declared in _GLOBAL.findall(body):
            stored = re.search(rb"^    %s = ([^\n]*)$" % declared, body, re.MULTILINE)
            if stored is None or _LEAVES.search(body, 0, stored.start()) or b"yield" in body:
                continue
            # The top level mentions it once, where it gives the literal.
            mentions = re.findall(rb"^(?=\S)[^\n]*\b%s\b" % declared, text, re.MULTILINE)
            literal = re.search(_LITERAL % declared, text, re.MULTILINE)
            if given & set(_WORD.findall(stored[1])) and literal is not None and len(mentions) == 1:
                found.append([declared.decode(), name.decode()])
    return found


class _Step(NamedTuple):
    """One statement on the way down to an expression: where it stands in its block, and which block of its own is next."""

    position: int
    kind: str
    next: int


class Withheld:
    """Literals that are kept back, and the proof that nobody sees them."""

    def __init__(self, world: World, entries: Iterable[str]) -> None:
        self._world = world
        self._entries = set(entries)
        self._kept: dict[tuple[str, str], tuple[Cell, Values, str]] = {}
        self._switches: dict[str, dict[str, str]] = {}
        self._released: set[tuple[str, str]] = set()
        self._places: dict[tuple[str, int], tuple[_Step, ...] | None] = {}

    def keep(self, module: Module, name: str, cell: Cell, values: Values) -> bool:
        """Whether a value that the top level of a module gives a name is kept back."""
        known = self._switches.get(module.name)
        if known is None:
            known = self._switches[module.name] = dict(self._world.project.questions.ask(module.path, switches))
        setter, key = known.get(name), (module.name, name)
        if setter is None or key in self._released:
            return False
        self._kept[key] = (cell, values, f"{module.name}:{setter}")
        return True

    def release(self, *, final: bool) -> bool:
        """Hand out what somebody may see; True when that was anything.

        Args:
            final: whether nothing else will happen: what was set by now is set.
        """
        found = False
        for key in sorted(self._kept):
            cell, values, setter = self._kept[key]
            readers = cell.each_reader()
            if not readers or (cell.peek() and not final):
                continue
            if not cell.peek() or not self._proven(key[0], setter, readers):
                del self._kept[key]
                self._released.add(key)
                self._world.heap.write(cell, values)
                found = True
        self._places.clear()
        return found

    def _proven(self, module: str, setter: str, readers: Iterable[Activation]) -> bool:
        wanted = set()
        for reader in readers:
            if reader.function is None or reader.module.name != module:
                return False  # the top level reads it early; another module may have taken it when it was imported
            wanted.add(reader.qualname)
        return not _Search(self._world, setter, self._places).reaches(self._entries, wanted)


class _Search:
    """Ways through the calls made so far that pass no call of a setter."""

    def __init__(self, world: World, setter: str, places: dict[tuple[str, int], tuple[_Step, ...] | None]) -> None:
        self._world = world
        self._places = places
        self._calls: dict[str, list[CallRecord]] = {}
        self._callers: dict[str, list[CallRecord]] = {}
        for record in world.records.values():
            if record.live and record.targets:
                self._calls.setdefault(record.caller, []).append(record)
                for target in record.targets:
                    self._callers.setdefault(target, []).append(record)
        self._running: dict[str, list[Activation]] = {}
        for activation in world.activations.values():
            if activation.runs:
                self._running.setdefault(activation.qualname, []).append(activation)
        self._setting = self._always_setting(setter)

    def reaches(self, entries: set[str], wanted: set[str]) -> bool:
        """Whether a way from an entry, or from the top level of a module, leads to any of these functions."""
        leading = set(wanted)
        stack = list(wanted)
        while stack:
            for record in self._callers.get(stack.pop(), ()):
                if record.caller not in leading:
                    leading.add(record.caller)
                    stack.append(record.caller)
        stack = [n for n in leading if n in entries or n.endswith(":<module>") or n not in self._callers]
        seen = set(stack)
        while stack:
            name = stack.pop()
            if name in wanted:
                return True
            for record in self._calls.get(name, ()):
                if not leading.isdisjoint(record.targets) and not self._follows(record):
                    new = leading.intersection(record.targets) - seen
                    seen |= new
                    stack += new
        return False

    def _always_setting(self, setter: str) -> set[str]:
        """Functions that call the setter whenever they end."""
        found = {setter}
        stack = [setter]
        while stack:
            for record in self._callers.get(stack.pop(), ()):
                name = record.caller
                if name not in found and self._sets(record, found) and self._always_made(record):
                    found.add(name)
                    stack.append(name)
        return found

    @staticmethod
    def _sets(record: CallRecord, setting: set[str]) -> bool:
        """Whether all that a call may call is known, and sets."""
        certain = record.known is Known.DIRECT or (record.known is not Known.NAME_ONLY and "?" not in record.receivers)
        return certain and record.targets.keys() <= setting

    def _always_made(self, record: CallRecord) -> bool:
        place = self._place(record)
        links = _links(record)
        body = self._body(record.caller)
        lazy = any(a.function is not None and a.function.facts.flags & (GENERATOR | ASYNC) for a in links)
        if place is None or lazy or any(step.kind not in _PLAIN for step in place) or _left_before(body, place):
            return False
        return all(
            a in links and all(_holds(link, body) for link in _chain(links[a]))
            for a in self._running.get(record.caller, ())
        )

    def _follows(self, record: CallRecord) -> bool:
        """Whether the function that makes a call has set before."""
        place = self._place(record)
        if place is None:
            return False
        links = _links(record)
        for other in self._calls.get(record.caller, ()):
            if other is record or not self._sets(other, self._setting):
                continue
            before = self._place(other)
            if before is None or not _precedes(before, place):
                continue
            others = _links(other)
            if all(a in others and _within(others[a], links[a]) for a in links):
                return True
        return False

    def _body(self, caller: str) -> list[Statement]:
        for activation in self._running.get(caller, ()):
            function = activation.function
            return function.module.function_body(function.index) if function is not None else []
        return []

    def _place(self, record: CallRecord) -> tuple[_Step, ...] | None:
        """Where a call stands among the statements of its function; None where it need not be made, or is not written."""
        key = (record.caller, id(record.expression))
        if key not in self._places:
            body = self._body(record.caller)
            self._places[key] = _locate(body, record.expression) if record.expression[0] == "c" else None
        return self._places[key]


def _links(record: CallRecord) -> dict[Activation, GuardLink | None]:
    if isinstance(record.guards, dict):
        return record.guards
    return {record.evaluated_by: record.guards} if record.evaluated_by is not None else {}


def _chain(link: GuardLink | None) -> Iterator[GuardLink]:
    while link is not None:
        yield link
        link = link.outer


def _within(link: GuardLink | None, other: GuardLink | None) -> bool:
    """Whether the conditions around one call hold wherever those around another do."""
    around = {id(one) for one in _chain(other)}
    return all(id(one) in around or one.value is Truth.TRUE for one in _chain(link))


def _holds(link: GuardLink, body: list[Statement]) -> bool:
    """Whether a condition holds, or nothing after it comes to an end where it does not."""
    if link.value is Truth.TRUE:
        return True
    for statement in walk(body):
        if statement[0] == "assert" and statement[2] is link.test:
            return True
        if statement[0] == "if" and statement[2] is link.test:
            kinds = {inner[0] for inner in walk(statement[3])}
            return link.negated and bool(statement[3]) and statement[3][-1][0] == "raise" and not kinds & _JUMPS
    return False


_JUMPS = {"return", "break", "continue", "try", "with"}
_PLAIN = ("", "if")
_OPAQUE = {"for", "while", "try", "match", "with"}
#: Blocks of compound statements, by their position in the statement.
_BLOCKS = {"if": (3, 4), "for": (4, 5), "while": (3, 4), "with": (3,)}


def _left_before(body: list[Statement], place: tuple[_Step, ...]) -> bool:
    """Whether a loop or another block on the way to a place may end the function: no condition tells of that."""
    block = body
    for step in place:
        for statement in block[: step.position]:
            if statement[0] in _OPAQUE and any(inner[0] == "return" for inner in walk([statement])):
                return True
        block = block[step.position][step.next] if step.next else []
    return False


def _precedes(one: tuple[_Step, ...], other: tuple[_Step, ...]) -> bool:
    """Whether a call is made before another one is, if both are: of its own blocks only conditions and contexts are left."""
    for depth, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return left.position < right.position and all(step.kind in _PLAIN for step in one[depth:])
    return False


def _locate(body: list[Statement], wanted: Expression) -> tuple[_Step, ...] | None:
    for position, statement in enumerate(body):
        kind = statement[0]
        if kind in ("def", "class"):
            continue
        blocks = _BLOCKS.get(kind, ())
        inner = [(index, statement[index]) for index in blocks]
        if kind == "try":
            inner = [
                (2, statement[2]),
                *((100 + n, h[2]) for n, h in enumerate(statement[3])),
                (4, statement[4]),
                (5, statement[5]),
            ]
        elif kind == "match":
            inner = [(100 + n, case[2]) for n, case in enumerate(statement[3])]
        for index, statements in inner:
            found = _locate(statements, wanted)
            if found is not None:
                return (_Step(position, kind, index), *found)
        heads = [part for n, part in enumerate(statement) if n not in blocks] if kind not in ("try", "match") else []
        if any(isinstance(part, list) and _evaluates(part, wanted) for part in heads):
            return (_Step(position, kind if kind == "while" else "", 0),)
    return None


def _evaluates(part: list[object], wanted: Expression) -> bool:
    """Whether an expression comes to another one whatever its values are."""
    if part is wanted:
        return True
    kind = part[0] if part else None
    if kind in ("l", "C", "i", "bo"):
        first = part[1] if kind == "i" else part[2] if kind == "bo" else None
        return isinstance(first, list) and _evaluates(first, wanted)
    return any(isinstance(item, list) and _evaluates(item, wanted) for item in part)
