"""Processes that turn source files into facts; a file that ends its process is a record, never the end of the others."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import BinaryIO, cast

from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.runtime.parser_process import READY, parse, receive, send

_DIED = "the parser's process died on it"
#: A parser that had nothing to do for so long goes: the analysis needs its memory towards the end.
_IDLE_SECONDS = 2.0
#: `-P`: no file of the folder that this is run in takes the place of a module.
_COMMAND = (sys.executable, "-P", "-m", "sgl_graph.runtime.parser_process")


#: Encoded facts, and whether they are the file's own for good.
_Answer = Future[tuple[bytes, bool]]


class Parsers:
    """So many processes, started when there is something to parse; each is fed by a thread that waits for it.

    One process less is at work, if there are several, while one of the threads that read the answers has something else to do than to wait for one,
    unless there is a processor to spare for those.
    """

    def __init__(
        self,
        jobs: int,
        command: Sequence[str] = _COMMAND,
        *,
        readers: Callable[[], int] = lambda: 1,
        spare: bool = False,
    ) -> None:
        self._command = command
        self._readers = readers
        self._spare = spare
        self._pending: dict[str, _Answer] = {}
        self._threads: list[threading.Thread] = []
        self._jobs = jobs
        #: Guards all below, and tells the threads when it changes.
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, tuple[bytes, _Answer]] = OrderedDict()
        self._urgent = ""
        self._awaited = 0
        self._running = 0
        self._closed = False

    def __contains__(self, path: str) -> bool:
        return path in self._pending

    @property
    def waiting(self) -> int:
        """Files that no process has begun."""
        return len(self._waiting)

    def submit(self, path: str, data: bytes) -> None:
        """Have a file parsed, after those that were submitted before it."""
        answer: _Answer = Future()
        self._pending[path] = answer
        with self._changed:
            self._waiting[path] = data, answer
            self._changed.notify()
        if len(self._threads) < self._jobs:
            self._threads.append(threading.Thread(target=self._feed, name="parser", daemon=True))
            self._threads[-1].start()

    def result(self, path: str, *, urgent: bool = True) -> tuple[bytes, bool]:
        """Encoded facts of a submitted file, and whether they are the file's own for good.

        It is parsed before all others but what another thread waits for urgently, where this one does not. Several threads may wait for one file, which
        stays submitted until it is forgotten.
        """
        future = self._pending[path]
        with self._changed:
            if urgent:
                self._urgent = path
            for first in (path, self._urgent):
                if first in self._waiting:
                    self._waiting.move_to_end(first, last=False)
            self._awaited += 1
            self._changed.notify_all()
        try:
            return future.result()
        finally:
            with self._changed:
                self._awaited -= 1

    def forget(self, path: str) -> None:
        """Let go of a file's answer."""
        self._pending.pop(path, None)

    def close(self) -> dict[str, bytes]:
        """Stop; what was parsed and not yet asked for."""
        with self._changed:
            self._closed = True
            for _, answer in self._waiting.values():
                answer.cancel()
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        done = {p: future.result() for p, future in self._pending.items() if future.done() and not future.cancelled()}
        self._pending.clear()
        return {path: encoded for path, (encoded, lasting) in done.items() if lasting}

    def _feed(self) -> None:
        """Take one file after another, until there will be none; the process is started when there is one, and does not outlive a rest."""
        process: _Process | None = None
        while True:
            taken = self._next(_IDLE_SECONDS if process is not None else None)
            if taken is None:
                if process is not None:
                    process.end()
                    process = None
                if self._closed:
                    return
                continue
            data, future = taken
            process, answer = self._parsed(process, data)
            with self._changed:
                self._running -= 1
                self._changed.notify_all()
            future.set_result(answer)

    def _next(self, patience: float | None) -> tuple[bytes, _Answer] | None:
        """The next file and where its answer belongs, None when there will be none, or there was none for so many seconds."""
        with self._changed:
            if not self._changed.wait_for(self._may_go_on, patience) or self._closed:
                return None
            self._running += 1
            return self._waiting.popitem(last=False)[1]

    def _may_go_on(self) -> bool:
        """Whether there is something to do: a file that may be parsed now, or an end to make."""
        all_at_work = self._spare or self._awaited >= self._readers()
        at_once = self._jobs if all_at_work else max(1, self._jobs - 1)
        return self._closed or (bool(self._waiting) and self._running < at_once)

    def _parsed(self, process: _Process | None, data: bytes) -> tuple[_Process | None, tuple[bytes, bool]]:
        """The process, as long as it lives, and its answer."""
        process = process or _started(self._command)
        if process is None:
            return None, (parse(data), True)  # no process can be had here: better slow than not at all
        answer = process.ask(data)
        if answer is None:
            process.end()
        return process if answer is not None else None, (answer, True) if answer else (_dead(), False)


def _dead() -> bytes:
    return f.encode_module(f.failed(_DIED))


class _Process:
    """One parser."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._into = cast(BinaryIO, process.stdin)
        self._out_of = cast(BinaryIO, process.stdout)

    def ready(self) -> bool:
        return receive(self._out_of) == READY

    def ask(self, data: bytes) -> bytes | None:
        """The answer; empty when a child of the process died of the file, None when the process itself did."""
        try:
            send(self._into, data)
            return receive(self._out_of)
        except OSError:
            return None

    def end(self) -> None:
        """Close its input, which ends it."""
        for stream in (self._into, self._out_of):
            with contextlib.suppress(OSError):
                stream.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _started(command: Sequence[str]) -> _Process | None:
    """A parser that has said that it is ready; None where none can be started."""
    try:
        process = _Process(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )
    except OSError:
        return None
    if process.ready():
        return process
    process.end()
    return None
