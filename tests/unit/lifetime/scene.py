"""Builds receipts by telling what happened, in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import SCHEMA, read_receipts, write_receipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult

SEGMENT = [0x7F00_0000_0000, 1 << 24]
DEFAULT = [0, 0]
POOL = [0, 1]


class Scene:
    """The receipts of one worker; every method appends what its name says and returns an identity where there is one."""

    def __init__(self, worker: str = "worker", run: str = "run") -> None:
        self.bodies: list[dict[str, Any]] = [{"k": "hello", "schema": SCHEMA, "run": run, "worker": worker}]
        self.worker = worker
        self.order = 0
        self.counts = {"captures": 0, "replays": 0, "inspections": 0, "problems": 0}
        self._numbers = 0
        self._generations: dict[int, int] = {}

    def _next(self) -> int:
        self.order += 1
        return self.order - 1

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def add(self, kind: str, **members: Any) -> None:
        """Any record."""
        self.bodies.append({"k": kind, **members})

    def stack(self, file: str, line: int, function: str = "f") -> int:
        """A stack of one frame."""
        number = self._number()
        self.add("stack", id=number, frames=[[file, line, function]])
        return number

    def block(
        self, at: int, size: int = 512, *, pool: Any = None, during: int | None = None, allocated: int | None = None
    ) -> int:
        """An allocation at an offset of the segment."""
        number = self._number()
        generation = self._generations[at] = self._generations.get(at, 0) + 1
        where = pool if pool is not None else POOL if during is not None else DEFAULT
        self.add(
            "block", id=number, address=SEGMENT[0] + at, size=size, pool=where, segment=SEGMENT, device=0, generation=generation,
            allocated=allocated, during=during,
        )  # fmt: skip
        return number

    def graph(self) -> int:
        """The identity of a graph that is about to be captured."""
        return self._number()

    def capture(
        self, graph: int, blocks: Sequence[tuple[int, str]], *, pool: Any = None, label: str | None = None, **more: Any
    ) -> int:
        """A capture whose kernel takes the blocks as its parameters; blocks are (identity, kind)."""
        refs = [[0, 0, index, 0, "param", kind, block] for index, (block, kind) in enumerate(blocks)]
        began, ended = self._next(), self._next()
        members: dict[str, Any] = {"unread": [], "unowned": [], "complete": True, "stack": None} | more
        self.add(
            "capture", o=ended, graph=graph, pool=pool if pool is not None else POOL, label=label, began=began, ended=ended,
            nodes={"kernel": 1}, names=["kernel"], refs=refs, **members,
        )  # fmt: skip
        self.counts["captures"] += 1
        self.counts["inspections"] += bool(members["complete"])
        return graph

    def replay(self, *graphs: int, times: int = 1) -> None:
        """Replays of a cycle of graphs, as one run-length record."""
        count = len(graphs) * times
        first = self.order
        self.order += count
        self.add("replays", o=first, to=first + count - 1, t0=0, t1=1, cycle=list(graphs), count=count)
        self.counts["replays"] += count

    def free(self, block: int, stack: int | None = None) -> None:
        """The owner gave a block back."""
        self.add("event", o=self._next(), e="free", block=block, stack=stack, t=1)

    def alloc(
        self, *over: int, block: int | None = None, during: int | None = None, stack: int | None = None,
        at: int | None = None,
    ) -> None:  # fmt: skip
        """Memory of blocks was handed out, at an offset of the segment if that is told."""
        address = None if at is None else SEGMENT[0] + at
        self.add(
            "event", o=self._next(), e="alloc", block=block, over=list(over), during=during, stack=stack, address=address, t=1
        )  # fmt: skip

    def gone(self, what: str, *blocks: int) -> None:
        """A segment or a pool went away."""
        self.add("event", o=self._next(), e=f"{what}-gone", blocks=list(blocks))

    def graph_event(self, graph: int, event: str, **more: Any) -> None:
        """The life of a graph object."""
        self.add("graph", o=self._next(), graph=graph, e=event, **more)

    def recorder(self, event: str, **more: Any) -> None:
        """The recording of events changed."""
        self.add("recorder", o=self._next(), e=event, **more)

    def footer(self, **wrong: int) -> Scene:
        """The last line."""
        self.add("footer", **(self.counts | wrong), reason="exit")
        return self

    def content(self) -> bytes:
        """The receipts file."""
        return write_receipts(self.bodies)

    def verdict(self) -> LifetimeResult:
        """The verdict on this worker alone."""
        return lifetime_verdict([read_receipts(self.content())])


def external(scene: Scene) -> tuple[int, int]:
    """A graph that reads one block of the default pool: (graph, block)."""
    block = scene.block(0, allocated=scene.stack("serve.py", 3))
    return scene.capture(scene.graph(), [(block, "external")]), block


def handed_over(labels: tuple[str | None, str | None, str | None] = (None, None, None)) -> tuple[Scene, list[int]]:
    """Three captures of one pool: the first hands `h` to the second, it is freed, and the third lies over it."""
    scene = Scene()
    s1, s2, s3 = scene.graph(), scene.graph(), scene.graph()
    h = scene.block(0, during=s1)
    scene.capture(s1, [(h, "chain")], label=labels[0])
    y = scene.block(512, during=s2)
    scene.capture(s2, [(h, "pool"), (y, "chain")], label=labels[1])
    scene.free(h)
    z = scene.block(0, during=s3)
    scene.capture(s3, [(y, "pool"), (z, "chain")], label=labels[2])
    return scene, [s1, s2, s3]
