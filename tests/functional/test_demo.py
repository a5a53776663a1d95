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
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    clean, fault = done.stdout.splitlines()[-2:]
    assert clean.count("PASS") == 3
    assert "'lifetime': 'FAIL'" in fault
    assert "mem_pool.py" in fault
    assert {path.name for path in archives.iterdir()} >= {"clean", "fault", "again", "map.json"}
