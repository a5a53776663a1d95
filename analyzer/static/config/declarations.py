"""Declarations of the command line as the checkout makes them.

`add_argument` calls are evaluated like all other code and arrive here; annotated fields are read where the checkout derives
arguments from them.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.static.config.possibilities import single
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.registry import CONSTANTS, native
from sgl_graph.analyzer.static.config.values import ABSENT, External, ListV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls


PARSER = "argparse.ArgumentParser"
SUPPRESS = External("argparse.SUPPRESS")
CONSTANTS["argparse.SUPPRESS"] = SUPPRESS
CONSTANTS["argparse.REMAINDER"] = "..."
_NO_VALUE_ACTIONS = {"store_true", "store_false", "store_const", "count", "help", "version", "append_const"}


class Rejected(Exception):
    """The checkout's own parser refuses a value: the launch does not start."""

    def __init__(self, why: str, place: Place) -> None:
        super().__init__(why)
        self.why = why
        self.place = place


@dataclass(slots=True)
class Declaration:
    """One argument of the command line.

    Attributes:
        flags: all spellings.
        action: `store`, `store_true`, `boolean` (with `--no-` spellings), ... or `custom`.
        kind: evaluates to the converter, None for text; `choices` likewise to the allowed values.
        place: where it is declared.
        handler: the checkout's action object for `custom`.
    """

    flags: tuple[str, ...]
    dest: str
    place: Place
    action: str = "store"
    nargs: Value = None
    const: Value = None
    default: Value = None
    required: bool = False
    kind: Callable[[], Value] = field(default=lambda: None)
    choices: Callable[[], Value] = field(default=lambda: None)
    handler: Instance | None = None

    def takes(self) -> Value:
        """How many values follow, in the terms of `nargs`."""
        if self.action in _NO_VALUE_ACTIONS or self.action == "boolean":
            return 0
        return self.nargs


@dataclass(slots=True)
class Declarations:
    """All arguments of one parser, and which of them the command gives."""

    items: list[Declaration] = field(default_factory=list)
    by_flag: dict[str, Declaration] = field(default_factory=dict)
    defaults: dict[str, Value] = field(default_factory=dict)
    #: dest to the spelling that the command uses.
    given: dict[str, str] = field(default_factory=dict)
    #: dest to the value that the command gives, before any resolution.
    values: dict[str, Value] = field(default_factory=dict)

    def add(self, declaration: Declaration) -> None:
        """Add one; a spelling declared twice means the later one."""
        self.items.append(declaration)
        for flag in declaration.flags:
            self.by_flag[flag] = declaration

    def find(self, token: str) -> Declaration:
        """The declaration that a spelling means; unique prefixes count.

        Raises:
            CommandInvalid: none, or several.
        """
        exact = self.by_flag.get(token)
        if exact is not None:
            return exact
        matching = {id(d): d for flag, d in self.by_flag.items() if token.startswith("--") and flag.startswith(token)}
        if len(matching) == 1:
            return next(iter(matching.values()))
        if matching:
            names = ", ".join(sorted(flag for flag in self.by_flag if flag.startswith(token)))
            raise CommandInvalid(f"ambiguous argument {token}: it could be {names}")
        # A flag may be given by its beginning: what is misspelled may be that.
        written = {flag[: len(token)]: flag for flag in sorted(self.by_flag, key=len, reverse=True)}
        written |= {flag: flag for flag in self.by_flag}
        nearest = difflib.get_close_matches(token, written, n=1, cutoff=0.5)
        hint = None
        if nearest:
            flag = written[nearest[0]]
            place = self.by_flag[flag].place
            hint = f"did you mean {flag} ({place.file}:{place.line})?"
        raise CommandInvalid(f"this release declares no argument {token}", hint=hint)


# -- making declarations


@native(PARSER, "sglang.ArgumentParser", "argparse.HelpFormatter")
def _parser(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    parser = Instance(External(PARSER))
    parser.payload = Declarations()
    parser.payload.add(Declaration(("-h", "--help"), "help", machine.place(), action="help"))
    return parser


@native(f"{PARSER}().add_argument_group", f"{PARSER}().add_mutually_exclusive_group")
def _group(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    return arguments[0]


@native(f"{PARSER}().set_defaults")
def _set_defaults(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    declarations_of(arguments[0]).defaults.update(keywords)
    return None


@native(f"{PARSER}().error", f"{PARSER}().exit")
def _error(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    text = single(arguments[-1])
    raise Rejected(text if isinstance(text, str) else "the parser refuses the command", machine.place())


@native(f"{PARSER}().add_argument")
def _add_argument(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    names = [single(value) for value in arguments[1:]]
    flags = tuple(name for name in names if isinstance(name, str))
    dest = single(keywords.get("dest", ABSENT))
    if not isinstance(dest, str):
        long = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "")
        dest = long.lstrip("-").replace("-", "_")
    declaration = Declaration(flags, dest, machine.place())
    declaration.default = keywords.get("default")
    declaration.nargs = single(keywords.get("nargs"))
    declaration.const = keywords.get("const")
    declaration.required = single(keywords.get("required", False)) is True
    kind, choices = keywords.get("type"), keywords.get("choices")
    declaration.kind = lambda: kind
    declaration.choices = lambda: choices
    set_action(machine, declaration, keywords.get("action", "store"), keywords)
    if flags and flags[0].startswith("-"):
        declarations_of(arguments[0]).add(declaration)
    return None


def set_action(machine: Calls, declaration: Declaration, action: Value, keywords: dict[str, Value]) -> None:
    """Take over the action of an argument: by name, by class, or as an action of the checkout."""
    plain = single(action)
    if isinstance(plain, str):
        declaration.action = plain
        if plain in ("store_true", "store_false") and "default" not in keywords:
            declaration.default = plain == "store_false"
    elif plain == External("argparse.BooleanOptionalAction"):
        declaration.action = "boolean"
        negated = tuple("--no-" + flag[2:] for flag in declaration.flags if flag.startswith("--"))
        declaration.flags = (*declaration.flags, *negated)
    elif type(plain) is ClassV:
        words = {n: v for n, v in keywords.items() if n not in ("action", "help", "dest", "metavar")}
        options = ListV(list(declaration.flags))
        handler = machine.call(plain, [], {"option_strings": options, "dest": declaration.dest, **words})
        declaration.action = "custom"
        declaration.handler = single(handler)
        if type(declaration.handler) is Instance:
            declaration.nargs = single(declaration.handler.attrs.get("nargs", declaration.nargs))
            declaration.default = declaration.handler.attrs.get("default", declaration.default)


@native("argparse.Action.__init__")
def _action_init(machine: Calls, arguments: list[Value], keywords: dict[str, Value]) -> Value:
    names = ("option_strings", "dest", "nargs", "const", "default", "type", "choices", "required", "help", "metavar")
    values = dict.fromkeys(names) | dict(zip(names, arguments[1:], strict=False)) | keywords
    instance = single(arguments[0])
    machine.touch(instance)
    instance.attrs.update(values)
    return None


def declarations_of(parser: Value) -> Declarations:
    """The declarations of a parser."""
    found = single(parser).payload
    assert isinstance(found, Declarations)
    return found
