"""Calls into torch's allocator in one step that no other Python thread can enter."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any

_MISSING = object()
_EMPTY = SimpleNamespace()


def unsplit(calls: Sequence[Callable[[], Any]], torch: Any) -> list[Any]:
    """Run C functions with no bytecode between them, so that the interpreter lock is not handed over.

    A snapshot with Python frames asks torch for `_inductor`, which is imported lazily: that takes seconds, during which the
    program runs on and its events are lost, and once it is there each frame costs a Python call. For the moment of the calls
    torch shows an empty `_inductor`; nobody else can see it.

    Args:
        calls: C functions bound by `functools.partial`.
        torch: The module.
    """
    known = vars(torch).get("_inductor", _MISSING) if hasattr(torch, "__dict__") else _MISSING
    run: Any = partial.__call__
    hide = partial(setattr, torch, "_inductor", _EMPTY)
    show = partial(delattr, torch, "_inductor") if known is _MISSING else partial(setattr, torch, "_inductor", known)
    with no_collection():
        try:
            return list(map(run, [hide, *calls, show]))[1:-1]
        except BaseException:
            if vars(torch).get("_inductor") is _EMPTY:
                show()
            raise


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector out: the thousands of short-lived records of a snapshot would make it walk the whole heap.

    Only around calls that nobody can enter, or on the capturing thread: a program that switches the collector meanwhile would
    find its choice undone.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
