"""Reads a CUDA graph: every word of every argument that could be an address, and what could not be read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from .cuda_driver import Driver, DriverError, KernelNode, packed_arguments, plain_arguments
from .kernel_layouts import unused_words

#: Device addresses lie in this range on 64-bit hosts; smaller words are counts, larger ones floats and tags.
_LOWEST, _HIGHEST = 1 << 32, 1 << 52
_NAME_LENGTH = 300
_TENSOR_MAP = 128
#: By-value parameters up to this size are small arrays of addresses, filled whole; larger structs may have unused slots.
_PLAIN = 64
_QUIET = frozenset({"empty", "wait-event", "event-record", "mem-free"})
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a node that may be an address.

    Attributes:
        node: Index of the node; nodes of child graphs are counted on.
        name: Index into the names.
        parameter: Index of the parameter, or `src` / `dst`.
        offset: Byte offset inside it.
        via: `param`, `extra`, `memcpy`, `memset`, `tma` or `child`.
        value: The word.
        in_struct: Whether it lies inside a large by-value struct of unknown layout, which may have unused slots.
    """

    node: int
    name: int
    parameter: int | str
    offset: int
    via: str
    value: int
    in_struct: bool


@dataclass(slots=True)
class Inspection:
    """What a graph holds."""

    nodes: dict[str, int] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    unread: list[dict[str, object]] = field(default_factory=list)
    total: int = 0


@dataclass(frozen=True, slots=True)
class _Function:
    """What is the same in each launch of a kernel."""

    mangled: str
    name: str
    layout: list[tuple[int, int]]
    error: str | None


class NodeReader:
    """Reads graphs; names and parameter layouts are kept by function."""

    def __init__(self, driver: Driver) -> None:
        """Args: driver: the CUDA driver."""
        self.driver = driver
        self._functions: dict[tuple[int, int], _Function] = {}

    def read(self, graph: int) -> Inspection:
        """Inspect `graph` and its child graphs. What fails for one node is an `unread` entry, not an exception."""
        inspection = Inspection()
        self._read(graph, inspection, {}, None)
        return inspection

    def _read(self, graph: int, into: Inspection, index: dict[str, int], parent: int | None) -> None:
        for node in self.driver.nodes(graph):
            number = into.total
            into.total += 1
            kind = "unknown"
            try:
                kind = self.driver.node_type(node)
                into.nodes[kind] = into.nodes.get(kind, 0) + 1
                self._read_node(node, kind, number, into, index, parent)
            except (DriverError, OSError, ValueError, AttributeError) as error:
                into.unread.append({"node": number, "type": kind, "why": str(error)[:200]})

    def _read_node(
        self, node: int, kind: str, number: int, into: Inspection, index: dict[str, int], parent: int | None
    ) -> None:
        def name(text: str) -> int:
            if text not in index:
                index[text] = len(into.names)
                into.names.append(text)
            return index[text]

        def word(label: str, parameter: int | str, via: str, value: int) -> None:
            if _LOWEST <= value < _HIGHEST:
                into.words.append(
                    Word(number, name(label), parameter, 0, "child" if parent is not None else via, value, False)
                )

        if kind == "kernel":
            self._read_kernel(node, number, into, name, parent)
        elif kind == "memcpy":
            for side, address in self.driver.memcpy(node):
                word("memcpy", side, "memcpy", address)
        elif kind == "memset":
            word("memset", "dst", "memset", self.driver.memset(node))
        elif kind == "host":
            name("host")  # runs a host function: it touches no device memory by itself
        elif kind == "graph":
            depth = 0 if parent is None else parent + 1
            if depth >= _DEEPEST:
                raise DriverError("child graphs are nested too deeply")
            self._read(self.driver.child(node), into, index, depth)
        elif kind not in _QUIET:
            raise DriverError(f"nodes of type {kind} are not read")

    def _read_kernel(
        self, node: int, number: int, into: Inspection, name: Callable[[str], int], parent: int | None
    ) -> None:
        kernel = self.driver.kernel_node(node)
        function = self._function(kernel)
        label = name(function.name)
        if kernel.params:
            if function.error is not None:
                raise DriverError(f"{function.name}: {function.error}")
            for parameter, data in enumerate(plain_arguments(kernel.params, function.layout)):
                self._scan(into, number, label, parameter, "param", data, function, kernel, parent)
        elif kernel.extra:
            data = packed_arguments(kernel.extra)
            if not data:
                raise DriverError(f"{function.name}: the packed buffer is empty")
            for parameter, (offset, size) in enumerate(function.layout or [(0, len(data))]):
                self._scan(
                    into, number, label, parameter, "extra", data[offset : offset + size], function, kernel, parent
                )
        elif function.error is not None or function.layout:
            raise DriverError(f"{function.name}: the node shows no arguments")

    def _function(self, kernel: KernelNode) -> _Function:
        key = (kernel.function, kernel.kernel)
        known = self._functions.get(key)
        if known is None:
            mangled = self.driver.name(kernel)
            error: str | None = None
            layout: list[tuple[int, int]] = []
            try:
                layout = self.driver.layout(kernel)
            except (DriverError, AttributeError) as failure:
                error = str(failure)
            known = _Function(mangled, self.driver.demangled(mangled)[:_NAME_LENGTH], layout, error)
            self._functions[key] = known
        return known

    @staticmethod
    def _scan(
        into: Inspection,
        number: int,
        name: int,
        parameter: int,
        via: str,
        data: bytes,
        function: _Function,
        kernel: KernelNode,
        parent: int | None,
    ) -> None:
        count = len(data) // 8
        if not count:
            return
        uncertain = len(data) > _PLAIN
        if parent is not None:
            via = "child"
        elif via == "param" and len(data) == _TENSOR_MAP:
            via = "tma"
        unused: frozenset[int] | None = None
        looked = not uncertain
        for i, value in enumerate(struct.unpack_from(f"<{count}Q", data)):
            if _LOWEST <= value < _HIGHEST:
                if not looked:
                    looked = True
                    unused = unused_words(function.mangled, data, kernel.grid)
                    uncertain = unused is None
                if unused is None or i * 8 not in unused:
                    into.words.append(Word(number, name, parameter, i * 8, via, value, uncertain))
