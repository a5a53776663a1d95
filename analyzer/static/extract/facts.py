"""Facts of one module: a compact intermediate form of its source, cheap to store and to load.

Facts come from libcst alone. A function's body stays encoded until somebody reaches the function, so that a map of a
large checkout does not hold a tree of it; all uses of one name in decoded bodies are one object (`share`), so that the identity
of a node tells nodes apart except names. Statements and expressions are plain lists whose first item is the operation:

Expressions (`E`)
    ["n", name]                         ["v", constant]               ["a", E, attribute, line]
    ["c", E, arguments, line]           arguments: E | ["k", name, E] | ["*", E] | ["**", E]
    ["s", E, [E...], line]              ["sl", E?, E?, E?]            ["f", [E...]] (f-string, text as ["v", s])
    ["l", function index, line]         ["i", test, E, E]             ["bo", "and"|"or", E, E]
    ["u", op, E]                        ["b", op, E, E]               ["cmp", E, [[op, E]...]]
    ["t"|"L"|"S", [E...]]               ["d", [[E|None, E]...]]       ["w", name, E]
    ["C", kind, [E...], [[target, iterable, [test...]]...]]           kind: "L" "S" "G" "D"
    ["y", E?]  ["yf", E]  ["aw", E]     ["*", E]                      ["x"] (nothing known)
Statements
    ["=", line, [target...], E]         ["+=", line, target, op, E]   [":", line, target, annotation, E?]
    ["e", line, E]                      ["if", line, E, body, orelse] ["for", line, target, E, body, orelse]
    ["while", line, E, body, orelse]    ["with", line, [[E, target?]...], body]
    ["try", line, body, [[type?, name?, body, line]...], orelse, finalbody]
    ["return", line, E?] ["raise", line, E?] ["assert", line, E, E?] ["del", line, [E...]]
    ["global", line, ["names", name...]]          ["nonlocal", line, ["names", name...]]
    ["break", line]                               ["continue", line]
    ["import", line, [["as", dotted, asname?]...]]
    ["from", line, module, level, [["as", name, asname?]...] | "*"]
    ["def", line, function index]       ["class", line, class index]
    ["match", line, E, [[pattern, guard?, body]...]]
Patterns of `match` are expressions where they name a value, ["isinstance", E] for a class, ["or", [pattern...]],
["any"], else ["x"]. What a pattern captures is assigned at the head of the case's body; what it asks besides, item by
item of a tuple, stands in the guard.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

Expression = list[Any]
Statement = list[Any]

#: Bits of `FunctionFacts.flags`; NESTS: its body defines functions, lambdas or classes.
ASYNC, GENERATOR, LAMBDA, NESTS = 1, 2, 4, 8


class Parameter(msgspec.Struct, array_like=True, frozen=True):
    """One parameter; `kind` is `p` positional only, `n` normal, `*`, `k` keyword only, `**`."""

    name: str
    kind: str
    default: Expression | None
    annotation: Expression | None


class FunctionFacts(msgspec.Struct, array_like=True):
    """One function, method or lambda; `body` is decoded on first use by `statements`."""

    name: str
    qualname: str
    line: int
    end_line: int
    parameters: list[Parameter]
    returns: Expression | None
    decorators: list[Expression]
    flags: int
    locals: list[str]
    body: msgspec.Raw


class ClassFacts(msgspec.Struct, array_like=True):
    """One class statement; `body` is the list of its statements."""

    name: str
    qualname: str
    line: int
    end_line: int
    bases: list[Expression]
    keywords: list[tuple[str, Expression]]
    decorators: list[Expression]
    body: list[Statement]


class ModuleFacts(msgspec.Struct, array_like=True):
    """All facts of one source file, independent of where the file lies.

    `error` is set, and everything else empty, when the file could not be read as Python.
    """

    error: str | None
    body: list[Statement]
    functions: list[FunctionFacts]
    classes: list[ClassFacts]
    lines: int


_body_decoder = msgspec.msgpack.Decoder(list[Any])
_encoder = msgspec.msgpack.Encoder()
_module_decoder = msgspec.msgpack.Decoder(ModuleFacts)


def encode_body(statements: list[Statement]) -> msgspec.Raw:
    """Encode statements for `FunctionFacts.body`."""
    return msgspec.Raw(_encoder.encode(statements))


def statements(function: FunctionFacts) -> list[Statement]:
    """Decode a function's body; the caller keeps the result if it needs it again."""
    decoded: list[Statement] = _body_decoder.decode(function.body)
    return decoded


def share(body: list[Statement], names: dict[str, Expression]) -> None:
    """Put one object in the place of all uses of a name, and of all equal texts: they are half of what bodies hold."""
    stack: list[list[Any]] = [body]
    while stack:
        node = stack.pop()
        for position, part in enumerate(node):
            kind = part.__class__
            if kind is list:
                if len(part) == 2 and part[0] == "n":
                    name = part[1]
                    known = names.get(name)
                    if known is None:
                        known = names[name] = ["n", sys.intern(name)]
                    node[position] = known
                else:
                    stack.append(part)
            elif kind is str:
                node[position] = sys.intern(part)


def encode_module(facts: ModuleFacts) -> bytes:
    """Facts to bytes, for the cache and between processes."""
    return _encoder.encode(facts)


def decode_module(data: bytes) -> ModuleFacts:
    """Bytes to facts.

    Raises:
        msgspec.DecodeError: the bytes are not facts of this extractor.
    """
    return _module_decoder.decode(data)


def failed(reason: str) -> ModuleFacts:
    """The facts of a file that cannot be read as Python: a record with its reason."""
    return ModuleFacts(error=reason, body=[], functions=[], classes=[], lines=0)
