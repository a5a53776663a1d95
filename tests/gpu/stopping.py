"""Ends a sitting on a GPU host in time: what runs is interrupted, so that it seals what it has, and nothing more begins."""

from __future__ import annotations

import signal
import subprocess
import threading


class Stopping:
    """Set by SIGTERM or when the time is over."""

    def __init__(self) -> None:
        """Nothing is to stop yet."""
        self._event = threading.Event()

    @property
    def begun(self) -> bool:
        """Whether nothing more is to be started."""
        return self._event.is_set()

    def listen(self, limit: float | None) -> None:
        """Stop at SIGTERM, and after `limit` seconds."""
        signal.signal(signal.SIGTERM, lambda *_: self._event.set())
        if limit:
            timer = threading.Timer(limit, self._event.set)
            timer.daemon = True
            timer.start()

    def watch(self, process: subprocess.Popen[str], patience: float = 25.0) -> None:
        """Interrupt a process when it is time, and end it when that has not helped after `patience` seconds."""
        threading.Thread(target=self._wait_for, args=(process, patience), daemon=True).start()

    def _wait_for(self, process: subprocess.Popen[str], patience: float) -> None:
        while process.poll() is None:
            if self._event.wait(0.1):
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(patience)
                except subprocess.TimeoutExpired:
                    process.kill()
                return
