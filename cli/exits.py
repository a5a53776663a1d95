"""Exit codes, and the one wrapper that turns any outcome of a command into one of them."""

from __future__ import annotations

import errno
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from sgl_graph.analyzer.errors import SglGraphError
from sgl_graph.cli import console

#: No room, no permission, no handles: whatever was being done, the machine did not let it.
_HOST_REFUSES = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE, errno.ENFILE, errno.EIO}
)


class ExitCode(IntEnum):
    """The documented exit codes; `FINDING` means a finding or a FAIL and nothing else."""

    DONE = 0
    FINDING = 1
    USAGE = 2
    UNDECIDED = 3
    HOST = 4
    ARCHIVE = 5
    BUG = 70
    INTERRUPTED = 130


def guarded(call: Callable[[], object]) -> int:
    """Run a command and return its exit code; no exception but SystemExit's own code leaves it.

    Args:
        call: The command; it returns normally, or raises SystemExit with a documented code.
    """
    try:
        call()
    except SystemExit as stop:
        return _code_of(stop)
    except SglGraphError as error:
        console.error(error.message, hint=error.hint)
        return int(error.exit_code)
    except KeyboardInterrupt:
        console.error("interrupted")
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader of the report went away: nothing failed, and code 1 would claim a finding.
        return int(ExitCode.DONE)
    except OSError as error:
        if error.errno not in _HOST_REFUSES:
            return _bug(error)
        console.error(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))
        return int(ExitCode.HOST)
    except Exception as error:  # noqa: BLE001 - the outermost net: anything else would be a traceback and code 1
        return _bug(error)
    return int(ExitCode.DONE)


def _bug(error: Exception) -> int:
    console.error(
        f"this is a bug in sgl-graph: {type(error).__name__}: {error}",
        hint=f"the traceback is in {_crash_report()}",
    )
    return int(ExitCode.BUG)


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return int(ExitCode.DONE)
    if stop.code in (ExitCode.FINDING, ExitCode.INTERRUPTED):
        # The framework answers both silently, a closed pipe and in some versions an interruption with 1: a finding here.
        behind = set(map(type, _behind(stop)))
        if KeyboardInterrupt in behind:
            console.error("interrupted")
            return int(ExitCode.INTERRUPTED)
        if BrokenPipeError in behind:
            return int(ExitCode.DONE)
    if stop.code == ExitCode.USAGE and "--" not in sys.argv and any(map(_wants_command, _behind(stop))):
        console.remedy("the serving command stands last, behind --")
    return stop.code if isinstance(stop.code, int) else int(ExitCode.USAGE)


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The exceptions that were being handled when this one was raised."""
    cause = error.__context__
    while cause is not None:
        yield cause
        cause = cause.__context__


def _wants_command(error: BaseException) -> bool:
    """Whether this is the framework's error about a call of one of our commands that take another command."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    return any(parameter.name == "command" and parameter.required for parameter in getattr(command, "params", ()))


def _crash_report() -> Path | str:
    try:
        release = version("sgl-graph")
    except PackageNotFoundError:
        release = "unknown"
    try:
        with tempfile.NamedTemporaryFile("w", prefix="sgl-graph-", suffix=".txt", delete=False) as file:
            file.write(f"sgl-graph {release}\n{traceback.format_exc()}")
        return Path(file.name)
    except OSError:
        return "nowhere (the temporary folder is not writable)"
