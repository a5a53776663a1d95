"""`run --program` by the command line: judged by its lifetime, and the program's own end is told wherever it is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parents[3] / "fixtures"
CLEAN = (FIXTURES / "twins" / "e30_ends_by_exception.py").read_text("utf-8").replace("raise SystemExit(3)", "")


def run_program(tmp_path: Path, script: str | None, *options: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """A program run on the emulated device; what was printed, and the ledger if there is one."""
    if script is not None:
        (tmp_path / "program.py").write_text(script)
    path = os.pathsep.join([str(FIXTURES / "emulated"), str(FIXTURES / "twins")])
    program = ["--", sys.executable, "program.py"]
    done = subprocess.run(
        [sys.executable, "-m", "sgl_graph.cli", "run", "--program", "--out", "out", *options, *program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": path, "SGL_GRAPH_INSPECTOR": "emugraph.inspector"},
    )
    ledger = tmp_path / "out" / "ledger.json"
    return done, json.loads(ledger.read_text()) if ledger.exists() else None


def test_a_program_that_fails_by_itself_says_so_beside_its_verdict(tmp_path: Path) -> None:
    """The exit code is the verdict's; table, report and stderr tell that the program did not end well."""
    done, ledger = run_program(tmp_path, CLEAN + "raise SystemExit(3)\n", "-q")
    assert (done.returncode, ledger["verdicts"]["lifetime"]["value"]) == (0, "PASS")
    told = "the program ended with exit status 3: what it did not reach is not judged"
    for text in (done.stdout, (tmp_path / "out" / "report.md").read_text()):
        assert told in text.partition("Not run / not covered")[2]
    assert "warning: the program itself ended with exit status 3" in done.stderr


def test_a_program_that_is_killed_says_by_what(tmp_path: Path) -> None:
    killed = CLEAN + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    done, ledger = run_program(tmp_path, killed)
    assert done.returncode == 3 and ledger["verdicts"]["lifetime"]["value"] == "INCOMPLETE"
    assert any(text.startswith("the program ended with signal 9 (SIGKILL)") for text in ledger["limitations"])


def test_a_program_that_ends_well_has_nothing_to_tell(tmp_path: Path) -> None:
    done, ledger = run_program(tmp_path, CLEAN)
    assert (done.returncode, ledger["verdicts"]["lifetime"]["value"]) == (0, "PASS")
    assert "the program ended with exit status 0" in done.stderr and "warning" not in done.stderr
    assert not [text for text in ledger["limitations"] if "ended" in text]


def test_a_program_that_dies_before_its_first_graph_is_not_run_because_of_that(tmp_path: Path) -> None:
    done, ledger = run_program(tmp_path, "import emugraph as torch\nimport os, signal\nraise ValueError('early')\n")
    assert done.returncode == 3, done.stderr
    assert "the program ended with exit status 1" in ledger["verdicts"]["lifetime"]["reason"]


def test_a_script_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    done, ledger = run_program(tmp_path, None)
    assert (done.returncode, done.stdout, ledger) == (2, "", None)
    assert "program.py: no such script" in done.stderr
    assert list(tmp_path.iterdir()) == []
