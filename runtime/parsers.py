"""Processes that turn source files into facts; a file that ends its process is a record, never the end of the others."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, cast

from sgl_graph.analyzer.static import facts as f
from sgl_graph.runtime.parser_process import READY, parse, receive, send

_DIED = "the parser's process died on it"
#: Idle parsers go after this: the analysis needs its memory towards the end.
_IDLE_SECONDS = 2.0
#: `-P`: no file of the folder that this is run in takes the place of a module.
_COMMAND = (sys.executable, "-P", "-m", "sgl_graph.runtime.parser_process")


class Parsers:
    """So many processes, started when there is something to parse; each is fed by a thread that waits for it."""

    def __init__(self, jobs: int, command: Sequence[str] = _COMMAND) -> None:
        self._jobs = jobs
        self._command = command
        self._threads: ThreadPoolExecutor | None = None
        self._pending: dict[str, Future[tuple[bytes, bool]]] = {}
        self._idle: list[_Process] = []
        self._lock = threading.Lock()
        self._submitted = 0.0

    def __contains__(self, path: str) -> bool:
        return path in self._pending

    def submit(self, path: str, data: bytes) -> None:
        """Have a file parsed."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self._jobs, "parser")
        self._submitted = time.monotonic()
        self._pending[path] = self._threads.submit(self._parsed, data)

    def result(self, path: str) -> tuple[bytes, bool]:
        """Encoded facts of a submitted file, and whether they are the file's own for good."""
        return self._pending.pop(path).result()

    def rest(self) -> None:
        """Let the processes go when nothing was asked of them for a while; they come back when something is."""
        if time.monotonic() - self._submitted > _IDLE_SECONDS:
            self._end_idle()

    def close(self) -> dict[str, bytes]:
        """Stop; what was parsed and not yet asked for."""
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._threads = None
        done = {
            path: future.result()
            for path, future in self._pending.items()
            if not future.cancelled() and future.exception() is None
        }
        self._pending.clear()
        self._end_idle()
        return {path: encoded for path, (encoded, lasting) in done.items() if lasting}

    def _parsed(self, data: bytes) -> tuple[bytes, bool]:
        with self._lock:
            process = self._idle.pop() if self._idle else None
        process = process or _started(self._command)
        if process is None:
            return parse(data), True  # no process can be had here: better slow than not at all
        answer = process.ask(data)
        if answer is not None:
            with self._lock:
                self._idle.append(process)
        else:
            process.end()
        return (answer, True) if answer else (f.encode_module(f.failed(_DIED)), False)

    def _end_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
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
