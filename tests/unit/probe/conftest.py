"""Makes `tests.fakes` importable however pytest was started, and a bench for the inspector."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ROOT = str(Path(__file__).parents[3])
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from tests.unit.probe.bench import Bench, Run


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    made: list[Bench] = []

    def make(**torch: Any) -> Bench:
        made.append(Bench(tmp_path, monkeypatch, **torch))
        return made[-1]

    yield make
    for b in made:
        b.inspector.remove()
