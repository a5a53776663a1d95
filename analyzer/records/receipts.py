"""Receipts of one worker (`sgl-graph.receipts/1`): typed lines, read as a stream, verified on their raw bytes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

SCHEMA = "sgl-graph.receipts/1"
FIRST_LINK = b"0" * 32
#: A line may hold the references of a graph of some ten thousand nodes; nothing honest is longer.
LONGEST_LINE = 64 << 20

Id = int | str
Pool = int | str | tuple[int | str, ...] | None
Frame = tuple[str, int, str]

_TAIL = len(',"h":"' + "0" * 32 + '"}')


class _Line(msgspec.Struct, tag_field="k", frozen=True, gc=False):
    """What every line has."""

    n: int


class Hello(_Line, tag="hello", frozen=True):
    """Who writes, with what."""

    worker: str
    schema: str = ""
    run: str | None = None
    launch: str | None = None
    pid: int | None = None
    ppid: int | None = None
    argv: list[str] | None = None
    t: int | None = None
    wall: float | str | None = None
    python: str | None = None
    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    devices: Any = None
    inspector: str | None = None
    hooks: Any = None
    tool: str | None = None


class Role(_Line, tag="role", frozen=True):
    """What the process turned out to be; a later one replaces."""

    role: str | None = None
    rank: dict[str, Any] | None = None


class Source(_Line, tag="source", frozen=True):
    """The serving source as imported; members accumulate."""

    root: str | None = None
    version: str | None = None
    modules: dict[str, str] = {}


class Stack(_Line, tag="stack", frozen=True):
    """Frames, innermost first."""

    id: Id
    frames: list[Frame] = []


class Block(_Line, tag="block", frozen=True):
    """One allocation: the same address handed out again is another block."""

    id: Id
    address: int
    size: int
    pool: Pool = None
    segment: tuple[int, int] | None = None
    device: int | str | None = None
    generation: int | None = None
    allocated: Id | None = None
    during: Id | None = None


class Ref(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One pointer found in a node of a graph."""

    node: int | str | None
    name: int | None
    parameter: int | str | None
    offset: int | None
    via: str | None
    kind: str
    block: Id | None


class Unowned(msgspec.Struct, frozen=True, gc=False):
    """Device memory of no caching allocator, by kernel."""

    kind: str = "unowned"
    name: str | None = None
    count: int = 1


class Site(msgspec.Struct, frozen=True, gc=False):
    """Where a graph was captured."""

    file: str | None = None
    line: int | None = None
    qualname: str | None = None


class Capture(_Line, tag="capture", frozen=True):
    """One captured graph and every reference found in it."""

    graph: Id
    began: int
    ended: int
    pool: Pool = None
    label: str | None = None
    key: Any = None
    site: Site | None = None
    path: str | None = None
    stack: Id | None = None
    nodes: dict[str, int] = {}
    names: list[str] = []
    refs: list[Ref] = []
    unowned: list[Unowned] = []
    unread: list[Any] = []
    complete: bool = False
    keep_graph: bool | None = None
    #: Captured graphs that run inside this one as child graphs: the number of the node, and the graph.
    embeds: list[tuple[int, Id]] = []
    t: int | None = None


class Event(_Line, tag="event", frozen=True):
    """The allocator did something to memory that a graph references."""

    o: int
    e: str
    block: Id | None = None
    over: list[Id] = []
    stack: Id | None = None
    #: For `alloc`: the graph inside whose capture memory was handed out; null for the host program outside captures.
    during: Id | None = None
    #: For `alloc`: what was handed out.
    address: int | None = None
    size: int | None = None
    segment: Any = None
    pool: Pool = None
    blocks: list[Id] = []
    #: For `free`: a library's workspace, whose contents nobody reads later.
    scratch: bool = False
    t: int | None = None


class Replays(_Line, tag="replays", frozen=True):
    """`cycle` repeated and cut at `count`; orders `o` to `to`, nothing else between."""

    o: int
    to: int
    cycle: list[Id]
    count: int
    t0: int | None = None
    t1: int | None = None


class GraphEvent(_Line, tag="graph", frozen=True):
    """A graph object changed."""

    graph: Id
    e: str
    o: int | None = None
    by: Id | None = None
    stack: Id | None = None


class Recorder(_Line, tag="recorder", frozen=True):
    """What became of the recording of allocator events."""

    e: str
    o: int | None = None
    blocks: list[Id] = []
    graphs: list[Id] = []
    detail: Any = None
    stack: Id | None = None


class Poison(_Line, tag="poison", frozen=True):
    """Memory that was filled with a pattern on purpose; moves no verdict."""

    graph: Id | None = None
    pool: Pool = None
    bytes: int | None = None
    blocks: Any = None


class Problem(_Line, tag="problem", frozen=True):
    """The probe failed somewhere."""

    where: str | None = None
    error: str | None = None


class Footer(_Line, tag="footer", frozen=True):
    """The last line, with what was written before it."""

    captures: int
    replays: int
    inspections: int
    problems: int = 0
    reason: str | None = None
    #: What watching took: `events` in `batches`, `seconds` of the probe's thread, `certificates`, `certified_seconds`.
    watched: dict[str, float] = {}


class Damage(msgspec.Struct, frozen=True, gc=False):
    """A place where the file is not what its writer wrote; reading went on unless `fatal`."""

    file: str
    line: int
    what: str
    fatal: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}"


Line = (
    Hello
    | Role
    | Source
    | Stack
    | Block
    | Capture
    | Event
    | Replays
    | GraphEvent
    | Recorder
    | Poison
    | Problem
    | Footer
)

_decoder = msgspec.json.Decoder(Line)


class WorkerReceipts:
    """The receipts of one worker. Iterating reads anew from the start and keeps nothing.

    Lines come in file order; each `Damage` comes before the line it was found in, if that line could be decoded at all.
    """

    def __init__(self, name: str, opened: Callable[[], BinaryIO], *, worker: str | None = None) -> None:
        self.name = name
        #: What the file name says; `None` when there is no file name to hold `hello` against.
        self.worker = worker
        self._open = opened

    def __iter__(self) -> Iterator[Line | Damage]:
        try:
            with self._open() as stream:
                yield from _read(self.name, stream)
        except OSError as error:
            yield Damage(self.name, 0, f"cannot be read: {error.strerror or error}", fatal=True)

    def tapped(self, tap: Callable[[Line | Damage], None]) -> WorkerReceipts:
        """The same receipts, whose reader feeds each line to `tap` too: several judgements in one pass."""
        return _Tapped(self.name, self._open, self.worker, tap)


class _Tapped(WorkerReceipts):
    def __init__(
        self, name: str, opened: Callable[[], BinaryIO], worker: str | None, tap: Callable[[Line | Damage], None]
    ) -> None:
        super().__init__(name, opened, worker=worker)
        self._tap = tap

    def __iter__(self) -> Iterator[Line | Damage]:
        # `map` calls the tap without a second generator between the reader and the judge.
        return map(self._tapped_line, super().__iter__())

    def _tapped_line(self, line: Line | Damage) -> Line | Damage:
        self._tap(line)
        return line


def read_receipts(source: Path | str | bytes, *, name: str | None = None) -> WorkerReceipts:
    """The receipts in a file, or in bytes.

    Args:
        source: Path of a `<worker>.jsonl`, or its content.
        name: How damage names the file; the path by default.
    """
    if isinstance(source, bytes):
        content = source
        return WorkerReceipts(name or "receipts", lambda: io.BytesIO(content))
    path = Path(source)
    return WorkerReceipts(name or str(path), lambda: path.open("rb", buffering=1 << 20), worker=path.stem)


def seal_line(body: bytes, previous: bytes) -> tuple[bytes, bytes]:
    """The line for a body `{...}` and the link that the next line continues from; the writer's rule, for tests and tools."""
    link = hashlib.sha256(previous + body).hexdigest()[:32].encode()
    return body[:-1] + b',"h":"' + link + b'"}\n', link


def write_receipts(bodies: list[Mapping[str, Any]]) -> bytes:
    """A whole receipts file of these bodies, numbered and chained."""
    previous, lines = FIRST_LINK, []
    for number, body in enumerate(bodies):
        line, previous = seal_line(msgspec.json.encode({"n": number, **body}), previous)
        lines.append(line)
    return b"".join(lines)


def _read(name: str, stream: BinaryIO) -> Iterator[Line | Damage]:
    sha256, decode, readline, tail = hashlib.sha256, _decoder.decode, stream.readline, _TAIL
    previous, number = FIRST_LINK, 0
    while raw := readline(LONGEST_LINE + 1):
        if raw[-1] != 10:
            cut = "longer than any honest line" if len(raw) > LONGEST_LINE else "cut: the line has no end"
            yield Damage(name, number + 1, cut, fatal=True)
            return
        stated = raw[-35:-3]
        if (
            sha256(previous + raw[: -tail - 1] + b"}").hexdigest()[:32].encode() != stated
            or raw[-tail - 1 : -35] != b',"h":"'
        ):
            yield Damage(name, number + 1, "the hash chain breaks here: this line, or one before it, was changed")
        # Continuing from the stated link locates further damage instead of condemning every later line.
        previous = stated
        try:
            line = decode(raw)
        except (msgspec.DecodeError, RecursionError) as error:
            yield Damage(name, number + 1, f"not a receipt line: {error}")
        else:
            if line.n != number:
                yield Damage(name, number + 1, f"line {line.n} stands where line {number} belongs")
            yield line
        number += 1
