"""A model of graphs over one pool: it writes receipts, and by running the replays knows which reads met foreign contents."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.unit.lifetime.scene import Scene

SLOT = 512
#: Choices from here on take an earlier graph in as a child graph.
CHILD = 100


@dataclass
class ModelBlock:
    """One allocation of a slot."""

    id: int
    slot: int
    during: int | None
    alive: bool = True


@dataclass
class ModelGraph:
    """What a captured graph does, in order: ("read" | "write", block), or ("child", graph) for a graph inside it."""

    id: int
    steps: list[tuple[str, ModelBlock | ModelGraph]] = field(default_factory=list)


class Model:
    """Allocates, captures, frees and replays, and keeps the book that the verdict has to agree with."""

    def __init__(self, worker: str = "worker", *, expanded: bool = False) -> None:
        self.scene = Scene(worker)
        self.expanded = expanded
        self.graphs: list[ModelGraph] = []
        self.blocks: list[ModelBlock] = []
        self.contents: dict[int, int] = {}
        self.foreign_reads = 0
        self.dead_outside = 0

    def _free_slot(self, pool: range) -> int:
        taken = {b.slot for b in self.blocks if b.alive}
        return next(slot for slot in pool if slot not in taken)

    def outside(self) -> ModelBlock:
        """An allocation of the host program, in the default pool; written at once."""
        slot = self._free_slot(range(1000, 2000))
        block = ModelBlock(self.scene.block(slot * SLOT), slot, None)
        over = [b.id for b in self.blocks if b.slot == slot]
        if over:
            self.scene.alloc(*over, block=block.id)
        self.blocks.append(block)
        self.contents[slot] = block.id
        return block

    def capture(self, choices: list[int]) -> None:
        """Capture a graph: each choice reads a live block, allocates and writes one, frees one of the pool, or takes a graph in."""
        graph = ModelGraph(self.scene.graph())
        for choice in choices:
            if choice >= CHILD:
                if self.graphs:
                    graph.steps.append(("child", self.graphs[(choice - CHILD) % len(self.graphs)]))
                continue
            live = [b for b in self.blocks if b.alive]
            action, pick = choice % 3, choice // 3
            if action == 0 and live:
                graph.steps.append(("read", live[pick % len(live)]))
            elif action == 1 or not live:
                slot = self._free_slot(range(100))
                block = ModelBlock(self.scene.block(slot * SLOT, during=graph.id), slot, graph.id)
                self.blocks.append(block)
                graph.steps.append(("write", block))
            else:
                mine = [b for b in live if b.during is not None]
                if mine:
                    self.free(mine[pick % len(mine)])
        self.scene.capture(graph.id, [])
        record = self.scene.bodies[-1]
        for node, (_, what) in enumerate(graph.steps):
            if isinstance(what, ModelGraph):
                record.setdefault("embeds", []).append([node, what.id])
            else:
                kind = "external" if what.during is None else "chain" if what.during == graph.id else "pool"
                record["refs"].append([node, 0, 0, 0, "param", kind, what.id])
        self.graphs.append(graph)

    def free(self, block: ModelBlock) -> None:
        """The owner gives a block back."""
        block.alive = False
        self.scene.free(block.id)

    def replay(self, indices: list[int], times: int) -> None:
        """Replay a cycle of graphs and run what they do."""
        cycle = [self.graphs[i % len(self.graphs)] for i in indices]
        if self.expanded:
            for _ in range(times):
                for graph in cycle:
                    self.scene.replay(graph.id)
        else:
            self.scene.replay(*[g.id for g in cycle], times=times)
        for graph in cycle * times:
            self._run(graph)

    def _run(self, graph: ModelGraph) -> None:
        for step, what in graph.steps:
            if isinstance(what, ModelGraph):
                self._run(what)
            else:
                self._touch(step, what)

    def _touch(self, step: str, block: ModelBlock) -> None:
        if step == "write":
            self.contents[block.slot] = block.id
            return
        found = self.contents.get(block.slot)
        if block.during is None:
            self.dead_outside += not block.alive
        elif (found is not None and found != block.id) or (found is None and not block.alive):
            self.foreign_reads += 1


#: A story: what happens, in order. Each entry is (what, numbers).
stories = st.lists(
    st.one_of(
        st.tuples(st.just("outside"), st.just([0]), st.just(1)),
        st.tuples(
            st.just("capture"),
            st.lists(st.integers(0, 40) | st.integers(CHILD, CHILD + 5), min_size=1, max_size=8),
            st.just(1),
        ),
        st.tuples(st.just("free"), st.lists(st.integers(0, 40), min_size=1, max_size=1), st.just(1)),
        st.tuples(st.just("replay"), st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(1, 9)),
    ),
    min_size=4,
    max_size=24,
)
Story = list[tuple[str, list[int], int]]


def tell(story: Story, worker: str = "worker", *, expanded: bool = False) -> Model:
    """The model after a story, its receipts closed by a footer."""
    model = Model(worker, expanded=expanded)
    model.outside()
    model.capture([1, 0])
    for what, numbers, times in story:
        if what == "outside":
            model.outside()
        elif what == "capture":
            model.capture(numbers)
        elif what == "replay":
            model.replay(numbers, times)
        else:
            live = [b for b in model.blocks if b.alive]
            if live:
                model.free(live[numbers[0] % len(live)])
    model.scene.footer()
    return model
