"""Runs a twin program as a real process under the probe and judges what it left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult

ROOT = Path(__file__).resolve().parents[3]
TWINS = ROOT / "fixtures" / "twins"
EMULATED = ROOT / "fixtures" / "emulated"

#: Enters the probe in each process of the program, as the injection of a run does.
_ENTER = """
import atexit, os, threading
from sgl_graph.runtime.probe.config import from_environment
from sgl_graph.runtime.probe.recorder import Recorder

recorder = Recorder(from_environment(), inspector="emugraph.inspector")
recorder.role("program")

from emugraph import inspector

handle = inspector.install(recorder)
os.register_at_fork(after_in_child=lambda: (recorder.forked(), recorder.role("program"), handle.forked()))
atexit.register(lambda: recorder.close("exit"))
leave = os._exit


def leaving(code):
    recorder.close("exit")
    leave(code)


os._exit = leaving


def drain():
    while not recorder.sealed:
        recorder.drain()
        threading.Event().wait(0.1)


threading.Thread(target=drain, daemon=True).start()
"""


@dataclass(frozen=True)
class Outcome:
    """What a twin's process printed, and the verdict on its receipts."""

    output: str
    result: LifetimeResult

    @property
    def numerical(self) -> str:
        """FAIL if any of its numbers were wrong."""
        return "FAIL" if "numerical=FAIL" in self.output else "PASS" if "numerical=PASS" in self.output else "none"

    @property
    def victim(self) -> str:
        """FAIL if somebody else's numbers were wrong."""
        return "FAIL" if "victim=FAIL" in self.output else "PASS" if "victim=PASS" in self.output else "none"


def expectation(script: Path) -> dict[str, str]:
    """The members of a twin's first line."""
    first = script.read_text("utf-8").splitlines()[0]
    assert first.startswith("# expect: "), f"{script.name} states no expectation"
    return dict(re.findall(r"(\w+)=(\S+)", first))


def freeing_line(script: Path) -> int | None:
    """The line marked `# frees`, if any."""
    lines = script.read_text("utf-8").splitlines()
    marked = [number for number, line in enumerate(lines, 1) if line.endswith("# frees")]
    assert len(marked) <= 1
    return marked[0] if marked else None


def run_twin(script: Path, folder: Path) -> Outcome:
    """Run a twin under the probe in `folder`."""
    injected = folder / "injected"
    injected.mkdir()
    (injected / "sitecustomize.py").write_text(_ENTER, "utf-8")
    config = {
        "receipts": str(folder / "receipts"),
        "run": "twin",
        "launch": "program",
        "inspector": "emugraph.inspector",
    }
    (injected / "config.json").write_text(json.dumps(config), "utf-8")
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(injected), str(EMULATED)]),
        "SGL_GRAPH_PROBE": str(injected),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    receipts = [read_receipts(path) for path in sorted((folder / "receipts").glob("*.jsonl"))]
    return Outcome(done.stdout + done.stderr, lifetime_verdict(receipts))
