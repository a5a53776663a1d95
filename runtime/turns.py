"""Threads of one analysis, of which only one runs at a time: another goes on where one waits for a file."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

_T = TypeVar("_T")
#: What runs aside may nest as deeply as what runs in a main thread.
_STACK_BYTES = 64 << 20


class Abandoned(Exception):
    """Raised in work that runs aside once nobody wants its result."""


class Turns:
    """Whose turn it is. What the threads share needs no lock of its own: none is interrupted but where it waits.

    The turn belongs at first to the thread that makes this. Where nothing runs aside, nothing here waits.
    """

    def __init__(self) -> None:
        self._owner = threading.get_ident()
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()
        self._taken = True
        self._abandoned = False
        self._threads: list[threading.Thread] = []

    @property
    def running(self) -> int:
        """Threads that have not ended: the owner, and those begun aside."""
        return 1 + sum(thread.is_alive() for thread in self._threads)

    @property
    def owned(self) -> bool:
        """Whether the owner asks."""
        return threading.get_ident() == self._owner

    def begin(self, work: Callable[[], _T]) -> Callable[[], _T]:
        """Have work done while this thread waits; what is returned waits for its result, or raises what it raised."""
        answer: Future[_T] = Future()

        def run() -> None:
            try:
                self._enter()
                try:
                    answer.set_result(work())
                finally:
                    self._leave()
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised where the result is wanted
                answer.set_exception(error)

        def result() -> _T:
            with self.waiting():
                return answer.result()

        thread = threading.Thread(target=run, name="aside", daemon=True)
        self._threads.append(thread)
        before = threading.stack_size(_STACK_BYTES)
        try:
            thread.start()
        finally:
            threading.stack_size(before)
        return result

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, this thread does nothing but wait, and another may run.

        Raises:
            Abandoned: this thread runs aside, and `abandon` was called.
        """
        self._leave()
        try:
            yield
        finally:
            self._enter()

    def abandon(self) -> None:
        """End what runs aside where it waits, and wait for that. What it waits for besides a turn has to end by itself."""
        with self._changed:
            self._abandoned = True
            self._taken = False
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _enter(self) -> None:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            self._changed.wait_for(lambda: self._abandoned or (not self._taken and self._queue[0] is ticket))
            self._queue.remove(ticket)
            if self._abandoned and threading.get_ident() != self._owner:
                raise Abandoned
            self._taken = True

    def _leave(self) -> None:
        with self._changed:
            self._taken = False
            self._changed.notify_all()
