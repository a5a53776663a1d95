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
        self._homes: dict[int, tuple[int, tuple[int, int]]] = {}

    def captured(self, graph: int, device: int, pool: tuple[int, int]) -> None:
        """A graph was captured: on this device, into this pool."""
        self._homes[graph] = device, pool

    def before(self, graph: int, stream: int | None = None) -> None:
        """Fill free memory of the graph's pool, on its first replay and now and then after.

        Memory that a graph references beyond its own capture is left alone: segments hand it over after it was freed. So is memory
        that somebody owns through a segment laid over the pool's.

        Args:
            graph: about to be launched.
            stream: where, for a launch that names its stream; else it is the current stream of the graph's device.
        """
        count = self._seen[graph] = self._seen.get(graph, 0) + 1
        home = self._homes.get(graph)
        if home is None or (count - 1) % _LOOK_EVERY:
            return
        device, pool = home
        memory = cuda_segments.take(self._torch)
        size = blocks = 0
        with self._torch.cuda.device(device):  # a stream is known to its own device's context alone
            if stream is None:
                stream = int(self._torch.cuda.current_stream().cuda_stream)
            for address, length in memory.free_cells(device, pool):
                for start, end in self._recorder.blocks.unregistered(device, address, address + length):
                    self._driver.fill(start, PATTERN, (end - start) // 4, stream)
                    size += end - start
                    blocks += 1
        if count == 1:
            self._recorder.poison(graph, list(pool), size, blocks)
