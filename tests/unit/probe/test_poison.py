"""What `--poison` overwrites, on which stream, and what it must leave alone."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from sgl_graph.runtime.probe.inspectors.cuda_segments import MemoryMap

from tests.fakes.fake_cuda import SEGMENT, Node, kernel
from tests.unit.probe.bench import Bench, Run

POOL = (0, 3)


def captured(b: Bench, **how: Any) -> Any:
    """A graph whose temporary is free after its capture."""

    def body() -> list[Node]:
        b.memory.free(scratch := b.memory.malloc(4096))
        return [kernel(scratch)]

    return b.torch.capture(body, **how)


def test_a_launch_that_names_its_stream_is_poisoned_there(bench: Run) -> None:
    """The current stream orders nothing before a launch elsewhere: the graph would be overwritten while it runs."""
    b = bench(settings={"poison": True})
    runtime: Any = ModuleType("cuda.bindings.runtime")
    runtime.cudaGraphInstantiate = lambda graph, *rest: (0, int(graph) + 10_000)
    runtime.cudaGraphLaunch = lambda executable, stream: (0,)
    b.inspector.launches.patch(runtime)
    graph = captured(b, graph=b.torch.cuda.CUDAGraph(keep_graph=True))
    _, executable = runtime.cudaGraphInstantiate(graph.raw_cuda_graph())
    runtime.cudaGraphLaunch(executable, 55)
    assert set(b.torch.driver.filled_on) == {55}
    for _ in range(16):
        runtime.cudaGraphLaunch(executable, stream=66)
    assert set(b.torch.driver.filled_on) == {55, 66}


def test_a_replay_is_poisoned_on_the_stream_of_its_own_device(bench: Run) -> None:
    """PyTorch replays a graph on its own device, whichever is current."""
    b = bench(settings={"poison": True})
    with b.torch.cuda.device(1):
        graph = captured(b)
    for segment in b.memory.segments:
        segment["device"] = 1
    graph.replay()
    assert set(b.torch.driver.filled_on) == {107}


def test_memory_that_is_owned_through_another_segment_is_left_alone(bench: Run) -> None:
    """A second allocator may hand out free blocks of a graph's pool: what is owned there is not free."""
    b = bench(settings={"poison": True})
    pool = b.torch.new_pool()
    graph = captured(b, pool=pool)
    [segment] = b.memory.segments
    at = segment["address"]
    lent = [
        {"address": at + 8192, "size": 4096, "state": "active_allocated"},
        {"address": at + 12288, "size": 4096, "state": "inactive"},
        {"address": at + 16384, "size": 4096, "state": "active_pending_free"},
    ]
    over = {"address": at + 8192, "total_size": 12288, "segment_pool_id": (0, 99), "device": 0, "blocks": lent}
    b.memory.segments.append(over)
    graph.replay()
    touched = {byte for address, size in b.torch.driver.filled for byte in range(address, address + size, 512)}
    assert touched == set(range(at, at + SEGMENT, 512)) - {
        byte for start in (at + 8192, at + 16384) for byte in range(start, start + 4096, 512)
    }


def test_free_memory_is_that_of_one_device() -> None:
    blocks = [{"size": 512, "state": "inactive"}, {"size": 512, "state": "active_allocated"}]
    segments = [
        {"address": at, "total_size": 1024, "segment_pool_id": POOL, "device": device, "blocks": blocks}
        for device, at in ((0, 4096), (1, 8192))
    ]
    assert MemoryMap(segments).free_cells(1, POOL) == [(8192, 512)]
