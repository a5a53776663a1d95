"""Graphs run again on raw addresses, and nothing runs while a capture is open."""

from __future__ import annotations

import emugraph as torch
import numpy as np
import pytest
from emugraph.device import CaptureOpen
from emugraph.inspection import count_by_type, words

N = 1 << 16


def test_replay_reads_what_lies_there_now() -> None:
    """New values in place are seen."""
    x = torch.full((8,), 1.0)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
    for value in (3.0, 4.0):
        x.fill_(value)
        g.replay()
        assert y.tolist() == [2 * value] * 8


def test_capture_records_and_runs_nothing() -> None:
    """Until the first replay the output holds junk."""
    x = torch.full((8,), 1.0)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2
        with pytest.raises(CaptureOpen):
            y.item()
    assert y.tolist() != [2.0] * 8
    assert count_by_type(g.nodes or []) == {"kernel": 1}


def test_temporaries_are_reused_in_the_pool_and_outputs_lie_in_it() -> None:
    """A graph's own allocations come from its pool."""
    x = torch.full((N,), 1.0)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        a = x + 1
        first = a.data_ptr()
        del a
        b = x + 2
    assert b.data_ptr() == first
    block = torch.device.allocator.find(first)
    assert block is not None and block.segment.pool == g.pool()


def test_a_graph_holds_its_pool_only() -> None:
    """After reset and emptying the cache its memory is gone."""
    x = torch.full((N,), 1.0)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        total = (x + 1).sum()
    pool = g.pool()
    torch.cuda.empty_cache()
    g.replay()
    assert total.item() == 2.0 * N
    del total
    g.reset()
    torch.cuda.empty_cache()
    assert pool not in torch.device.allocator.pools
    with pytest.raises(RuntimeError, match="preceding successful capture"):
        g.replay()


def test_child_graph_is_taken_by_value() -> None:
    """A replay inside a capture runs nothing and becomes a node."""
    x = torch.full((8,), 1.0)
    inner, outer = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(inner):
        y = x + 1
    with torch.cuda.graph(outer):
        inner.replay()
        z = y * 10
    outer.replay()
    assert z.tolist() == [20.0] * 8
    assert count_by_type(outer.nodes or []) == {"child": 1, "kernel": 1}
    assert x.data_ptr() in {word.value for word in words(outer.nodes or []) if word.via == "child"}


def test_pointers_stand_in_structs_and_packed_buffers() -> None:
    """Every tensor's address is found among the words of its node, by the way it was passed."""
    a, b = torch.full((4, 4), 1.0), torch.full((4, 4), 2.0)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        c = a @ b
        joined = torch.cat([a, b])
        joined.zero_()
        b.copy_(c)
    found = {(word.via, word.value) for word in words(g.nodes or [])}
    assert {("extra", a.data_ptr()), ("extra", c.data_ptr()), ("param", b.data_ptr())} <= found
    assert {("memset", joined.data_ptr()), ("memcpy", c.data_ptr()), ("memcpy", b.data_ptr())} <= found


def test_an_update_must_fit() -> None:
    """Another topology is refused."""
    x = torch.full((8,), 1.0)
    one, two = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(one):
        kept = x + 1
    with torch.cuda.graph(two):
        other = (x + 1) * 2
    executable = torch.runtime.graphInstantiate(one)
    with pytest.raises(RuntimeError, match="topology"):
        torch.runtime.graphExecUpdate(executable, two)
    assert kept.shape == other.shape


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_operators_agree_with_numpy(dtype: np.dtype) -> None:  # type: ignore[type-arg]
    """Strided views, broadcasting, reductions."""
    values = np.arange(24).reshape(4, 6).astype(dtype)
    t = torch.from_numpy(values)
    assert np.array_equal((t[1:, ::2] + t[0, :3]).numpy(), values[1:, ::2] + values[0, :3])
    assert np.array_equal((t.T * 2 - 1).numpy(), values.T * 2 - 1)
    assert np.array_equal(t.sum(1).numpy(), values.sum(1))
    assert np.array_equal(t.argmax(0).numpy(), values.argmax(0))
    assert np.array_equal((t >= 7).numpy(), values >= 7)
    assert np.array_equal(torch.cat([t, t], 1).numpy(), np.concatenate([values, values], 1))
    assert np.array_equal(t[torch.tensor([3, 0])].numpy(), values[[3, 0]])
    assert np.array_equal(t.transpose(0, 1).reshape(-1).numpy(), values.T.reshape(-1))
