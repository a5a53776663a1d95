"""Overwrites free memory of a graph's pool before its replays, so that dependence on stale contents shows as wrong output."""

from __future__ import annotations

from typing import Any

from ..recorder import Recorder
from . import cuda_segments
from .cuda_driver import Driver

#: Reads as NaN in float32, bfloat16 and float16, and as a large index.
PATTERN = 0x7FFF7FFF
_LOOK_EVERY = 16


class Poisoner:
    """Off unless the run asks for it; it moves no verdict and orders itself before the replay on the replay's stream."""

    def __init__(self, recorder: Recorder, torch: Any, driver: Driver) -> None:
        """Args: recorder: written to once a graph. torch: the module. driver: fills the memory."""
        self._recorder = recorder
        self._torch = torch
        self._driver = driver
        self._seen: dict[int, int] = {}
        self.pools: dict[int, tuple[int, int]] = {}

    def before(self, graph: int) -> None:
        """Fill free memory of the graph's pool, on its first replay and now and then after.

        Memory that a graph references beyond its own capture is left alone: segments hand it over after it was freed.
        """
        count = self._seen[graph] = self._seen.get(graph, 0) + 1
        pool = self.pools.get(graph)
        if pool is None or (count - 1) % _LOOK_EVERY:
            return
        memory = cuda_segments.take(self._torch)
        stream = int(self._torch.cuda.current_stream().cuda_stream)
        size = blocks = 0
        for device, address, length in memory.free_cells(pool):
            for start, end in self._recorder.blocks.unregistered(device, address, address + length):
                self._driver.fill(start, PATTERN, (end - start) // 4, stream)
                size += end - start
                blocks += 1
        if count == 1:
            self._recorder.poison(graph, list(pool), size, blocks)
