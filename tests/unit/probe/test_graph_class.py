"""The wrapped methods of `CUDAGraph`: what a program does with them that is out of the ordinary."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from tests.fakes.fake_cuda import kernel
from tests.unit.probe.bench import Run


@pytest.mark.parametrize("own_hooks", [False, True])
def test_a_replay_that_torch_refuses_ran_nothing(bench: Run, own_hooks: bool) -> None:
    """After a reset the memory may go: a program that tries whether the graph still is one does nothing wrong."""
    b = bench(own_hooks=own_hooks)
    x = b.memory.malloc(512)
    never = b.torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding"):
        never.replay()
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    graph.reset()
    b.memory.free(x)
    with pytest.raises(RuntimeError, match="without a preceding") as caught:
        graph.replay()
    assert caught.value.__context__ is None
    y = b.memory.malloc(512)
    b.torch.capture(lambda: [kernel(y)], graph).replay()
    assert [w for w in b.timeline() if w.startswith("replay")] == ["replay 0", "replay 1"]
    assert b.verdict() == "PASS"


def test_a_graph_whose_capture_was_not_seen_makes_no_pass(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    b.torch.capture(lambda: [kernel(x)]).replay()
    stranger = b.torch.cuda.CUDAGraph()
    stranger.captured = True
    stranger.replay()
    assert b.verdict() == "INCOMPLETE"


def test_a_subclass_may_refuse_attributes(bench: Run) -> None:
    b = bench()

    class Strict(b.torch.cuda.CUDAGraph):  # type: ignore[misc, name-defined]
        ready = False

        def __init__(self) -> None:
            super().__init__()
            self.ready = True

        def __setattr__(self, name: str, value: Any) -> None:
            if self.ready and name.startswith("_sgl"):
                raise AttributeError(name)
            super().__setattr__(name, value)

    x = b.memory.malloc(512)
    b.torch.capture(lambda: [kernel(x)], Strict()).replay()
    assert b.verdict() == "PASS"


def test_the_methods_look_and_complain_as_torchs_own(bench: Run) -> None:
    b = bench()
    cls = b.torch.cuda.CUDAGraph
    assert list(inspect.signature(cls.capture_begin).parameters) == ["self", "pool", "capture_error_mode"]
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'self'"):
        cls.replay()


def test_the_mark_of_a_replay_is_nothing_of_the_programs(bench: Run) -> None:
    b = bench()
    x = b.memory.malloc(512)
    b.torch.capture(lambda: [kernel(x)]).replay()
    assert b.memory.mark == "g1"
    assert b.torch._C._cuda_getMemoryMetadata() == ""
    b.torch._C._cuda_setMemoryMetadata("mine")
    assert b.torch._C._cuda_getMemoryMetadata() == "mine"
