"""A sitting on a GPU host ends in time."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.gpu import stopping


@pytest.fixture(autouse=True)
def handler_of_termination() -> Iterator[None]:
    """What listens to SIGTERM listens for as long as its process lives: this one is the tests'."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


_DEAF = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
_SEALS = """
import time
print('up', flush=True)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print('sealed')
"""


def started(text: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "up\n"
    return process


def test_what_runs_is_interrupted_when_the_time_is_over_and_may_seal_what_it_has() -> None:
    process, stop = started(_SEALS), stopping.Stopping()
    stop.watch(process)
    assert not stop.begun
    stop.listen(0.05)
    assert process.communicate(timeout=20)[0] == "sealed\n"
    assert process.returncode == 0 and stop.begun


def test_what_does_not_heed_it_is_ended() -> None:
    process, stop = started(_DEAF), stopping.Stopping()
    stop.listen(0.05)
    stop.watch(process, patience=0.2)
    assert process.wait(20) == -9
