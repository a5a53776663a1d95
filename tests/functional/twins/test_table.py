"""Each twin program gives the verdict of its first line, as a real process under the probe."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.twins.harness import TWINS, expectation, freeing_line, run_twin

SCRIPTS = sorted(path for path in TWINS.glob("*.py") if path.name != "twinlib.py")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_twin(script: Path, tmp_path: Path) -> None:
    """The verdict, the freeing line where there is one, and numbers really right or wrong are as the first line says."""
    expected = expectation(script)
    outcome = run_twin(script, tmp_path)
    detail = f"{outcome.result.reason}\n{outcome.output}"
    assert outcome.result.value in expected["lifetime"].split("|"), detail
    assert outcome.numerical == expected["numerical"], detail
    if "victim" in expected:
        assert outcome.victim == expected["victim"], detail
    line = freeing_line(script)
    if line is not None:
        definite = [finding for finding in outcome.result.findings if finding.severity == "definite"]
        places = [place for finding in definite for place in finding.freed_at]
        assert any(place.startswith(f"{script}:{line} ") for place in places), places
    if "outside" in expected:
        assert expected["outside"] in {entry.kind for entry in outcome.result.outside} | {
            "unowned" for entry in outcome.result.outside if entry.kind == "device"
        }
    if expected["lifetime"] == "PASS":
        assert outcome.result.findings == ()
