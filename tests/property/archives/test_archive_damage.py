"""A quick sample of the damage run; the whole is a command (damage.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.property.archives import damage


@pytest.mark.timeout(120)
def test_no_verdict_comes_out_better_for_damage() -> None:
    counts = damage.run_many(1300, seed=1)
    assert sum(counts.values()) == 1300
    changed = {
        kind: sum(n for (k, outcome), n in counts.items() if k == kind and outcome != "unchanged")
        for kind in damage.KINDS
    }
    assert min(changed.values()) >= 50, changed


def test_the_check_can_fail() -> None:
    """A bent archive that still passed would be caught: the base itself, claimed to be touched, is."""
    with pytest.raises(AssertionError, match="became PASS"):
        base = damage.Base(Path("/nowhere"), "", {"lifetime": "FAIL", "numerical": "PASS", "coverage": "PASS"}, [])
        case = damage.Case(Path("/nowhere"), base, [], damage.random.Random(0))
        damage.check(case, {"lifetime": "PASS", "numerical": "PASS", "coverage": "PASS"}, "made up")
