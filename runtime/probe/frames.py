"""Python stacks as receipts keep them: the program's own lines, without the probe's and the framework's inner frames."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any

#: Frames kept of one stack, innermost first.
DEPTH = 24
_PROBE = os.path.dirname(__file__) + os.sep

Frames = list[list[Any]]


def from_trace(frames: Iterable[dict[str, Any]]) -> Frames:
    """Frames of an allocator event or block, which torch gives innermost first."""
    return _select([[f.get("filename") or "?", int(f.get("line") or 0), f.get("name") or "?"] for f in frames])


def of_frame(frame: FrameType | None) -> Frames:
    """The stack that ends in `frame`."""
    found: Frames = []
    while frame is not None and len(found) < 4 * DEPTH:
        code = frame.f_code
        found.append([code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)])
        frame = frame.f_back
    return _select(found)


def here(skip: int = 1) -> Frames:
    """The calling stack, without the innermost `skip` frames."""
    return of_frame(sys._getframe(skip))


def _select(frames: Frames) -> Frames:
    """Leave out the probe and the framework's own frames, unless nothing remains: they say how, never who."""
    own = [f for f in frames if not f[0].startswith(_PROBE)]
    framework = _framework()
    program = [f for f in own if not f[0].startswith(framework)]
    return (program or own)[:DEPTH]


@functools.cache
def _framework_of(torch: str | None) -> tuple[str, ...]:
    inner = (contextlib.__file__, functools.__file__, "<frozen ")
    return inner if torch is None else (*inner, os.path.dirname(torch) + os.sep)


def _framework() -> tuple[str, ...]:
    return _framework_of(getattr(sys.modules.get("torch"), "__file__", None))
