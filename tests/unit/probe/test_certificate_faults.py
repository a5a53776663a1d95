"""Faults while certificates are taken: whatever happens around a snapshot, none of them passes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sgl_graph.runtime.probe.inspectors import cuda_certifier, cuda_memory, cuda_trace
from sgl_graph.runtime.probe.inspectors.cuda_pace import Pace

from tests.fakes.fake_cuda import Node, kernel
from tests.unit.probe.bench import Bench, enter


def behind_the_snapshot(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """What another thread does when it gets the interpreter right after the next snapshot."""
    real, todo = cuda_trace.MemoryMap, [action]

    def made(segments: list[dict[str, Any]]) -> Any:
        memory = real(segments)
        if todo:
            todo.pop()()
        return memory

    monkeypatch.setattr(cuda_trace, "MemoryMap", made)


def test_a_certificate_vouches_for_no_replay_behind_its_snapshot(lean: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    x, graph = enter(lean)

    def fault() -> None:
        lean.memory.free(x)
        assert lean.memory.malloc(512) == x
        graph.replay()

    behind_the_snapshot(monkeypatch, fault)
    lean.recorder.drain()
    assert lean.verdict() == "INCONCLUSIVE"


def test_what_happens_right_after_certificates_end_is_in_order(lean: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    x, graph = enter(lean)

    def fault() -> None:
        lean.memory.free(x, line=99)
        graph.replay()

    behind_the_snapshot(monkeypatch, fault)
    monkeypatch.setattr(cuda_certifier, "_PAUSE", -1.0)
    lean.recorder.drain()
    assert lean.verdict() == "FAIL"
    assert lean.timeline() == ["replay 0", "free 0", "replay 0"]


def test_marks_go_on_under_certificates(lean: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread follows events again; a free close before a replay of the program's thread still has its order."""
    x, graph = enter(lean)
    for _ in range(5):
        graph.replay()
    lean.recorder.drain()
    monkeypatch.setattr(cuda_certifier, "_PAUSE", -1.0)
    drainer = threading.Thread(target=lean.recorder.drain)
    drainer.start()
    drainer.join()
    assert lean.memory.recording
    lean.memory.free(x)
    graph.replay()
    assert lean.verdict() == "FAIL"


def test_a_block_that_waits_for_a_stream_is_freed(lean: Bench) -> None:
    x, graph = enter(lean)
    lean.memory.free(x, waits=True)
    lean.recorder.drain()
    graph.replay()
    assert lean.verdict() == "FAIL"


def test_recording_switched_on_at_the_moment_certificates_begin(
    bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    over: list[bool] = []
    monkeypatch.setattr(Pace, "overloaded", lambda self, now, events, seconds: bool(over))
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    over.append(True)
    b.torch._C._cuda_record_memory_history("all", "all", "python", 1000, False, False, False, [])
    b.memory.free(x)
    assert b.memory.malloc(512) == x
    graph.replay()
    assert b.verdict() == "FAIL"


def test_certificates_do_not_begin_while_a_capture_does(lean: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    x, graph = enter(lean)
    real = cuda_memory.Window

    def window(*arguments: Any) -> Any:
        graph.replay()
        other = threading.Thread(target=lean.recorder.drain)
        other.start()
        other.join(0.2)
        return real(*arguments)

    monkeypatch.setattr(cuda_memory, "Window", window)
    again = lean.torch.capture(lambda: [kernel(x)])
    lean.memory.free(x)
    assert lean.memory.malloc(512) == x
    again.replay()
    assert lean.verdict() == "FAIL"


def in_own_pool(b: Bench) -> tuple[Any, tuple[int, int]]:
    """A graph with a temporary in a private pool, and the pool; certificates are taken."""
    pool, x = b.torch.new_pool(), b.memory.malloc(512)

    def body() -> list[Node]:
        t = b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(t, x)]

    graph = b.torch.capture(body, pool=pool)
    graph.replay()
    b.recorder.drain()
    assert not b.memory.recording
    return graph, pool


def test_an_owner_of_temporaries_whom_nobody_saw_is_found(lean: Bench) -> None:
    graph, pool = in_own_pool(lean)
    lean.memory.pool = pool  # such as an allocation of C++ code
    y = lean.memory.malloc(512)
    lean.memory.pool = (0, 0)
    graph.replay()
    lean.recorder.drain()
    assert lean.memory.recording  # the end of such an owner is told by events
    graph.replay()
    lean.recorder.drain()
    assert lean.memory.recording
    lean.memory.free(y)
    lean.recorder.drain()
    assert lean.verdict() == "INCONCLUSIVE"
    ties = [r for r in lean.records("recorder") if r["e"] == "tie"]
    assert [(r["graphs"], r["blocks"]) for r in ties] == [([0], [0])]
    assert lean.timeline() == ["free 0", "replay 0", "replay 0", "alloc [0]", "replay 0", "free 2"]


def test_a_program_that_allocates_from_a_pool_by_hand_is_followed(lean: Bench) -> None:
    graph, pool = in_own_pool(lean)
    lean.torch._C._cuda_beginAllocateCurrentStreamToPool(0, pool)
    graph.replay()
    lean.recorder.drain()
    assert lean.memory.recording
    y = lean.memory.malloc(512)
    graph.replay()
    lean.memory.free(y)
    lean.torch._C._cuda_endAllocateToPool(0, pool)
    graph.replay()
    lean.recorder.drain()
    assert lean.verdict() == "INCONCLUSIVE"
    assert "tie" not in [r["e"] for r in lean.records("recorder")]
    assert not lean.memory.recording


def test_an_output_that_the_program_drops_is_no_hazard_of_its_own_graph(lean: Bench) -> None:
    pool, kept = lean.torch.new_pool(), []

    def body() -> list[Node]:
        kept.append(lean.memory.malloc(512))
        return [kernel(kept[0])]

    graph = lean.torch.capture(body, pool=pool)
    graph.replay()
    lean.recorder.drain()
    assert not lean.memory.recording
    lean.memory.free(kept[0])
    graph.replay()
    lean.recorder.drain()
    graph.replay()
    assert lean.verdict() == "PASS"


def test_a_torch_without_short_snapshots_comes_back_from_certificates(
    lean: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = lean.torch._C._cuda_memorySnapshot

    def snapshot(pool: Any) -> Any:
        if pool is not None and len(pool) != 2:
            raise TypeError("a pool has two numbers")
        return real(pool)

    lean.torch._C._cuda_memorySnapshot = snapshot
    enter(lean)
    monkeypatch.setattr(cuda_certifier, "_PAUSE", -1.0)
    lean.recorder.drain()
    assert lean.memory.recording
    assert lean.verdict() == "PASS"


def test_metadata_that_the_program_sets_under_certificates_stays(lean: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    _, graph = enter(lean)
    lean.torch._C._cuda_setMemoryMetadata("theirs")
    graph.replay()
    monkeypatch.setattr(cuda_certifier, "_PAUSE", -1.0)
    lean.recorder.drain()
    assert lean.memory.mark == "theirs"


def test_a_segment_laid_over_a_certified_block_ends_nothing(lean: Bench) -> None:
    x, graph = enter(lean)
    blocks = [{"address": x, "size": 512, "state": "inactive"}]
    lean.memory.segments.append(
        {"address": x, "total_size": 512, "segment_pool_id": (0, 9), "device": 0, "blocks": blocks}
    )
    graph.replay()
    lean.recorder.drain()
    assert lean.verdict() == "PASS"
