"""The only place that prints: reports to stdout, progress, summaries and errors to stderr."""

from __future__ import annotations

import io
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text
from sgl_graph.analyzer.errors import ConfigError, OutputExists

#: Control characters but for tab and line feed.
_DRIVING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass
class _Settings:
    quiet: bool = False
    verbose: bool = False


_settings = _Settings()


def configure(*, quiet: bool = False, verbose: bool = False) -> None:
    """Set how much is said on stderr; a command calls it first with its -q and -v."""
    _settings.quiet = quiet
    _settings.verbose = verbose


def prepare_streams() -> None:
    """Make both streams take any report: closed ones swallow it, poor encodings show escapes."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - lives as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def stdout() -> Console:
    """A console on stdout, made at the call so that redirection in tests and pipes is honoured."""
    return Console(file=sys.stdout, highlight=False, soft_wrap=not sys.stdout.isatty())


def stderr() -> Console:
    """A console on stderr, as for stdout."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def harmless(text: str) -> str:
    """A text that may hold what others wrote: characters that drive a terminal are shown as escapes."""
    return _DRIVING.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def report(text: str) -> None:
    """Write a finished report, exactly as given, to stdout."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def write_report(text: str, output: Path | None, *, force: bool = False) -> None:
    """Write a report to stdout, or to a file that must not exist yet unless forced.

    Raises:
        OutputExists: The file exists and force is off.
        ConfigError: The file cannot be written.
    """
    if output is None:
        report(text)
        return
    check_output(output, force=force)
    try:
        output.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{output}: {error.strerror}") from error
    note(f"wrote {output}")


def check_output(output: Path | None, *, force: bool = False) -> None:
    """Refuse a file that could not be written; a command calls it before it does any work.

    Raises:
        OutputExists: The file exists and force is off.
        ConfigError: It is a folder, or its folder does not exist.
    """
    if output is None:
        return
    if output.is_dir():
        raise ConfigError(f"{output} is a folder", hint="name a file")
    if output.exists() and not force:
        raise OutputExists(f"{output} exists", hint="name another file, or overwrite it with --force")
    if not output.absolute().parent.is_dir():
        raise ConfigError(f"{output}: there is no folder {output.parent}", hint="make it first, or name another file")


def note(text: str) -> None:
    """A line of progress or summary; silent with -q."""
    if not _settings.quiet:
        stderr().print(Text(harmless(text)))


def detail(text: str) -> None:
    """A line that only -v shows."""
    if _settings.verbose and not _settings.quiet:
        stderr().print(Text(text), style="dim")


def warn(text: str) -> None:
    """A line that matters although the command goes on; -q does not hide it."""
    stderr().print(Text.assemble(("warning: ", "yellow"), harmless(text)))


def error(text: str, *, hint: str | None = None) -> None:
    """The one message of a command that could not do its work, and the remedy."""
    out = stderr()
    out.print(Text.assemble(("error: ", "bold red"), harmless(text)))
    if hint:
        out.print(Text.assemble(("hint: ", "bold"), harmless(hint)))
