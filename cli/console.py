"""The only place that prints: reports to stdout, progress, summaries and errors to stderr."""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text
from sgl_graph.analyzer.errors import ConfigError, OutputExists

#: How a usage line writes the options of a command that takes another command.
BEFORE_COMMAND = "[OPTIONS] --"
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
        _replace(output, (text if text.endswith("\n") else text + "\n").encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ConfigError(
            f"{output}: {error.strerror}", hint="name a file in a folder that you may write to"
        ) from error
    note(f"wrote {output}")


def _replace(output: Path, data: bytes) -> None:
    """Write the file whole or not at all, never through another name of what was there; its mode stays."""
    partial = output.with_name(f".{output.name[:200]}.{os.getpid()}.partial")
    try:
        with partial.open("xb") as file:
            file.write(data)
        if output.exists():
            partial.chmod(stat.S_IMODE(output.stat().st_mode))
        partial.replace(output)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def check_output(output: Path | None, *, force: bool = False, archives: Iterable[Path] = ()) -> None:
    """Refuse a file that could not or must not be written; a command calls it before it does any work.

    Args:
        output: The file; None is stdout, which is always there.
        force: Whether a plain file may be overwritten; nothing else ever is.
        archives: Archives that are read: nothing is written into them.

    Raises:
        OutputExists: The file exists and force is off.
        ConfigError: It is a folder, a link or a device, its folder does not exist, or it lies in an archive.
    """
    if output is None:
        return
    try:
        status = output.lstat()
    except OSError:
        status = None
    if output.is_dir():
        raise ConfigError(f"{output} is a folder", hint="name a file")
    if status is not None and not stat.S_ISREG(status.st_mode):
        kind = "a link" if stat.S_ISLNK(status.st_mode) else "no plain file"
        raise ConfigError(f"{output} is {kind}", hint="name a plain file, or leave -o out and redirect stdout")
    if status is not None and not force:
        raise OutputExists(f"{output} exists", hint="name another file, or overwrite it with --force")
    place = resolved(output).parent
    if not place.is_dir():
        raise ConfigError(f"{output}: there is no folder {output.parent}", hint="make it first, or name another file")
    for archive in archives:
        if place.is_relative_to(resolved(archive)):
            raise ConfigError(
                f"{output} lies in the archive {archive}, which is only read", hint="name a file outside of it"
            )


def resolved(path: Path) -> Path:
    """The path from the root, links followed.

    Raises:
        ConfigError: It is relative and the working directory is gone, or its links form a circle.
    """
    try:
        return path.resolve()
    except FileNotFoundError as error:
        raise ConfigError(
            "the working directory does not exist any more", hint="change to a folder that exists, or give full paths"
        ) from error
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def read_plain(path: Path, option: str, *, hint: str | None = None, largest: int = 256 << 20) -> bytes:
    """The bytes of a plain file that an option names; a pipe or device, which could wait for ever, is refused.

    Args:
        path: The file.
        option: The option, as the messages name it.
        hint: What to do about a file that is not there.
        largest: More bytes than this are refused.

    Raises:
        ConfigError: It cannot be read, is no plain file, or is too large.
    """
    try:
        # Without waiting: opening a pipe that nobody writes to would.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no plain file"
                raise ConfigError(f"{option} {path}: it is {kind}", hint="name a plain file")
            if status.st_size > largest:
                raise ConfigError(f"{option} {path}: {status.st_size} bytes are more than any honest file of its kind")
            with open(handle, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(handle)
    except OSError as error:
        raise ConfigError(f"{option} {path}: {error.strerror}", hint=hint) from error
    except ValueError as error:
        raise ConfigError(f"{option}: {error}") from error


def named_path(text: str) -> Path:
    """A path that was given; an empty one, as of an unset variable, would silently mean the working directory.

    Raises:
        ConfigError: The text is empty.
    """
    if not text:
        raise ConfigError("an empty path", hint="name it; the working directory is .")
    return Path(text)


def shell(*words: object) -> str:
    """Words as a shell takes them: paths with spaces, quotes and line ends stay one word, and none is an option."""
    return " ".join(
        shlex.quote(f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word))
        for word in words
    )


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
    stderr().print(Text.assemble(("error: ", "bold red"), harmless(text)))
    if hint:
        remedy(hint)


def remedy(text: str) -> None:
    """What to do about an error that has been told."""
    stderr().print(Text.assemble(("hint: ", "bold"), harmless(text)))
