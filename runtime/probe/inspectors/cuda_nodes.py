"""Reads a CUDA graph: every word of every argument that could be an address, and what could not be read."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace

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
        node: Index of the node; nodes of child graphs follow their own.
        name: Index into the names.
        parameter: Index of the parameter, or `src` / `dst`.
        offset: Byte offset inside it.
        via: `param`, `extra`, `memcpy`, `memset`, `memop`, `tma` or `child`.
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
    #: Captured graphs that run as child graphs of this one: the node and the graph. Their words are their own records'.
    embeds: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0

    def signature(self) -> int | None:
        """What a clone of this graph has in common with it and another graph has not; None without an address."""
        if not self.words and not self.embeds:
            return None
        words = sorted((self.names[w.name], str(w.parameter), w.offset, w.via, w.value) for w in self.words)
        return hash((tuple(words), tuple(sorted(self.nodes.items())), tuple(g for _, g in self.embeds)))

    def adopt(self, child: Inspection) -> None:
        """Take over what a child graph holds."""
        first = self.total
        self.total += child.total
        for kind, count in child.nodes.items():
            self.nodes[kind] = self.nodes.get(kind, 0) + count
        index = {name: at for at, name in enumerate(self.names)}
        for name in child.names:
            if name not in index:
                index[name] = len(self.names)
                self.names.append(name)
        for word in child.words:
            at = index[child.names[word.name]]
            self.words.append(replace(word, node=first + word.node, name=at, via="child"))
        for entry in child.unread:
            node = entry["node"]
            self.unread.append({**entry, "node": first + node if isinstance(node, int) else node})
        self.embeds += [(first + node, graph) for node, graph in child.embeds]


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
        self._known: dict[int, int] = {}

    def remember(self, inspection: Inspection, graph: int) -> None:
        """The graph that was read is recorded as `graph`: a clone of it inside another graph is that graph again."""
        signature = inspection.signature()
        if signature is not None:
            self._known[signature] = graph

    def read(self, graph: int) -> Inspection:
        """Inspect `graph` and its child graphs. What fails for one node is an `unread` entry, not an exception."""
        return self._inspect(graph, 0)

    def _inspect(self, graph: int, depth: int) -> Inspection:
        into = Inspection()
        index: dict[str, int] = {}
        for node in self.driver.nodes(graph):
            number = into.total
            into.total += 1
            kind = "unknown"
            try:
                kind = self.driver.node_type(node)
                into.nodes[kind] = into.nodes.get(kind, 0) + 1
                self._read_node(node, kind, number, into, index, depth)
            except (DriverError, OSError, ValueError, AttributeError) as error:
                into.unread.append({"node": number, "type": kind, "why": str(error)[:200]})
        return into

    def _read_node(
        self, node: int, kind: str, number: int, into: Inspection, index: dict[str, int], depth: int
    ) -> None:
        def name(text: str) -> int:
            if text not in index:
                index[text] = len(into.names)
                into.names.append(text)
            return index[text]

        def word(label: str, parameter: int | str, via: str, value: int) -> None:
            if _LOWEST <= value < _HIGHEST:
                into.words.append(Word(number, name(label), parameter, 0, via, value, False))

        if kind == "kernel":
            self._read_kernel(node, number, into, name)
        elif kind == "memcpy":
            for side, address in self.driver.memcpy(node):
                word("memcpy", side, "memcpy", address)
        elif kind == "memset":
            word("memset", "dst", "memset", self.driver.memset(node))
        elif kind == "batch-mem-op":
            for at, address in enumerate(self.driver.operations(node)):
                word("memory operation", at, "memop", address)
        elif kind == "host":
            name("host")  # runs a host function: it touches no device memory by itself
        elif kind == "graph":
            if depth >= _DEEPEST:
                raise DriverError("child graphs are nested too deeply")
            self._read_child(self._inspect(self.driver.child(node), depth + 1), into, index)
        elif kind not in _QUIET:
            raise DriverError(f"nodes of type {kind} are not read")

    def _read_child(self, child: Inspection, into: Inspection, index: dict[str, int]) -> None:
        signature = child.signature()
        known = None if signature is None else self._known.get(signature)
        if known is not None:
            child.words.clear()
            child.embeds[:] = [(0, known)]
        into.adopt(child)
        index.update((name, at) for at, name in enumerate(into.names))

    def _read_kernel(self, node: int, number: int, into: Inspection, name: Callable[[str], int]) -> None:
        kernel = self.driver.kernel_node(node)
        function = self._function(kernel)
        label = name(function.name)
        if kernel.params:
            if function.error is not None:
                raise DriverError(f"{function.name}: {function.error}")
            for parameter, data in enumerate(plain_arguments(kernel.params, function.layout)):
                self._scan(into, number, label, parameter, "param", data, function, kernel)
        elif kernel.extra:
            data = packed_arguments(kernel.extra)
            if not data:
                raise DriverError(f"{function.name}: the packed buffer is empty")
            for parameter, (offset, size) in enumerate(function.layout or [(0, len(data))]):
                self._scan(into, number, label, parameter, "extra", data[offset : offset + size], function, kernel)
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
    ) -> None:
        count = len(data) // 8
        if not count:
            return
        uncertain = len(data) > _PLAIN
        if via == "param" and len(data) == _TENSOR_MAP:
            via = "tma"
        unused: frozenset[int] | None = None
        looked = False
        for i, value in enumerate(struct.unpack_from(f"<{count}Q", data)):
            if _LOWEST <= value < _HIGHEST:
                if not looked:
                    looked = True
                    unused = unused_words(function.mangled, data, kernel.grid) if len(data) > 8 else None
                    uncertain = uncertain and unused is None
                if unused is None or i * 8 not in unused:
                    into.words.append(Word(number, name, parameter, i * 8, via, value, uncertain))
