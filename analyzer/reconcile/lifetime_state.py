"""What is known of one worker's blocks and graphs while its receipts stream by."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from sgl_graph.analyzer.records.receipts import Block, Capture, Id, Pool, Ref

#: Child graphs of child graphs multiply; no honest graph comes near.
_MOST_EMBEDDED = 4096


@dataclass(slots=True)
class Owner:
    """Who got memory that a graph references."""

    order: int
    during: Id | None
    stack: Id | None
    block: Id | None
    address: int | None = None


@dataclass(slots=True, eq=False)
class BlockState:
    """One allocation and what became of it."""

    record: Block
    freed: int | None = None
    freed_by: Id | None = None
    #: Freed inside the capture that allocated it, so nobody outside ever held it.
    temporary: bool = False
    #: It held nothing that anybody reads after the node that wrote it.
    scratch: bool = False
    gone: str | None = None
    #: The last owner outside captures, and the last inside each capture.
    outside: Owner | None = None
    inside: dict[Id, Owner] = field(default_factory=dict)
    users: set[Id] = field(default_factory=set)

    @property
    def dead(self) -> bool:
        """Whether its owner gave it back."""
        return self.freed is not None or self.temporary


@dataclass(slots=True)
class Dependency:
    """A block of another capture: sound at a replay if `producer` ran after every graph of `clobbers`."""

    block: BlockState
    producer: Id
    clobbers: tuple[Id, ...]
    #: The producer itself reused the memory later in its own capture: it never leaves the block intact.
    spoilt: bool
    #: Contents come from the producer's replay alone.
    needs_producer: bool
    #: The graph may not reference the block at all.
    ambiguous: bool


@dataclass(slots=True, eq=False)
class GraphState:
    """One captured graph."""

    capture: Capture
    chain: Chain
    refs: dict[Id, Ref] = field(default_factory=dict)
    #: Blocks named only where the same word may mean memory of this capture: it changed hands while the capture was open.
    ambiguous: set[Id] = field(default_factory=set)
    #: Blocks that the graph's last node on them copies elsewhere: the graph itself reads what it left there.
    copied_out: set[Id] = field(default_factory=set)
    dirty: bool = True
    dependencies: list[Dependency] = field(default_factory=list)
    #: Something to look at on each replay: dirty, dependencies, or a graph that should not run.
    alert: bool = True
    replaced_by: Id | None = None
    recaptured: bool = False
    reset: bool = False
    unknown_contents: str | None = None
    #: Graphs that run inside this one as child graphs, in the order of their nodes, inner ones first.
    embedded: tuple[GraphState, ...] = ()
    #: Blocks of this graph that a child graph writes over while they are in use, with that graph.
    overrun: list[tuple[BlockState, Id]] = field(default_factory=list)
    #: Blocks made by a graph inside, all of whose uses by this graph's own nodes come after it.
    supplied: set[Id] = field(default_factory=set)

    @property
    def inside(self) -> set[Id]:
        """Identities of the graphs that run inside this one."""
        return {graph.id for graph in self.embedded}

    @property
    def id(self) -> Id:
        """Its identity within the worker."""
        return self.capture.graph


@dataclass(slots=True, eq=False)
class Chain:
    """Consecutive captures into one pool under one label; without a label, one graph."""

    pool: Pool
    label: str | None
    graphs: set[Id] = field(default_factory=set)
    ended: int = 0


class Overlaps:
    """Referenced blocks by address, so that uses of the same memory by different allocations find each other.

    Graphs of a pool overlay thousands of temporaries, and few are ever asked about: pairs are looked up, never kept.
    """

    def __init__(self) -> None:
        # By device and power of two of the size: within a class the search window is bounded by the size.
        self._classes: dict[tuple[int | str | None, int], list[tuple[int, int, BlockState]]] = {}
        self._unsorted: set[tuple[int | str | None, int]] = set()
        self._serial = 0

    def add(self, state: BlockState) -> None:
        """Enter a block."""
        self._serial += 1
        key = (state.record.device, max(state.record.size, 1).bit_length())
        self._classes.setdefault(key, []).append((state.record.address, self._serial, state))
        self._unsorted.add(key)

    def of(self, state: BlockState) -> list[BlockState]:
        """All other blocks that overlap a block."""
        start, size, device = state.record.address, max(state.record.size, 1), state.record.device
        found = []
        for key, entries in self._classes.items():
            if key[0] != device:
                continue
            if key in self._unsorted:
                entries.sort()
                self._unsorted.discard(key)
            low = bisect_left(entries, (start - (1 << key[1]), -1))
            high = bisect_left(entries, (start + size, -1))
            for address, _, other in entries[low:high]:
                if address + max(other.record.size, 1) > start and other is not state:
                    found.append(other)
        return found


class WorkerState:
    """All blocks, graphs and chains of a worker, and when each graph replayed last."""

    def __init__(self) -> None:
        self.blocks: dict[Id, BlockState] = {}
        self.graphs: dict[Id, GraphState] = {}
        #: What runs when a graph is replayed: itself, or the graph that its executable was updated from.
        self.runs: dict[Id, GraphState] = {}
        self.stacks: dict[Id, list[tuple[str, int, str]]] = {}
        self.abandoned: set[Id] = set()
        #: Index of the last replay of each graph.
        #: A graph with others inside it ends half a replay after them: their order within one replay is not told.
        self.last: dict[Id, float] = {}
        #: The graphs whose child graphs run just now.
        self.parents: frozenset[Id] = frozenset()
        self.replays = 0
        #: Counts changes of blocks and graphs, so that what is derived from all of them is derived once a change.
        self.version = 0
        self.reuse: tuple[int, dict[Id, bool]] = (-1, {})
        self.overlaps = Overlaps()
        self._last_chain: dict[Pool, Chain] = {}

    def capture(self, capture: Capture) -> GraphState:
        """Enter a captured graph, its chain and its references."""
        self.version += 1
        chain = self._last_chain.get(capture.pool)
        if chain is None or capture.label is None or chain.label != capture.label or capture.pool is None:
            chain = self._last_chain[capture.pool] = Chain(capture.pool, capture.label)
        chain.graphs.add(capture.graph)
        chain.ended = max(chain.ended, capture.ended)
        graph = self.graphs[capture.graph] = self.runs[capture.graph] = GraphState(capture, chain)
        for ref in capture.refs:
            if ref.block is not None and ref.block not in graph.refs:
                graph.refs[ref.block] = ref
                state = self.blocks.get(ref.block)
                if state is None:
                    continue
                if not state.users:
                    self.overlaps.add(state)
                state.users.add(capture.graph)
        graph.ambiguous = self._ambiguous(capture)
        graph.copied_out = _copied_out(capture)
        if capture.embeds:
            self._embed(graph)
        # Reference lists are the bulk of a capture; what is needed of them is in `refs`.
        capture.refs.clear()
        self._mark_pool(capture.pool)
        return graph

    def _ambiguous(self, capture: Capture) -> set[Id]:
        """Foreign blocks all of whose words stand for a block of this capture as well."""
        own: set[tuple[object, ...]] = set()
        foreign: dict[Id, set[tuple[object, ...]]] = {}
        for ref in capture.refs:
            state = self.blocks.get(ref.block) if ref.block is not None else None
            if state is None or state.record.during is None:
                continue
            word = (ref.node, ref.name, ref.parameter, ref.offset, ref.via)
            if state.record.during == capture.graph:
                own.add(word)
            else:
                foreign.setdefault(state.record.id, set()).add(word)
        return {block for block, words in foreign.items() if words <= own}

    def _embed(self, graph: GraphState) -> None:
        """Enter the graphs that run inside a graph, and how its own nodes lie to them."""
        sequence: list[GraphState] = []
        first: dict[Id, int] = {}
        uses = _uses(graph.capture)
        for node, inner_id in sorted(graph.capture.embeds, key=lambda embed: embed[0]):
            inner = self.graphs.get(inner_id)
            if inner is None or inner is graph:
                continue
            sequence += (*inner.embedded, inner)
            if len(sequence) > _MOST_EMBEDDED:
                graph.unknown_contents = f"it holds more than {_MOST_EMBEDDED} child graphs"
                return
            for member in {id(g): g for g in (*inner.embedded, inner)}.values():
                first.setdefault(member.id, node)
                graph.overrun += [(block, member.id) for block in self._overrun(graph, member, node, uses)]
        graph.embedded = tuple(sequence)
        for block_id, nodes in uses.items():
            during = self.blocks[block_id].record.during if block_id in self.blocks else None
            if during in first and nodes and min(nodes) > first[during]:
                graph.supplied.add(block_id)

    def _overrun(self, graph: GraphState, inner: GraphState, node: int, uses: dict[Id, list[int]]) -> list[BlockState]:
        over: dict[Id, BlockState] = {}
        for block_id in inner.refs:
            block = self.blocks.get(block_id)
            for other in self.overlaps.of(block) if block is not None else ():
                nodes = uses.get(other.record.id) if other.record.during == graph.id else None
                if nodes and min(nodes) < node and (max(nodes) > node or not other.dead):
                    over[other.record.id] = other
        return list(over.values())

    def touch(self, state: BlockState) -> None:
        """Something happened to a block: graphs that reference its memory must be looked at again."""
        self.version += 1
        for user in state.users:
            self.mark(user)
        if state.record.during is not None:
            # Whoever shares the pool may lie over it.
            self._mark_pool(state.record.pool)

    def _mark_pool(self, pool: Pool) -> None:
        for graph in self.graphs.values():
            if graph.capture.pool == pool:
                graph.dirty = graph.alert = True

    def pool_held(self, graph: GraphState) -> bool:
        """Whether another graph that is alive holds the pool of a graph that is not."""
        pool = graph.capture.pool
        return pool is not None and any(
            not other.reset and other.capture.pool == pool for other in self.graphs.values() if other is not graph
        )

    def mark(self, graph: Id) -> None:
        """Look at a graph again at its next replay."""
        known = self.graphs.get(graph)
        if known is not None:
            known.dirty = known.alert = True


def _uses(capture: Capture) -> dict[Id, list[int]]:
    """Numbers of the nodes that use each block; none where one of them has no number."""
    uses: dict[Id, list[int]] = {}
    doubtful: set[Id] = set()
    for ref in capture.refs:
        if ref.block is None:
            continue
        if isinstance(ref.node, int):
            uses.setdefault(ref.block, []).append(ref.node)
        else:
            doubtful.add(ref.block)
    return {block: [] if block in doubtful else nodes for block, nodes in uses.items()}


def _copied_out(capture: Capture) -> set[Id]:
    """Blocks whose last node in the graph is a copy that reads them; nodes without a number have no order."""
    uses: dict[Id, dict[int, bool]] = {}
    doubtful: set[Id] = set()
    for ref in capture.refs:
        if ref.block is None:
            continue
        if not isinstance(ref.node, int):
            doubtful.add(ref.block)
            continue
        nodes = uses.setdefault(ref.block, {})
        nodes[ref.node] = nodes.get(ref.node, True) and ref.via == "memcpy" and ref.parameter == "src"
    return {block for block, nodes in uses.items() if nodes[max(nodes)]} - doubtful
