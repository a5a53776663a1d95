"""A torch with a caching allocator, graphs and a driver to read them, all of plain Python: what the CUDA inspector touches."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from sgl_graph.runtime.probe.inspectors.cuda_driver import DriverError, KernelNode

SEGMENT = 1 << 21
BASE = 0x7F0000000000


@dataclass
class Node:
    """A node of a fake graph; `arguments` are the kernel's parameters."""

    kind: str = "kernel"
    name: str = "kernel"
    arguments: list[bytes] = field(default_factory=list)
    sides: list[tuple[str, int]] = field(default_factory=list)
    child: int = 0


class FakeDriver:
    """Graphs by handle; a stream captures the graph that `capturing` names."""

    def __init__(self) -> None:
        self.graphs: dict[int, list[Node]] = {}
        self.capturing: int | None = None
        self.kinds: dict[int, str] = {}
        self.filled: list[tuple[int, int]] = []
        self.filled_on: list[int] = []

    def captured_graph(self, stream: int) -> int | None:
        """Only a device's current stream, whose number ends in 7, ever captures."""
        return self.capturing if stream % 100 == 7 else None

    def nodes(self, graph: int) -> list[int]:
        return [graph * 1000 + i for i in range(len(self.graphs[graph]))]

    def _node(self, node: int) -> Node:
        return self.graphs[node // 1000][node % 1000]

    def node_type(self, node: int) -> str:
        return self._node(node).kind

    def kernel_node(self, node: int) -> KernelNode:
        return KernelNode(node, 0, (1, 1, 1), node, 0)

    def layout(self, kernel: KernelNode) -> list[tuple[int, int]]:
        if self._node(kernel.function).name == "opaque":
            raise DriverError("no layout")
        return [(0, len(a)) for a in self._node(kernel.function).arguments]

    def name(self, kernel: KernelNode) -> str:
        return self._node(kernel.function).name

    def demangled(self, name: str) -> str:
        return name

    def memcpy(self, node: int) -> list[tuple[str, int]]:
        return self._node(node).sides

    def memset(self, node: int) -> int:
        return self._node(node).sides[0][1]

    def operations(self, node: int) -> list[int]:
        return [address for _, address in self._node(node).sides]

    def child(self, node: int) -> int:
        return self._node(node).child

    def memory_kind(self, address: int) -> str | None:
        return self.kinds.get(address)

    def fill(self, address: int, pattern: int, words: int, stream: int) -> None:
        self.filled.append((address, 4 * words))
        self.filled_on.append(stream)

    def arguments(self, params: int, layout: list[tuple[int, int]]) -> list[bytes]:
        """What `plain_arguments` reads in the real driver."""
        return self._node(params).arguments


class Allocator:
    """First fit within segments of a pool; the history is kept as torch keeps it."""

    def __init__(self, *, markers: bool = True) -> None:
        self.segments: list[dict[str, Any]] = []
        self.trace: list[dict[str, Any]] = []
        self.recording = False
        self.most = 1
        self._marks: dict[int, str] = {}  # torch keeps them by thread
        self.allocated = self.freed = 0
        self.pool = (0, 0)
        self.line = 1
        self.anonymous = False
        self.file = "/srv/program.py"

    @property
    def mark(self) -> str:
        """The calling thread's metadata."""
        return self._marks.get(threading.get_ident(), "")

    @mark.setter
    def mark(self, text: str) -> None:
        self._marks[threading.get_ident()] = text

    def _frames(self) -> list[dict[str, Any]]:
        """The allocating stack, which blocks keep only while it is recorded."""
        if not self.recording or self.anonymous:
            return []
        return [{"filename": self.file, "line": self.line, "name": "main"}]

    def _note(self, action: str, address: int, size: int) -> None:
        if self.recording and action != "free_completed":
            frames = self._frames()
            self.trace.append(
                {
                    "action": action,
                    "addr": address,
                    "size": size,
                    "stream": 0,
                    "time_us": time.time_ns() // 1000,
                    "user_metadata": self.mark,
                    "frames": frames,
                }
            )
            del self.trace[: -self.most]

    def malloc(self, size: int, line: int = 1) -> int:
        self.line = line
        self.allocated += 1
        for segment in self.segments:
            if segment["segment_pool_id"] != self.pool:
                continue
            for index, block in enumerate(segment["blocks"]):
                if block["state"] == "inactive" and block["size"] >= size:
                    rest = block["size"] - size
                    block.update(size=size, state="active_allocated", frames=self._frames())
                    if rest:
                        spare = {"address": block["address"] + size, "size": rest, "state": "inactive"}
                        segment["blocks"].insert(index + 1, spare)
                    self._note("alloc", block["address"], size)
                    return int(block["address"])
        address = BASE + sum(s["total_size"] for s in self.segments)
        block = {"address": address, "size": SEGMENT, "state": "inactive"}
        self.segments.append(
            {"address": address, "total_size": SEGMENT, "segment_pool_id": self.pool, "device": 0, "blocks": [block]}
        )
        self._note("segment_alloc", address, SEGMENT)
        self.allocated -= 1
        return self.malloc(size, line)

    def free(self, address: int, line: int = 1, *, waits: bool = False) -> None:
        """`waits`: another stream uses the memory still, so that nobody gets it yet."""
        self.line = line
        self.freed += 1
        for segment in self.segments:
            for block in segment["blocks"]:
                if block["address"] == address and block["state"] == "active_allocated":
                    block["state"] = "active_pending_free" if waits else "inactive"
                    self._note("free_requested", address, block["size"])
                    return
        raise AssertionError("not allocated")


class FakeTorch:
    """The parts of the torch module that the inspector uses."""

    __version__ = "2.99"
    version = SimpleNamespace(cuda="13.0")

    def __init__(self, *, markers: bool = True, own_hooks: bool | str = False, backend: str = "native") -> None:
        self.allocator = allocator = Allocator()
        self.driver = FakeDriver()
        self._C = self._make_c(allocator, markers)
        self._pool_number = self._device = 0
        self.lazy: list[Callable[[], None]] = []
        self.cuda = SimpleNamespace(
            CUDAGraph=_graph_class(self, own_hooks),
            current_device=lambda: self._device,
            current_stream=lambda: SimpleNamespace(cuda_stream=7 + 100 * self._device),
            device=self._on,
            is_current_stream_capturing=lambda: self.driver.capturing is not None,
            _lazy_call=lambda call: call(),
            get_allocator_backend=lambda: backend,
        )

    @contextmanager
    def _on(self, device: int) -> Iterator[None]:
        before, self._device = self._device, device
        yield
        self._device = before

    @staticmethod
    def _make_c(a: Allocator, markers: bool) -> SimpleNamespace:
        def switch(enabled: str | None, context: Any, stacks: str, most: int, clear: bool, *rest: Any) -> None:
            if len(rest) != 3:
                raise TypeError("incompatible function arguments")
            a.recording = enabled == "all"
            a.most = most
            if clear or not a.recording:
                a.trace.clear()

        def snapshot(pool: Any) -> dict[str, Any]:
            wanted = None if not pool or tuple(pool[:2]) == (0, 0) else tuple(pool[:2])
            segments = [s for s in a.segments if wanted in (None, s["segment_pool_id"])]
            copies = [{**s, "blocks": [dict(b) for b in s["blocks"]]} for s in segments]
            return {"segments": copies, "device_traces": [list(a.trace)]}

        def mark(text: str) -> None:
            a.mark = text

        stats = {"allocation": {"all": {}}}

        def memory_stats(device: int) -> dict[str, Any]:
            return {**stats, "allocation": {"all": {"allocated": a.allocated, "freed": a.freed}}}

        c = SimpleNamespace(
            _cuda_record_memory_history=switch,
            _cuda_memorySnapshot=snapshot,
            _cuda_memoryStats=memory_stats,
            _cuda_getDeviceCount=lambda: 1,
            _cuda_cudaCachingAllocator_enable=lambda value: None,
            _cuda_beginAllocateCurrentStreamToPool=lambda device, pool: setattr(a, "pool", pool),
            _cuda_endAllocateToPool=lambda device, pool: setattr(a, "pool", (0, 0)),
        )
        if markers:
            c._cuda_setMemoryMetadata = mark
            c._cuda_getMemoryMetadata = lambda: a.mark
        return c

    def capture(self, body: Callable[[], list[Node]], graph: Any = None, pool: Any = None) -> Any:
        """Capture: `body` allocates as it likes and returns the nodes."""
        graph = graph or self.cuda.CUDAGraph()
        graph.capture_begin(pool)
        self.driver.graphs[self.driver.capturing or 0] = body()
        graph.capture_end()
        return graph

    def new_pool(self) -> tuple[int, int]:
        self._pool_number += 1
        return (0, self._pool_number)


def _graph_class(torch: FakeTorch, own_hooks: bool | str) -> type:
    """`own_hooks`: hooks that get the graph (True), nothing (`bare`) or more (`more`), or that are refused (`refused`)."""

    class CUDAGraph:
        count = 0

        def __init__(self, keep_graph: bool = False) -> None:
            self.keep_graph = keep_graph
            self.ran = 0
            self.captured = False
            self.hooks: list[Callable[[Any], None]] = []

        def capture_begin(self, pool: Any = None, capture_error_mode: str = "global") -> None:
            CUDAGraph.count += 1
            self.raw = CUDAGraph.count
            self._pool = pool or torch.new_pool()
            torch.driver.capturing = self.raw
            torch.allocator.pool = self._pool

        def capture_end(self) -> None:
            torch.driver.capturing = None
            torch.allocator.pool = (0, 0)
            self.captured = True
            if any(node.kind == "invalid" for node in torch.driver.graphs[self.raw]):
                raise RuntimeError("capture invalidated")

        def instantiate(self) -> None:
            pass

        def replay(self) -> None:
            if not self.captured:
                raise RuntimeError("replay without a preceding successful capture")
            for hook in self.hooks:
                hook(self)
            self.ran += 1

        def reset(self) -> None:
            self.captured = False

        def pool(self) -> tuple[int, int]:
            return self._pool

        def raw_cuda_graph(self) -> int:
            if not self.keep_graph:
                raise RuntimeError("keep_graph is off")
            return int(self.raw)

        def raw_cuda_graph_exec(self) -> int:
            return int(self.raw) + 10_000

    if own_hooks:

        def register_replay_start_hook(self: Any, hook: Callable[..., None]) -> None:
            if own_hooks == "refused":
                raise TypeError("takes a stream as well")
            given: dict[Any, tuple[Any, ...]] = {"bare": (), "more": (self, 7)}
            self.hooks.append(lambda graph: hook(*given.get(own_hooks, (graph,))))

        CUDAGraph.register_replay_start_hook = register_replay_start_hook  # type: ignore[attr-defined]
    return CUDAGraph


def kernel(*addresses: int, name: str = "kernel") -> Node:
    """A kernel with one plain parameter an address."""
    return Node(name=name, arguments=[struct.pack("<Q", a) for a in addresses])


def packed(*words: int, name: str = "kernel") -> Node:
    """A kernel with one by-value struct."""
    return Node(name=name, arguments=[struct.pack(f"<{len(words)}Q", *words)])
