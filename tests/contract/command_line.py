"""The program as its users and their scripts see it: commands, options, help, exit codes."""

from __future__ import annotations

import contextlib
import gc
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from sgl_graph.cli.app import COMMANDS, build, main
from typer.main import get_command

__all__ = ["COMMANDS", "Answer", "call", "option_names", "patched_arguments", "shown_options"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call printed, and its exit code."""

    code: int
    stdout: str
    stderr: str


def call(*arguments: str) -> Answer:
    """Call the program in this process, exactly as its console script does; what a process that ends leaves is put back."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    hook = sys.excepthook
    with patched_arguments(*arguments), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            assert isinstance(stop.code, int)
            code = stop.code
        finally:
            gc.unfreeze()
            sys.excepthook = hook
    return Answer(code, out.getvalue(), err.getvalue())


def option_names(command: str) -> set[str]:
    """Every spelling of every option that a command declares."""
    group = get_command(build())
    declared = group.commands[command]  # type: ignore[attr-defined]
    return {name for parameter in declared.params for name in parameter.opts if name.startswith("-")}


def shown_options(text: str) -> set[str]:
    """The long options that a text speaks of."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text))


@contextlib.contextmanager
def patched_arguments(*arguments: str) -> Iterator[None]:
    """`sys.argv` as the console script would see it."""
    before = sys.argv
    sys.argv = ["sgl-graph", *arguments]
    try:
        yield
    finally:
        sys.argv = before
