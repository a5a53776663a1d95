"""The shape of a module's facts: all that an analysis can see of them but where things stand.

Line numbers reach results by their order and equality within one file, and as the numbers that are shown. So two modules
of one shape, whose positions pair up in one order, give results that differ in the numbers shown and in nothing else.
A function's body counts only where it was read: it is its header, not its place among the functions, that others see.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.effective import effective, speech_of

#: How much of a function's body was read: nothing, all but what it only says, the messages of exceptions as well.
UNREAD, READ, EVALUATED = 0, 1, 2
#: Where the line stands in an expression, and in which expressions.
_LINE_AT = {"a": 3, "c": 3, "s": 3, "l": 2}
_SHORT_LINES = 30


def is_short(function: f.FunctionFacts) -> bool:
    """Whether a function takes few lines: the one question about a number of lines that an analysis may ask."""
    return function.end_line - function.line <= _SHORT_LINES


@dataclass(slots=True)
class Shape:
    """What was seen of one module.

    Attributes:
        digest_input: equal for modules of equal shape.
        positions: the lines that were left out, in the order of the walk.
        lambdas: lines that names of lambdas hold, in the order of the walk.
        functions: indices of the functions met, in the order of the walk.
        read: for each of them how much of its body was taken in.
    """

    digest_input: bytes
    positions: list[int] = field(default_factory=list)
    lambdas: list[int] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)


def shape_of(
    facts: f.ModuleFacts,
    reads: Callable[[int, int], int],
    without: Container[int] = (),
    without_methods: Container[tuple[int, int]] = (),
    *,
    headers: bool = True,
) -> Shape:
    """The shape of a module.

    Args:
        without: positions in the module's body of statements that do not count.
        without_methods: the same of classes, each as the index of the class and the position in its body.
        headers: whether parameters count although nobody looks into the function.
        reads: how much of a function's body counts, by the number of functions met before it and its index.
    """
    walk = _Walk(facts, reads, without_methods, headers)
    body = walk.statements([item for position, item in enumerate(facts.body) if position not in without])
    found = walk.shape
    found.digest_input = msgspec.msgpack.encode([facts.error, body])
    return found


def paired(old: Iterable[int], new: Iterable[int]) -> dict[int, int] | None:
    """Old lines to new ones; None where one line has two counterparts, or where their order changed."""
    pairs: dict[int, int] = {}
    for left, right in zip(old, new, strict=True):
        if pairs.setdefault(left, right) != right:
            return None
    return pairs if rising(pairs) else None


def rising(pairs: dict[int, int]) -> bool:
    """Whether later lines have later counterparts."""
    values = [pairs[line] for line in sorted(pairs)]
    return all(before < after for before, after in itertools.pairwise(values))


def spelled_alike(pairs: dict[int, int], lines: Iterable[int]) -> bool:
    """Whether lines keep their order as texts too, for what is sorted by a text that holds them."""
    used = sorted(set(lines))
    return all(
        sorted(used, key=lambda line: f"{line}{end}") == sorted(used, key=lambda line: f"{pairs[line]}{end}")
        for end in ("", ">")  # whether the text ends with the number or goes on
    )


class _Walk:
    """One pass over one module's facts."""

    def __init__(
        self,
        facts: f.ModuleFacts,
        reads: Callable[[int, int], int],
        without: Container[tuple[int, int]],
        headers: bool,
    ) -> None:
        self._facts = facts
        self._reads = reads
        self._without = without
        self._headers = headers
        self._speech = speech_of(facts)
        self.shape = Shape(b"")
        self._line = self.shape.positions.append

    def statements(self, items: list[f.Statement]) -> list[Any]:
        return [self._statement(item) for item in items]

    def _statement(self, item: f.Statement) -> list[Any]:
        kind = item[0]
        self._line(item[1])
        if kind == "def":
            return [kind, self._function(item[2])]
        if kind == "class":
            return [kind, self._class(item[2])]
        if kind in ("global", "nonlocal", "import", "from"):
            return [kind, *item[2:]]
        if kind == "try":
            handlers = []
            for type_, name, body, line in item[3]:
                self._line(line)
                handlers.append([self._maybe(type_), name, self.statements(body)])
            return [kind, self.statements(item[2]), handlers, self.statements(item[4]), self.statements(item[5])]
        if kind == "match":
            cases = [[self._maybe(p), self._maybe(guard), self.statements(body)] for p, guard, body in item[3]]
            return [kind, self._expression(item[2]), cases]
        if kind == "with":
            entered = [[self._expression(value), self._maybe(target)] for value, target in item[2]]
            return [kind, entered, self.statements(item[3])]
        if kind in ("if", "while"):
            return [kind, self._expression(item[2]), self.statements(item[3]), self.statements(item[4])]
        if kind == "for":
            head = [self._expression(item[2]), self._expression(item[3])]
            return [kind, *head, self.statements(item[4]), self.statements(item[5])]
        if kind in ("=", "del"):
            return [kind, [self._expression(part) for part in item[2]], *map(self._maybe, item[3:])]
        if kind == "+=":
            return [kind, self._expression(item[2]), item[3], self._expression(item[4])]
        if kind in (":", "e", "return", "raise", "assert", "break", "continue"):
            return [kind, *map(self._maybe, item[2:])]
        raise ValueError(f"statement of an unknown kind: {kind}")

    def _function(self, index: int) -> list[Any]:
        function = self._facts.functions[index]
        reads = self._reads(len(self.shape.functions), index)
        self.shape.functions.append(index)
        self.shape.read.append(reads)
        self._line(function.line)
        is_lambda = bool(function.flags & f.LAMBDA)
        if is_lambda:
            self.shape.lambdas.append(function.line)
        name = [function.name, None if is_lambda else function.qualname, function.flags & ~f.NESTS]
        # Where a function is defined its decorators and its defaults are evaluated, and the rest where it is called.
        if not reads and not self._headers:
            defaults = [self._expression(p.default) for p in function.parameters if p.default is not None]
            return [*name, defaults, [self._expression(decorator) for decorator in function.decorators]]
        header = [
            *name,
            [[p.name, p.kind, self._maybe(p.default), self._maybe(p.annotation)] for p in function.parameters],
            self._maybe(function.returns),
            [self._expression(decorator) for decorator in function.decorators],
        ]
        if not reads:
            return header
        body = effective(f.statements(function), self._speech, messages=reads == EVALUATED)
        return [*header, reads, function.flags, function.locals, is_short(function), self.statements(body)]

    def _class(self, index: int) -> list[Any]:
        facts = self._facts.classes[index]
        self._line(facts.line)
        self._line(facts.end_line)
        return [
            facts.name,
            facts.qualname,
            [self._expression(base) for base in facts.bases],
            [[name, self._expression(value)] for name, value in facts.keywords],
            [self._expression(decorator) for decorator in facts.decorators],
            self.statements([item for at, item in enumerate(facts.body) if (index, at) not in self._without]),
        ]

    def _maybe(self, item: f.Expression | None) -> Any:
        return None if item is None else self._expression(item)

    def _expression(self, item: f.Expression) -> list[Any]:
        operation = item[0]
        if operation in ("n", "v", "x"):
            return item
        if operation == "l":
            self._line(item[2])
            return ["l", self._function(item[1])]
        at = _LINE_AT.get(operation)
        if at is not None:
            self._line(item[at])
            return [self._part(part) for position, part in enumerate(item) if position != at]
        return [self._part(part) for part in item]

    def _part(self, part: Any) -> Any:
        """An operand: an expression, a list of such, a text or a constant."""
        if not isinstance(part, list) or not part:
            return part
        if isinstance(part[0], str):
            return self._expression(part)
        return [self._part(item) for item in part]
