"""Start one server in its own process group, wait until it is healthy, and leave nothing of it behind."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import psutil
from sgl_graph.analyzer.errors import HostError, ServerStartFailed
from sgl_graph.analyzer.server_log import TAIL_BYTES, error_in, failure_cause, last_lines
from sgl_graph.runtime.client import Client
from sgl_graph.runtime.processes import MARK, Watchdog, group_of, marked, stop_group

Say = Callable[[str], None]
_POLL = 0.5


class Server:
    """One launched server. Use as a context manager: leaving it stops the whole process group."""

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        *,
        log: Path,
        host: str,
        port: int,
        mark: str,
        watchdog: Watchdog | None = None,
        api_key: str | None = None,
        scheme: str = "http",
        cwd: Path | None = None,
        stop_grace: float = 20.0,
        request_timeout: float = 300.0,
    ) -> None:
        self._argv, self._env = list(argv), {**env, MARK: mark}
        self.log, self.port, self._mark, self._watchdog = log, port, mark, watchdog
        self._cwd, self._grace = cwd, stop_grace
        self._process: subprocess.Popen[bytes] | None = None
        shown = f"[{host}]" if ":" in host else host
        self.client = Client(f"{scheme}://{shown}:{port}", api_key=api_key, timeout=request_timeout)
        self.killed: list[int] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int | None:
        """Pid of the process that was started, which is also its group."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process.

        Raises:
            ServerStartFailed: The program cannot be executed.
        """
        with self.log.open("ab") as output:
            try:
                self._process = subprocess.Popen(
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._env,
                    cwd=self._cwd,
                    start_new_session=True,
                )
            except OSError as error:
                raise ServerStartFailed(f"cannot start {self._argv[0]}: {error.strerror}") from error
        if self._watchdog:
            self._watchdog.watch(self._process.pid)

    def wait_healthy(self, timeout: float, say: Say) -> float:
        """Wait for /health; returns the seconds it took.

        Raises:
            ServerStartFailed: It died, or was not healthy in time, or another process answers on its port.
        """
        began = time.monotonic()
        said = began
        while True:
            self.check_alive()
            if self.client.healthy():
                self._check_owner()
                return time.monotonic() - began
            waited = time.monotonic() - began
            if waited > timeout:
                raise ServerStartFailed(
                    f"not healthy within {timeout:g} s; {_still_starting(self.tail())}", hint=f"see {self.log}"
                )
            if time.monotonic() - said > 10:
                said = time.monotonic()
                lines = last_lines(self.tail(), 1)
                say(f"  {waited:.0f} s, starting: {lines[0] if lines else '(no output yet)'}")
            time.sleep(_POLL)

    def check_alive(self) -> None:
        """Make sure that the process still runs.

        Raises:
            ServerStartFailed: It ended; the message carries the cause found in its log.
        """
        assert self._process is not None
        status = self._process.poll()
        if status is None:
            return
        cause = failure_cause(self.tail()) or "it wrote no reason"
        how = f"signal {-status}" if status < 0 else f"exit code {status}"
        raise ServerStartFailed(f"the server ended ({how}): {cause}", hint=f"see {self.log}")

    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process is not None and self._process.poll() is None

    def pids(self) -> list[int]:
        """All processes of this server."""
        if self.pid is None:
            return []
        return sorted({p.pid for p in (*group_of(self.pid), *marked(self._mark))})

    def tail(self) -> str:
        """The end of the log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""

    def log_size(self) -> int:
        """Bytes of log so far."""
        try:
            return self.log.stat().st_size
        except OSError:
            return 0

    def log_between(self, begin: int, end: int) -> str:
        """The part of the log written between two sizes."""
        with self.log.open("rb") as file:
            file.seek(begin)
            return file.read(max(0, min(end - begin, TAIL_BYTES))).decode("utf-8", "replace")

    def stop(self) -> None:
        """Stop the process group gently, then surely; safe to call twice."""
        self.client.close()
        if self._process is None:
            return
        self.killed += stop_group(self._process.pid, self._mark, grace=self._grace)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired as error:
            raise HostError(f"process {self._process.pid} does not end") from error

    def _check_owner(self) -> None:
        """A healthy answer counts only when one of our own processes listens on the port."""
        ours, owner = set(self.pids()), None
        try:
            for connection in psutil.net_connections("tcp"):
                if connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == self.port:
                    if connection.pid in ours:
                        return
                    owner = connection.pid or owner or 0
        except (psutil.Error, OSError):
            return  # this host does not tell
        if owner is not None:
            raise ServerStartFailed(f"port {self.port} is answered by another process (pid {owner or 'unknown'})")


def _still_starting(log: str) -> str:
    """What the log of a server that still starts tells; a line that speaks of no error is not passed off as a cause."""
    cause = error_in(log)
    if cause:
        return f"its log shows: {cause}"
    last = next(iter(last_lines(log, 1)), "")
    return f"no error in its log, which ends: {last}" if last else "its log is empty"


def free_port(host: str = "127.0.0.1") -> int:
    """A port that nothing listens on."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def port_taken(host: str, port: int) -> bool:
    """Whether the port cannot be bound."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return True
        return False
