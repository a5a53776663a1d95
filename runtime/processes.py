"""Process groups that we started: found again by a mark in their environment, stopped gently, then surely."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

#: Every process of a run inherits it; nothing else carries the same value.
MARK = "SGL_GRAPH_RUN"


def group_of(pid: int) -> list[psutil.Process]:
    """Members of a process group that are alive."""
    found = []
    for process in psutil.process_iter():
        try:
            if os.getpgid(process.pid) == pid and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def marked(mark: str) -> list[psutil.Process]:
    """Processes of this user that carry the mark of a run, whatever their group or parent is now."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        try:
            carries = needle in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            if carries and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (OSError, psutil.Error):
            continue
    return found


def stop_group(leader: int, mark: str, *, grace: float) -> list[int]:
    """Ask a process group to end, then end it and whatever else carries the mark.

    The leader is asked first: a server stops its own workers best. What ignores that within the grace is killed.

    Args:
        leader: Pid and group of the process that was started in its own session.
        mark: The run's mark.
        grace: Seconds between asking and killing.

    Returns:
        Pids that had to be killed.
    """
    _signal(leader, signal.SIGTERM)
    _wait_gone(leader, mark, grace)
    members = {p.pid: p for p in (*group_of(leader), *marked(mark))}
    for process in members.values():
        _signal(process.pid, signal.SIGTERM)
    if members:
        _wait_gone(leader, mark, min(grace, 3.0))
    killed = []
    for _ in range(20):
        left = {p.pid: p for p in (*group_of(leader), *marked(mark))}
        if not left:
            break
        for pid in left:
            _signal(pid, signal.SIGKILL)
            killed.append(pid)
        time.sleep(0.1)
    return sorted(set(killed))


def stop_marked(mark: str) -> list[int]:
    """End whatever of a run is left, of any group; returns the pids."""
    left = [process.pid for process in marked(mark)]
    for pid in left:
        _signal(pid, signal.SIGKILL)
    return left


class Watchdog:
    """A helper process that ends the run's servers when this process dies without doing so itself."""

    def __init__(self, mark: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sgl_graph.runtime.watchdog", mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, leader: int) -> None:
        """Add a process group."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{leader}\n".encode())
            self._process.stdin.flush()
        except OSError:
            pass  # it died: nothing but the last resort is lost

    def close(self) -> None:
        """Let it go: everything was stopped here."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(b"done\n")
            self._process.stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _wait_gone(leader: int, mark: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _any_alive([*group_of(leader), *marked(mark)]):
            return
        time.sleep(0.1)


def _any_alive(processes: Iterable[psutil.Process]) -> bool:
    return any(p.is_running() for p in processes)
