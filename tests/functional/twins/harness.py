"""Runs a twin program as a real process under the probe and judges what it left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult
from sgl_graph.runtime.inject import ProbeSettings, write_injection

ROOT = Path(__file__).resolve().parents[3]
TWINS = ROOT / "fixtures" / "twins"
EMULATED = ROOT / "fixtures" / "emulated"


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
    settings = ProbeSettings("twin", "program", folder / "receipts", inspector="emugraph.inspector@emugraph")
    injection = write_injection(folder / "injected", settings)
    environment = injection.environment({**os.environ, "PYTHONPATH": str(EMULATED), "PYTHONDONTWRITEBYTECODE": "1"})
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    receipts = [read_receipts(path) for path in sorted((folder / "receipts").glob("*.jsonl"))]
    return Outcome(done.stdout + done.stderr, lifetime_verdict(receipts))
