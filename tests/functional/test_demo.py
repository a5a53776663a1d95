"""`make demo` shows what it promises."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DEMO = Path(__file__).parents[2] / "fixtures" / "demo.py"


def test_the_demonstration_passes_clean_and_catches_its_fault(tmp_path: Path) -> None:
    """It checks itself and says why it stops; what it says at the end is what it found."""
    archives = tmp_path / "archives"
    done = subprocess.run(
        [sys.executable, str(DEMO), str(archives)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    clean, fault = done.stdout.splitlines()[-2:]
    commands = done.stdout.split("\n$ sgl-graph ")[1:]
    assert [command.split(" ", 1)[0] for command in commands] == ["preflight", "preflight", "run", "reconcile", "run"]
    for command in (c for c in commands if c.startswith(("run", "reconcile"))):
        # As one would see it at a prompt: progress, then the report, then where to go from there.
        shown = [command.index(text) for text in ("Job: ", "lifetime: ", "(exit code ")]
        assert shown == sorted(shown)
        progress = "eager: healthy" if command.startswith("run") else "wrote "
        assert command.index(progress) < shown[0]
    assert all(
        command.index("Job: ") < command.index("manifest digest ") for command in commands if command.startswith("run")
    )
    assert clean.count("PASS") == 3
    assert "'lifetime': 'FAIL'" in fault
    assert "mem_pool.py" in fault
    assert {path.name for path in archives.iterdir()} >= {"clean", "fault", "again", "map.json"}
