"""Which came first, a replay or an allocator event: threads, clocks, ties and the end of the receipts."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from sgl_graph.runtime.probe.inspectors import cuda_placement, cuda_trace
from sgl_graph.runtime.probe.inspectors.cuda_placement import SLACK_NS, Clock, Placement, read_clock
from sgl_graph.runtime.probe.timeline import Waiting

from tests.fakes.fake_cuda import Node, kernel
from tests.unit.probe.bench import Bench, Run

_SECOND = 1_000_000_000


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> float:
    """Clocks that are far apart, so that a slow machine changes nothing; seconds that are surely more."""
    monkeypatch.setattr(cuda_placement, "SLACK_NS", 100_000_000)
    monkeypatch.setattr(cuda_placement, "DISTANCE_NS", 100_000_000)
    return 0.15


def waiting(*threads: int, first: int = 11) -> list[Waiting]:
    """A replay a second of graph 0."""
    return [Waiting(first + k, (k + 1) * _SECOND, 0, thread) for k, thread in enumerate(threads)]


def at(seconds: float, text: str = "") -> dict[str, Any]:
    return {"time_us": round(seconds * 1e6), "user_metadata": text}


def test_a_mark_places_exactly_and_times_leave_what_is_close_open() -> None:
    replays, clock = waiting(1, 1, 1, 1), Clock(0, 0)
    marked = Placement(10, lambda: replays, clock, {1: 10})
    assert marked.place(at(3, "g12"))[:3] == (12, 12, 12)
    assert marked.place(at(3, "g11"))[:3] == (12, 12, 12)
    timed = Placement(10, lambda: replays, clock, {1: 10})
    assert timed.place(at(2.5, "somebody's"))[:3] == (12, 12, 12)
    assert timed.place(at(3 + SLACK_NS / 2e9))[:3] == (12, 13, 13)
    before = Placement(10, lambda: replays, clock, {1: 10})
    assert before.place(at(1, "g10"))[:3] == (10, 10, 10)


def test_what_the_clocks_tell_is_no_proof(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread freed what was replayed a moment later: a fault by the clocks; the other way round none, and no PASS."""
    monkeypatch.setattr(cuda_placement, "SLACK_NS", _SECOND)
    place = Placement(10, lambda: waiting(1, 1), Clock(0, 0), None).place(at(1.5))
    assert place[:3] == (10, 11, 12)
    verdicts = []
    for late in (False, True):
        b = bench()
        x = b.memory.malloc(512)
        graph = b.torch.capture(lambda x=x: [kernel(x)])
        time.sleep(0.01)
        steps = [lambda b=b, x=x: elsewhere(lambda: b.memory.free(x)), graph.replay]
        for step in reversed(steps) if late else steps:
            step()
            time.sleep(0.01)
        verdicts.append(b.verdict())
        b.inspector.remove()
    assert verdicts == ["FAIL", "INCONCLUSIVE"]


def test_a_mark_says_nothing_of_another_threads_replays() -> None:
    replays, clock = waiting(1, 2, 2, 1), Clock(0, 0)
    assert Placement(10, lambda: replays, clock, {}).place(at(3.5, "g11"))[:3] == (13, 13, 13)
    assert Placement(10, lambda: replays, clock, {}).place(at(4.5, "g11"))[:2] == (
        13,
        13,
    )  # its thread's own comes after
    assert Placement(10, lambda: replays, clock, {}).place(at(3, "g11"))[:3] == (12, 13, 13)
    assert Placement(10, lambda: replays, clock, {3: 4}).place(at(3.5, "g4"))[:3] == (13, 13, 13)
    assert Placement(10, lambda: replays, clock, {}).place(at(3.5, "g4"))[:3] == (13, 13, 13)


def test_a_clock_that_was_set_leaves_open_what_it_may_have_moved() -> None:
    moved = Clock(-_SECOND, 0).since(Clock(0, 1000))
    assert moved.doubt == _SECOND + 1000
    replays = waiting(1, 1, 1, 1)
    assert Placement(10, lambda: replays, moved, None).place(at(1.5))[:3] == (11, 13, 13)
    assert read_clock().doubt < SLACK_NS


def test_a_halt_between_two_clocks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([0, 5 * _SECOND, 6 * _SECOND, 6 * _SECOND + 100])
    monkeypatch.setattr(
        cuda_placement, "time", SimpleNamespace(monotonic_ns=lambda: next(readings), time_ns=lambda: 7 * _SECOND)
    )
    assert read_clock() == Clock(_SECOND - 50, 50)


def test_a_wall_clock_set_back_hides_no_free(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    b = bench(markers=False)
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    b.memory.free(x)
    time.sleep(0.002)
    graph.replay()
    shifted = SimpleNamespace(monotonic_ns=time.monotonic_ns, time_ns=lambda: time.time_ns() - _SECOND)
    monkeypatch.setattr(cuda_placement, "time", shifted)
    assert b.verdict() == "INCONCLUSIVE"


def test_a_tie_claims_no_fault_of_a_replay_that_may_have_come_first(bench: Run, wide: float) -> None:
    b = bench(markers=False)
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    time.sleep(wide)
    graph.replay()
    b.memory.free(x)
    assert b.verdict() == "INCONCLUSIVE"
    assert b.timeline() == ["replay 0", "free 0"]


def test_a_replay_behind_a_tie_is_a_fault(bench: Run, wide: float) -> None:
    b = bench(markers=False)
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    b.memory.free(x)
    time.sleep(wide)
    graph.replay()
    assert b.verdict() == "FAIL"


def test_what_preceded_a_replay_that_a_tie_moved_is_a_tie_as_well(bench: Run, wide: float) -> None:
    b = bench()
    x, y = b.memory.malloc(512), b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x, y)])
    elsewhere(lambda: b.memory.free(x))
    b.memory.free(y)
    graph.replay()
    assert b.verdict() == "INCONCLUSIVE"
    assert b.timeline() == ["replay 0", "free 0", "free 1"]
    ties = [r for r in b.records("recorder") if r["e"] == "tie"]
    assert [(r["blocks"], r["graphs"]) for r in ties] == [([0], [0]), ([1], [0])]


def test_a_new_owner_of_temporaries_close_to_a_replay_is_a_tie(bench: Run, wide: float) -> None:
    b = bench(markers=False)
    pool = b.torch.new_pool()

    def body() -> list[Node]:
        t = b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(t)]

    graph = b.torch.capture(body, pool=pool)
    time.sleep(wide)
    graph.replay()
    b.memory.pool = pool
    b.memory.malloc(512)
    b.recorder.drain()
    assert [r["graphs"] for r in b.records("recorder") if r["e"] == "tie"] == [[0]]
    assert b.timeline() == ["free 0", "replay 0", "alloc [0]"]


def test_the_end_of_an_owner_of_temporaries_close_to_a_replay_is_a_tie(bench: Run, wide: float) -> None:
    b = bench(markers=False)
    pool = b.torch.new_pool()

    def body() -> list[Node]:
        t = b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(t)]

    graph = b.torch.capture(body, pool=pool)
    b.memory.pool = pool
    y = b.memory.malloc(512)
    b.memory.pool = (0, 0)
    time.sleep(wide)
    b.recorder.drain()
    graph.replay()
    b.memory.free(y)
    assert b.verdict() == "INCONCLUSIVE"


def elsewhere(action: Any) -> None:
    thread = threading.Thread(target=action)
    thread.start()
    thread.join()


def test_a_thread_that_frees_after_another_replayed_is_no_fault(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    elsewhere(graph.replay)
    time.sleep(0.002)
    b.memory.free(x)
    assert b.verdict() == "PASS"


def test_a_thread_that_captured_and_never_replayed_frees_afterwards(bench: Run, wide: float) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    elsewhere(graph.replay)
    b.memory.free(x)
    assert b.verdict() == "INCONCLUSIVE"  # two threads within the clocks' distance


def test_a_free_right_before_a_replay_of_the_same_thread_is_a_fault(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    b.memory.free(x)
    graph.replay()
    assert b.verdict() == "FAIL"


def test_an_owner_of_temporaries_that_was_gone_in_the_same_batch_is_no_hazard(bench: Run) -> None:
    b = bench()
    pool = b.torch.new_pool()

    def body() -> list[Node]:
        t = b.memory.malloc(512)
        b.memory.free(t)
        return [kernel(t)]

    graph = b.torch.capture(body, pool=pool)
    graph.replay()
    b.memory.pool = pool
    b.memory.free(b.memory.malloc(512))
    b.memory.pool = (0, 0)
    graph.replay()
    assert b.verdict() == "PASS"


def test_a_replay_behind_the_last_fetch_is_in_no_receipt(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread goes on while the footer is being written: what preceded its replays nobody knows."""
    b: Bench = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    trace = b.inspector._watch.trace  # type: ignore[union-attr]
    fetch, fetched = trace.fetch, []

    def fetch_and_go_on(**options: Any) -> Any:
        batch = fetch(**options)
        fetched.append(batch)
        if len(fetched) == 2:
            b.memory.free(x)
            graph.replay()
        return batch

    monkeypatch.setattr(trace, "fetch", fetch_and_go_on)
    assert b.verdict() == "PASS"
    assert b.timeline() == ["replay 0"]
    assert b.records("footer")[0]["replays"] == 1


def test_an_overflow_is_told_though_the_program_reset_the_counters(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_trace, "_ENTRIES", 50)
    b = bench()
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    b.recorder.drain()
    b.memory.free(x)
    for _ in range(50):
        b.memory.free(b.memory.malloc(4096))
    b.memory.allocated = b.memory.freed = 0
    graph.replay()
    assert b.verdict() == "INCOMPLETE"
