"""The probe's own thread: drains events, notices the seal, gathers what may be gathered slowly."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .recorder import Recorder

#: How often events are fetched; also the most that a killed process loses.
PERIOD = 0.1
_SLOW_PERIOD = 2.0


class Drainer:
    """A daemon thread; `start` is idempotent and works again in a forked child."""

    def __init__(
        self,
        recorder: Recorder,
        slow: list[Callable[[], object]],
        sealed: Callable[[], None] = lambda: None,
        period: float = PERIOD,
    ) -> None:
        """Drain a recorder.

        Args:
            recorder: The worker's.
            slow: Run every two seconds and before the footer.
            sealed: Run once the run was sealed: takes the hooks away while the process goes on.
            period: Seconds between drains.
        """
        self._recorder = recorder
        self._sealed = sealed
        self._slow = slow
        self._period = period
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    def start(self) -> None:
        """Run, unless it runs."""
        if self._thread is None or not self._thread.is_alive():
            self._stop = threading.Event()
            self._thread = threading.Thread(target=self._run, name="sgl-graph-probe", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        last = 0.0
        stop = self._stop
        while not stop.wait(self._period) and not self._recorder.sealed:
            if self._recorder.config.seal.exists():
                self.finish("sealed")
                self._sealed()
                return
            try:
                self._recorder.drain()
                now = time.monotonic()
                if now - last > _SLOW_PERIOD:
                    last = now
                    self._gather()
            except Exception as error:
                self._recorder.problem("drainer", error)

    def _gather(self) -> None:
        for call in self._slow:
            try:
                call()
            except Exception as error:
                self._recorder.problem("drainer", error)

    def finish(self, reason: str) -> None:
        """Gather and drain a last time and write the footer (idempotent, never raises)."""
        try:
            if not self._recorder.sealed:
                self._gather()
                self._recorder.close(reason)
        except Exception as error:
            self._recorder.problem("footer", error)
        self._stop.set()
