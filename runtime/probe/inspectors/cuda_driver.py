"""The few functions of the CUDA driver that reading a graph needs, through ctypes: no package of any version is required."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass

NODE_TYPES = (
    "kernel",
    "memcpy",
    "memset",
    "host",
    "graph",
    "empty",
    "wait-event",
    "event-record",
    "semaphore-signal",
    "semaphore-wait",
    "mem-alloc",
    "mem-free",
    "batch-mem-op",
    "conditional",
)
_CAPTURE_ACTIVE = 1
_MEMORY_HOST, _MEMORY_ARRAY = 1, 3
_ATTRIBUTE_MEMORY_TYPE, _ATTRIBUTE_IS_MANAGED = 2, 8
_BUFFER_POINTER, _BUFFER_SIZE = 1, 2
#: Where the address lies in an operation on one word of memory, by the number of the operation; None where it has none.
_OPERATION_ADDRESS = {1: 8, 2: 8, 3: None, 4: 8, 5: 8, 6: None, 8: 16}
_OPERATION_SIZE = 48
#: No kernel has more parameters than its 32 KiB of them could hold; ends a driver that never errs.
_MOST_PARAMETERS = 4096


class DriverError(Exception):
    """A driver call failed."""


class _KernelNodeParams(ctypes.Structure):
    _fields_ = [
        ("func", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("params", c_void_p),
        ("extra", c_void_p),
        ("kern", c_void_p),
        ("ctx", c_void_p),
    ]


class _Side(ctypes.Structure):
    _fields_ = [
        ("x", c_size_t),
        ("y", c_size_t),
        ("z", c_size_t),
        ("lod", c_size_t),
        ("type", c_uint),
        ("host", c_void_p),
        ("device", c_uint64),
        ("array", c_void_p),
        ("reserved", c_void_p),
        ("pitch", c_size_t),
        ("height", c_size_t),
    ]


class _Memcpy(ctypes.Structure):
    _fields_ = [("src", _Side), ("dst", _Side), ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t)]


class _Memset(ctypes.Structure):
    _fields_ = [
        ("dst", c_uint64),
        ("pitch", c_size_t),
        ("value", c_uint),
        ("element", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class _Operations(ctypes.Structure):
    _fields_ = [("ctx", c_void_p), ("count", c_uint), ("operations", c_void_p), ("flags", c_uint)]


@dataclass(frozen=True, slots=True)
class KernelNode:
    """A kernel node as the driver shows it: handles and where its arguments lie in host memory."""

    function: int
    kernel: int
    grid: tuple[int, int, int]
    params: int
    extra: int


class Driver:
    """Typed calls into libcuda; each raises DriverError when the driver refuses."""

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        """Load the driver (`library` replaces it in tests)."""
        self._cuda = library or ctypes.CDLL("libcuda.so.1")
        self._demangle = _demangler()

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._cuda, name)(*arguments)
        if code:
            raise DriverError(f"{name} returned {code}")

    def version(self) -> int:
        """The CUDA version that the driver supports, such as 13000."""
        out = c_int()
        self._call("cuDriverGetVersion", byref(out))
        return out.value

    def captured_graph(self, stream: int) -> int | None:
        """The graph that the capture on `stream` is building, or None when it does not capture."""
        status, identifier, graph = c_int(), c_uint64(), c_void_p()
        dependencies, count = c_void_p(), c_size_t()
        self._call(
            "cuStreamGetCaptureInfo_v2",
            c_void_p(stream),
            byref(status),
            byref(identifier),
            byref(graph),
            byref(dependencies),
            byref(count),
        )
        return graph.value if status.value == _CAPTURE_ACTIVE else None

    def nodes(self, graph: int) -> list[int]:
        """The graph's nodes."""
        count = c_size_t()
        self._call("cuGraphGetNodes", c_void_p(graph), None, byref(count))
        array = (c_void_p * max(count.value, 1))()
        if count.value:
            self._call("cuGraphGetNodes", c_void_p(graph), array, byref(count))
        return [array[i] or 0 for i in range(count.value)]

    def node_type(self, node: int) -> str:
        """One of NODE_TYPES, or `type N` for one this module does not know."""
        out = c_int()
        self._call("cuGraphNodeGetType", c_void_p(node), byref(out))
        return NODE_TYPES[out.value] if 0 <= out.value < len(NODE_TYPES) else f"type {out.value}"

    def kernel_node(self, node: int) -> KernelNode:
        """A kernel node's handles and argument addresses."""
        p = _KernelNodeParams()
        self._call("cuGraphKernelNodeGetParams_v2", c_void_p(node), byref(p))
        return KernelNode(p.func or 0, p.kern or 0, (p.grid[0], p.grid[1], p.grid[2]), p.params or 0, p.extra or 0)

    def layout(self, node: KernelNode) -> list[tuple[int, int]]:
        """Offset and size of each parameter of the kernel."""
        if node.function:
            query, handle = self._cuda.cuFuncGetParamInfo, node.function
        elif node.kernel:
            query, handle = self._cuda.cuKernelGetParamInfo, node.kernel
        else:
            raise DriverError("the node names no kernel")
        offset, size = c_size_t(), c_size_t()
        layout: list[tuple[int, int]] = []
        while len(layout) < _MOST_PARAMETERS:
            code = query(c_void_p(handle), c_size_t(len(layout)), byref(offset), byref(size))
            if code == 1:  # CUDA_ERROR_INVALID_VALUE: past the last parameter
                return layout
            if code:
                raise DriverError(f"the parameter layout cannot be read: {code}")
            layout.append((offset.value, size.value))
        raise DriverError("the parameter layout does not end")

    def name(self, node: KernelNode) -> str:
        """The kernel's name as compiled (mangled)."""
        out = c_char_p()
        if node.function:
            self._call("cuFuncGetName", byref(out), c_void_p(node.function))
        else:
            self._call("cuKernelGetName", byref(out), c_void_p(node.kernel))
        return (out.value or b"").decode("utf-8", "replace")

    def demangled(self, name: str) -> str:
        """The name as written in the source, or as it is when it is not mangled."""
        return self._demangle(name)

    def memcpy(self, node: int) -> list[tuple[str, int]]:
        """`src` and `dst` addresses of a copy; a side that is an opaque array is left out."""
        p = _Memcpy()
        self._call("cuGraphMemcpyNodeGetParams", c_void_p(node), byref(p))
        found = []
        for label, side in (("src", p.src), ("dst", p.dst)):
            if side.type != _MEMORY_ARRAY:
                found.append((label, (side.host or 0) if side.type == _MEMORY_HOST else side.device))
        return found

    def memset(self, node: int) -> int:
        """The address that a memset writes."""
        p = _Memset()
        self._call("cuGraphMemsetNodeGetParams", c_void_p(node), byref(p))
        return int(p.dst)

    def operations(self, node: int) -> list[int]:
        """The addresses of the words that a batch of memory operations waits for or writes."""
        p = _Operations()
        self._call("cuGraphBatchMemOpNodeGetParams", c_void_p(node), byref(p))
        found = []
        for start in range(p.operations or 0, (p.operations or 0) + p.count * _OPERATION_SIZE, _OPERATION_SIZE):
            kind = c_uint.from_address(start).value
            if kind not in _OPERATION_ADDRESS:
                raise DriverError(f"memory operations of kind {kind} are not read")
            offset = _OPERATION_ADDRESS[kind]
            if offset is not None:
                found.append(c_uint64.from_address(start + offset).value)
        return found

    def child(self, node: int) -> int:
        """The graph of a child-graph node."""
        out = c_void_p()
        self._call("cuGraphChildGraphNodeGetGraph", c_void_p(node), byref(out))
        if not out.value:
            raise DriverError("the child graph has no handle")
        return out.value

    def fill(self, address: int, pattern: int, words: int, stream: int) -> None:
        """Enqueue a fill of 32-bit words."""
        self._call("cuMemsetD32Async", c_uint64(address), c_uint(pattern), c_size_t(words), c_void_p(stream))

    def memory_kind(self, address: int) -> str | None:
        """`device`, `managed`, `pinned` (page-locked host memory), or None for what the driver does not know."""
        kind, managed = c_uint(), c_uint()
        attributes = (c_int * 2)(_ATTRIBUTE_MEMORY_TYPE, _ATTRIBUTE_IS_MANAGED)
        data = (c_void_p * 2)(ctypes.cast(byref(kind), c_void_p), ctypes.cast(byref(managed), c_void_p))
        if self._cuda.cuPointerGetAttributes(c_uint(2), attributes, data, c_uint64(address)) or not kind.value:
            return None
        if managed.value:
            return "managed"
        return "pinned" if kind.value == _MEMORY_HOST else "device"


def packed_arguments(extra: int) -> bytes:
    """The packed parameter buffer of a launch with `extra`; empty when it holds none."""
    pointer = ctypes.sizeof(c_void_p)
    buffer = size = 0
    for i in range(0, 16, 2):
        key = c_void_p.from_address(extra + i * pointer).value or 0
        if not key:
            break
        value = c_void_p.from_address(extra + (i + 1) * pointer).value or 0
        if key == _BUFFER_POINTER:
            buffer = value
        elif key == _BUFFER_SIZE and value:
            size = c_size_t.from_address(value).value
    return ctypes.string_at(buffer, size) if buffer and size else b""


def plain_arguments(params: int, layout: list[tuple[int, int]]) -> list[bytes]:
    """The bytes of each parameter of a launch with `kernelParams`."""
    if not layout:
        return []
    pointers = (c_void_p * len(layout)).from_address(params)
    found = []
    for i, (_, size) in enumerate(layout):
        pointer = pointers[i]
        found.append(ctypes.string_at(pointer, size) if pointer else b"")
    return found


def _demangler() -> Callable[[str], str]:
    """`str -> str` by the C++ runtime that torch has loaded anyway, or the identity."""
    try:
        runtime = ctypes.CDLL("libstdc++.so.6")
        free = ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return lambda name: name
    runtime.__cxa_demangle.restype = c_void_p
    runtime.__cxa_demangle.argtypes = [c_char_p, c_void_p, c_void_p, POINTER(c_int)]
    free.argtypes = [c_void_p]

    def demangle(name: str) -> str:
        if not name.startswith("_Z"):
            return name
        status = c_int()
        out = runtime.__cxa_demangle(name.encode(), None, None, byref(status))
        if not out or status.value:
            return name
        text = ctypes.string_at(out).decode("utf-8", "replace")
        free(out)
        return text

    return demangle
