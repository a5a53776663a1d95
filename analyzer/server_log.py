"""What a server's own log tells: batch sizes while a set ran, and why it died."""

from __future__ import annotations

import re
from collections.abc import Iterable

_DECODE = re.compile(r"Decode batch\b.{0,40}?#running-req: (\d+)")
_PREFILL = re.compile(r"Prefill batch\b.{0,40}?#new-seq: (\d+)")
_TRACEBACK = "Traceback (most recent call last)"
_ERROR_LINE = re.compile(r"^(?:\S+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Failure|OutOfMemory\w*)\b.*$")
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
_ARGPARSE = re.compile(r"^\S+: error: .+$")
#: Not where it is a name or a value in a dump of settings, as in `log_level='error'` or `on_error=None`.
_PLAIN = re.compile(
    r"""(?i)(?<![\w'"=.-])(error|fatal|killed|no space left|address already in use|out of memory)(?![\w'"=-])"""
)
#: More of a log than anybody needs to find a cause in.
TAIL_BYTES = 4 << 20


def batch_sizes(log: str) -> tuple[list[int], list[int]]:
    """(decode, prefill) batch sizes that the server logged, each in order, adjacent repeats dropped."""
    return _squeezed(int(m[1]) for m in _DECODE.finditer(log)), _squeezed(int(m[1]) for m in _PREFILL.finditer(log))


def failure_cause(log: str) -> str | None:
    """Why a process ended: what its log shows to have gone wrong, else the last that it said."""
    return error_in(log) or next(map(_unprefixed, last_lines(log, 1)), None)


def error_in(log: str) -> str | None:
    """The most telling error of a log: the first exception that ended a process, with its innermost place.

    A worker's exception precedes those of the processes that waited for it, so the first one is the cause. None where
    nothing in the log speaks of an error: what a healthy server says, too, is no cause.
    """
    lines = log.splitlines()
    for at, line in enumerate(lines):
        if _TRACEBACK in line:
            cause = _traceback_cause(lines, at)
            if cause:
                return cause
    for pattern in (_ARGPARSE, _ERROR_LINE, _PLAIN):
        for line in lines:
            if pattern.search(_unprefixed(line)):
                return _unprefixed(line)[:300]
    return None


def last_lines(log: str, count: int = 3) -> list[str]:
    """The last lines that say something."""
    return [line.rstrip()[:200] for line in log.splitlines() if line.strip()][-count:]


def _traceback_cause(lines: list[str], start: int) -> str | None:
    place = ""
    for line in lines[start + 1 : start + 400]:
        frame = _FRAME.match(line)
        if frame:
            place = f"{frame['file']}:{frame['line']} in {frame['function']}"
        elif line and not line[0].isspace() and _ERROR_LINE.match(line):
            return f"{line[:300]}{f' ({place})' if place else ''}"
    return None


def _unprefixed(line: str) -> str:
    return re.sub(r"^\[[^\]]{0,60}\]\s*", "", line.strip())


def _squeezed(values: Iterable[int]) -> list[int]:
    found: list[int] = []
    for value in values:
        if not found or found[-1] != value:
            found.append(value)
    return found
