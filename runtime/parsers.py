"""Processes that turn source files into facts; a file that ends its process is a record, never the end of the others."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import BinaryIO, cast

from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.runtime.parser_process import READY, parse, receive, send

_DIED = "the parser's process died on it"
#: Idle parsers go after this: the analysis needs its memory towards the end.
_IDLE_SECONDS = 2.0
#: `-P`: no file of the folder that this is run in takes the place of a module.
_COMMAND = (sys.executable, "-P", "-m", "sgl_graph.runtime.parser_process")


#: Encoded facts, and whether they are the file's own for good.
_Answer = Future[tuple[bytes, bool]]


class Parsers:
    """So many processes, started when there is something to parse; each is fed by a thread that waits for it."""

    def __init__(self, jobs: int, command: Sequence[str] = _COMMAND) -> None:
        self._command = command
        self._pending: dict[str, _Answer] = {}
        self._threads: list[threading.Thread] = []
        self._jobs = jobs
        self._submitted = 0.0
        #: Guards all below, and tells the threads when it changes.
        self._changed = threading.Condition()
        self._waiting: OrderedDict[str, tuple[bytes, _Answer]] = OrderedDict()
        self._allowed = jobs
        self._running = 0
        self._idle: list[_Process] = []
        self._closed = False

    def __contains__(self, path: str) -> bool:
        return path in self._pending

    def submit(self, path: str, data: bytes) -> None:
        """Have a file parsed, after those that were submitted before it."""
        self._submitted = time.monotonic()
        answer: _Answer = Future()
        self._pending[path] = answer
        with self._changed:
            self._waiting[path] = data, answer
            self._changed.notify()
        if len(self._threads) < self._jobs:
            self._threads.append(threading.Thread(target=self._feed, name="parser", daemon=True))
            self._threads[-1].start()

    def result(self, path: str) -> tuple[bytes, bool]:
        """Encoded facts of a submitted file, and whether they are the file's own for good; it is parsed before all others."""
        with self._changed:
            if path in self._waiting:
                self._waiting.move_to_end(path, last=False)
        return self._pending.pop(path).result()

    def narrow(self) -> None:
        """Leave a core and memory to whoever asks: from now on one process less, if there are several.

        Those that are idle end, for they hold what their files left behind; new ones start small.
        """
        with self._changed:
            self._allowed = max(1, self._jobs - 1)
            idle, self._idle = self._idle, []
        _end(idle)

    def rest(self) -> None:
        """Let the processes go when nothing was asked of them for a while; they come back when something is."""
        if time.monotonic() - self._submitted > _IDLE_SECONDS:
            with self._changed:
                idle, self._idle = self._idle, []
            _end(idle)

    def close(self) -> dict[str, bytes]:
        """Stop; what was parsed and not yet asked for."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        _end(self._idle)
        self._idle = []
        done = {path: future.result() for path, future in self._pending.items() if future.done()}
        self._pending.clear()
        return {path: encoded for path, (encoded, lasting) in done.items() if lasting}

    def _feed(self) -> None:
        """Take one file after another, until there will be none."""
        while True:
            with self._changed:
                while not self._closed and (not self._waiting or self._running >= self._allowed):
                    self._changed.wait()
                if self._closed:
                    return
                _, (data, future) = self._waiting.popitem(last=False)
                self._running += 1
                process = self._idle.pop() if self._idle else None
            process, answer = self._parsed(process, data)
            with self._changed:
                self._running -= 1
                if process is not None:
                    self._idle.append(process)
                surplus = self._surplus()
                self._changed.notify()
            future.set_result(answer)
            _end(surplus)

    def _parsed(self, process: _Process | None, data: bytes) -> tuple[_Process | None, tuple[bytes, bool]]:
        """The process, as long as it lives, and its answer."""
        process = process or _started(self._command)
        if process is None:
            return None, (parse(data), True)  # no process can be had here: better slow than not at all
        answer = process.ask(data)
        if answer is None:
            process.end()
        return process if answer is not None else None, (answer, True) if answer else (_dead(), False)

    def _surplus(self) -> list[_Process]:
        """Idle processes beyond those that may run."""
        kept = max(0, self._allowed - self._running)
        surplus, self._idle = self._idle[kept:], self._idle[:kept]
        return surplus


def _dead() -> bytes:
    return f.encode_module(f.failed(_DIED))


def _end(processes: Iterable[_Process]) -> None:
    for process in processes:
        process.end()


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
