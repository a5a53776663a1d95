"""Processes that turn source files into facts; a file that ends its process is a record, never the end of the others."""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from sgl_graph.analyzer.static import facts as f
from sgl_graph.analyzer.static.lower import extract
from sgl_graph.analyzer.static.nesting import too_deep

_DIED = "the parser's process died on it"
#: Idle parsers go after this: they hold a hundred megabytes each, and the analysis needs its memory towards the end.
_IDLE_SECONDS = 2.0


def parse(data: bytes) -> bytes:
    """Encoded facts of one file's bytes."""
    return f.encode_module(f.failed("nested too deeply for Python") if too_deep(data) else extract(data))


class Parsers:
    """A pool that outlives files which no parser survives."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None
        self._pending: dict[str, tuple[Future[bytes], bytes]] = {}
        self._submitted = 0.0

    def __contains__(self, path: str) -> bool:
        return path in self._pending

    def submit(self, path: str, data: bytes) -> None:
        """Have a file parsed."""
        if self._pool is None:
            self._pool = _pool(self._jobs)
        self._submitted = time.monotonic()
        try:
            self._pending[path] = self._pool.submit(parse, data), data
        except BrokenProcessPool:
            self._pool = None
            self.submit(path, data)

    def result(self, path: str) -> tuple[bytes, bool]:
        """Encoded facts of a submitted file, and whether they are the file's own for good."""
        future, data = self._pending.pop(path)
        try:
            return future.result(), True
        except BrokenProcessPool:
            # Every file that was waiting fails alike; which of them did it is seen where each is alone.
            self._pool = None
        with _pool(1) as alone:
            try:
                return alone.submit(parse, data).result(), True
            except BrokenProcessPool:
                return f.encode_module(f.failed(_DIED)), False

    def rest(self) -> None:
        """Let the processes go when nothing was asked of them for a while; they come back when something is."""
        idle = all(future.done() for future, _ in self._pending.values())
        if self._pool is not None and idle and time.monotonic() - self._submitted > _IDLE_SECONDS:
            self._pool.shutdown(wait=False)
            self._pool = None

    def close(self) -> dict[str, bytes]:
        """Stop; what was parsed and not yet asked for."""
        done = {
            path: future.result()
            for path, (future, _) in self._pending.items()
            if future.done() and not future.cancelled() and future.exception() is None
        }
        self._pending.clear()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None
        return done


def _pool(jobs: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("forkserver"))
