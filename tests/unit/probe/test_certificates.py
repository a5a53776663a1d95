"""Certificates instead of events, when following events costs too much."""

from __future__ import annotations

from pathlib import Path

import pytest
from sgl_graph.runtime.probe.inspectors import cuda_certifier, cuda_pace
from sgl_graph.runtime.probe.inspectors.cuda_pace import Pace

from tests.fakes.fake_cuda import kernel
from tests.unit.probe.bench import Bench, enter


def test_only_a_lasting_overload_counts() -> None:
    pace = Pace()
    assert not any(pace.overloaded(t / 10, 20_000, 0.01) for t in range(15))
    assert any(pace.overloaded(1.5 + t / 10, 20_000, 0.01) for t in range(10))
    calm = Pace()
    assert not any(calm.overloaded(t / 10, 100, 0.001) for t in range(100))
    bursts = Pace()
    assert not any(bursts.overloaded(t / 10, 20_000 if t % 20 < 8 else 0, 0.0) for t in range(200))


def test_a_steady_load_with_short_gaps_is_an_overload() -> None:
    """A server's decode loop of 1 ms with 40 allocator events a step; every second a batch ends and the next one arrives."""
    pace = Pace()
    steps = [0 if t % 10 == 9 else 100 for t in range(30)]  # a drain each tenth of a second
    assert any(pace.overloaded(t / 10, 40 * n, 40 * n * 1.9e-6) for t, n in enumerate(steps))
    light = Pace()
    assert not any(light.overloaded(t / 10, 10 * n, 10 * n * 1.9e-6) for t, n in enumerate(steps))


def test_a_program_that_was_overloaded_before_is_believed_sooner() -> None:
    pace = Pace()
    lasted = [next(t for t in range(100) if pace.overloaded(t / 10, 20_000, 0.01))]
    pace.reset()
    lasted.append(next(t for t in range(100) if pace.overloaded(t / 10, 20_000, 0.01)))
    assert lasted == [15, 5]  # tenths of a second


def test_calm_needs_a_low_rate_for_a_while() -> None:
    pace = Pace()
    assert not any(pace.calm(t / 2, 100_000 * t) for t in range(10))
    assert [pace.calm(5 + t / 2, 1_000_000) for t in range(3)] == [False, True, True]


def test_clean_churn_stays_certified(lean: Bench) -> None:
    _, graph = enter(lean)
    for _ in range(20):
        lean.memory.free(lean.memory.malloc(512))
        graph.replay()
        lean.recorder.drain()
    assert lean.timeline() == ["replay 0"] * 21
    assert [r["e"] for r in lean.records("recorder")] == ["on", "on"]


def test_a_block_freed_and_handed_out_again_loses_its_certificate(lean: Bench) -> None:
    x, graph = enter(lean)
    graph.replay()
    lean.memory.free(x)
    assert lean.memory.malloc(512) == x
    graph.replay()
    lean.recorder.drain()
    assert lean.memory.recording
    graph.replay()
    assert lean.timeline() == ["replay 0"] * 3 + ["free 0", "alloc [0]", "replay 0"]
    assert [(r["e"], r.get("blocks")) for r in lean.records("recorder")][2] == ("tie", [0])


def test_a_pause_of_the_replays_is_followed_event_by_event(lean: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    x, graph = enter(lean)
    monkeypatch.setattr(cuda_certifier, "_PAUSE", -1.0)
    lean.recorder.drain()
    assert lean.memory.recording
    lean.memory.free(x, line=99)
    graph.replay()
    assert lean.timeline() == ["replay 0", "free 0", "replay 0"]
    assert "tie" not in [r["e"] for r in lean.records("recorder")]
    assert lean.records("event")[-1]["stack"] is not None


def test_a_capture_is_always_followed_event_by_event(lean: Bench) -> None:
    enter(lean)
    y = lean.memory.malloc(512)
    lean.torch.capture(lambda: [kernel(y)])
    captures = lean.records("capture")
    assert [c["complete"] for c in captures] == [True, True]


def test_the_end_settles_what_is_open(lean: Bench) -> None:
    x, graph = enter(lean)
    lean.recorder.drain()
    lean.inspector._watch._certifier._due = 1e18  # type: ignore[union-attr]
    graph.replay()
    lean.memory.free(x)
    graph.replay()
    lean.recorder.close("exit")
    assert lean.timeline() == ["replay 0"] * 3 + ["free 0"]
    assert "tie" in [r["e"] for r in lean.records("recorder")]


def test_a_program_that_switches_recording_on_ends_the_certificates(lean: Bench) -> None:
    x, graph = enter(lean)
    lean.memory.free(x)
    lean.torch._C._cuda_record_memory_history("all", "all", "python", 1000, False, False, False, [])
    lean.memory.malloc(512)
    graph.replay()
    assert lean.timeline() == ["replay 0", "free 0", "alloc [0]", "replay 0"]


def test_blocks_without_a_stack_are_followed_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "overloaded", lambda self, now, events, seconds: True)
    b = Bench(tmp_path, monkeypatch)
    b.memory.anonymous = True
    x = b.memory.malloc(512)
    b.torch.capture(lambda: [kernel(x)]).replay()
    b.recorder.drain()
    assert b.memory.recording
    b.inspector.remove()


def test_the_budget_is_what_the_documents_say() -> None:
    assert (cuda_pace.BUDGET, cuda_pace.PATIENCE, cuda_pace.PATIENCE_AGAIN) == (0.04, 1.5, 0.5)
