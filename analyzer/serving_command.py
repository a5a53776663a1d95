"""The serving command as typed: leading K=V, the entry point, its arguments; parsing and rewriting, never running."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sgl_graph.analyzer.errors import CommandInvalid

_ASSIGNMENT = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"^(?:.*/)?(?:python|pypy)[0-9.]*(?:t|d)?$")
_NUMBER = re.compile(r"^-(?:\d+|\d*\.\d+)(?:[eE][+-]?\d+)?$")
#: Interpreter options that take a value as the next token; all others of CPython stand alone.
PYTHON_VALUE_OPTIONS = frozenset({"-X", "-W", "--check-hash-based-pycs"})
SERVER_MODULE = "sglang.launch_server"


@dataclass(frozen=True)
class ServingCommand:
    """A serving command in parts; `argv()` gives back a command that means the same."""

    #: Assignments typed before the program, in order of first appearance.
    env: Mapping[str, str] = field(default_factory=dict)
    #: The tokens that start the server: `python -m sglang.launch_server` or `sglang serve`.
    program: tuple[str, ...] = ()
    #: What the server's own parser receives. A positional model of `sglang serve` is spelled as --model-path.
    arguments: tuple[str, ...] = ()

    @property
    def interpreter(self) -> str | None:
        """The Python named by the command, or None for `sglang serve`."""
        return self.program[0] if _PYTHON.match(self.program[0]) else None

    @property
    def entry(self) -> str:
        """`sglang.launch_server` or `sglang serve`."""
        return SERVER_MODULE if self.interpreter else "sglang serve"

    def argv(self) -> list[str]:
        """Program and arguments, without the assignments."""
        return [*self.program, *self.arguments]

    def text(self) -> str:
        """One shell line, assignments included."""
        return " ".join([*(f"{key}={shlex.quote(value)}" for key, value in self.env.items()), shlex.join(self.argv())])

    def values(self, *flags: str) -> tuple[str, ...] | None:
        """Values of the last occurrence of any of the flags, () for a bare flag, None when absent.

        Args:
            flags: Spellings of one option, as `--model-path`, `--model`.
        """
        found: tuple[str, ...] | None = None
        for name, values in options(self.arguments):
            if name in flags:
                found = values
        return found

    def value(self, *flags: str) -> str | None:
        """The first value of the last occurrence of any of the flags, or None."""
        values = self.values(*flags)
        return values[0] if values else None

    def without(self, *flags: str) -> ServingCommand:
        """The command without any occurrence of the flags and their values."""
        kept: list[str] = []
        dropping = False
        for token in self.arguments:
            if is_option(token):
                dropping = token.split("=", 1)[0] in flags
            if not dropping:
                kept.append(token)
        return replace(self, arguments=tuple(kept))

    def with_arguments(self, extra: Sequence[str]) -> ServingCommand:
        """The command with arguments appended; for a repeated option the server's parser takes the last."""
        return replace(self, arguments=(*self.arguments, *extra))


def is_option(token: str) -> bool:
    """Whether a token starts an option; a negative number is a value."""
    return token.startswith("-") and len(token) > 1 and not _NUMBER.match(token)


def options(arguments: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Options in order with the tokens that follow each; `--flag=value` counts as one value.

    Without the declarations of the parser a positional that follows a bare flag looks like its value.
    """
    found: list[tuple[str, list[str]]] = []
    for token in arguments:
        if is_option(token):
            name, equals, value = token.partition("=")
            found.append((name, [value] if equals else []))
        elif found:
            found[-1][1].append(token)
    return [(name, tuple(values)) for name, values in found]


def parse(tokens: Sequence[str]) -> ServingCommand:
    """Take a serving command apart.

    Args:
        tokens: What the user typed after `--`.

    Raises:
        CommandInvalid: It is not `python -m sglang.launch_server ...` nor `sglang serve ...`.
    """
    env, rest = split_assignments(tokens)
    if not rest:
        raise CommandInvalid(
            "no serving command", hint="put it after --, as in: -- python -m sglang.launch_server --model-path DIR"
        )
    size = _program_size(rest)
    if size is None:
        raise CommandInvalid(
            f"not a serving command: {shlex.join(rest[:4])}",
            hint="use `python -m sglang.launch_server ...` or `sglang serve ...`; a script goes through run --program",
        )
    command = ServingCommand(env=env, program=tuple(rest[:size]), arguments=tuple(rest[size:]))
    if command.entry == "sglang serve" and command.arguments and not is_option(command.arguments[0]):
        command = replace(command, arguments=("--model-path", *command.arguments))
    elif command.arguments and not is_option(command.arguments[0]):
        raise CommandInvalid(f"unexpected argument before any option: {command.arguments[0]}")
    return command


def split_assignments(tokens: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Leading K=V assignments (also behind `env`) and what follows them."""
    rest = list(tokens)
    if rest and rest[0] == "env":
        rest = rest[1:]
    env: dict[str, str] = {}
    while rest and _ASSIGNMENT.match(rest[0]):
        key, _, value = rest.pop(0).partition("=")
        env[key] = value
    return env, rest


def parse_assignments(pairs: Sequence[str]) -> dict[str, str]:
    """The values of repeated `--env K=V`.

    Raises:
        CommandInvalid: One is not K=V.
    """
    env: dict[str, str] = {}
    for pair in pairs:
        if not _ASSIGNMENT.match(pair):
            raise CommandInvalid(f"not an assignment: {pair}", hint="write --env NAME=VALUE")
        key, _, value = pair.partition("=")
        env[key] = value
    return env


def _program_size(tokens: Sequence[str]) -> int | None:
    if tokens[0].rsplit("/", 1)[-1] == "sglang":
        return 2 if len(tokens) > 1 and tokens[1] == "serve" else None
    if not _PYTHON.match(tokens[0]):
        return None
    at = 1
    while at < len(tokens) and tokens[at].startswith("-") and tokens[at] != "-m":
        at += 2 if tokens[at] in PYTHON_VALUE_OPTIONS else 1
    if tokens[at : at + 2] == ["-m", SERVER_MODULE]:
        return at + 2
    return None
