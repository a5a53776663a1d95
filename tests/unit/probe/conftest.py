"""Makes `tests.fakes` importable however pytest was started, and a bench for the inspector."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ROOT = str(Path(__file__).parents[3])
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from sgl_graph.runtime.probe.inspectors import cuda_certifier
from sgl_graph.runtime.probe.inspectors.cuda_pace import Pace

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


@pytest.fixture
def lean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench that takes certificates from its first drain after a capture on."""
    monkeypatch.setattr(Pace, "overloaded", lambda self, now, events, seconds: True)
    monkeypatch.setattr(Pace, "calm", lambda self, now, counted: False)
    monkeypatch.setattr(cuda_certifier, "_SHORTEST", 0.0)
    monkeypatch.setattr(cuda_certifier, "_SHARE", 1e9)
    b = Bench(tmp_path, monkeypatch)
    yield b
    b.inspector.remove()
