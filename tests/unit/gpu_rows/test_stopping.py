"""A sitting on a GPU host ends in time."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

_spec = importlib.util.spec_from_file_location("stopping", Path(__file__).parents[2] / "gpu" / "stopping.py")
assert _spec is not None and _spec.loader is not None
stopping: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(stopping)

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
