"""The decision table: what a block that a graph references means at a replay (docs/adr/0110-lifetime-decisions.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sgl_graph.analyzer.reconcile.lifetime_state import BlockState, Chain, Dependency, GraphState, Owner, WorkerState
from sgl_graph.analyzer.records.receipts import Id


class Judgement(NamedTuple):
    """A finding before it is put into words."""

    code: str
    graph: GraphState
    block: BlockState | None
    owner: Owner | None = None
    #: The graph that made it so, if one did.
    culprit: Id | None = None


def judge_blocks(state: WorkerState, graph: GraphState) -> Iterator[Judgement]:
    """What the present state of its blocks says about a replay of `graph`, whatever replayed before."""
    for block_id in graph.refs:
        block = state.blocks.get(block_id)
        if block is not None:
            yield from _judge_block(state, graph, block)
    for block, culprit in graph.overrun:
        yield Judgement("overlapping-owners", graph, block, culprit=culprit)


def _judge_block(state: WorkerState, graph: GraphState, block: BlockState) -> Iterator[Judgement]:
    during = block.record.during
    own = during is not None and (during in graph.chain.graphs or block.record.id in graph.supplied)
    if block.gone == "segment":
        yield Judgement("unmapped-memory", graph, block, block.outside)
    elif block.gone == "pool" and (own or block.dead):
        # A pool object may be dropped while a tensor in it lives on: then the tensor still owns its block.
        yield Judgement("dead-pool", graph, block, block.outside)
    elif own or is_handover(state, graph, block):
        yield from _judge_pool_memory(state, graph, block, own=own)
    elif block.record.id in graph.ambiguous:
        return  # the word means this capture's own block as well, and nothing is handed over between these chains
    elif block.freed is not None or block.temporary:
        owner = _latest_owner(block)
        yield Judgement("reused-memory" if owner else "freed-memory", graph, block, owner)
    elif block.outside is not None or block.inside:
        yield Judgement("overlapping-owners", graph, block, _latest_owner(block))


def _judge_pool_memory(state: WorkerState, graph: GraphState, block: BlockState, *, own: bool) -> Iterator[Judgement]:
    owner = block.outside
    if owner is not None and _still_owns(state, owner):
        yield Judgement(_taken(state, block, owner), graph, block, owner)
        return
    if not block.dead and block.inside:
        yield Judgement("overlapping-owners", graph, block, _latest_owner(block))
        return
    consumers = (state.graphs[user] for user in block.users if user != block.record.during)
    consumed = any(is_handover(state, consumer, block) for consumer in consumers)
    if (
        not own
        or consumed
        or block.freed is None
        or block.temporary
        or block.freed <= _maker(state, graph, block).ended
    ):
        return
    unread = block.scratch or block.record.id in graph.copied_out
    taker = _taker(state, graph, block, owning=unread)
    if taker is not None:
        yield Judgement("output-reused", graph, block, taker, culprit=taker.during)


def _maker(state: WorkerState, graph: GraphState, block: BlockState) -> Chain:
    """The chain that made the block: the graph's own, or that of a graph which runs inside it."""
    during = block.record.during
    inner = state.graphs.get(during) if during is not None and during not in graph.chain.graphs else None
    return graph.chain if inner is None else inner.chain


def _latest_owner(block: BlockState) -> Owner | None:
    owners = [*([block.outside] if block.outside is not None else []), *block.inside.values()]
    return max(owners, key=lambda owner: owner.order, default=None)


def _still_owns(state: WorkerState, owner: Owner) -> bool:
    known = state.blocks.get(owner.block) if owner.block is not None else None
    return known is None or not known.dead


def _taken(state: WorkerState, block: BlockState, owner: Owner) -> str:
    known = state.blocks.get(owner.block) if owner.block is not None else None
    same_pool = (
        known is not None and known.record.pool == block.record.pool and known.record.segment == block.record.segment
    )
    return "owned-memory-overwritten" if same_pool and block.dead else "overlapping-owners"


def _taker(state: WorkerState, graph: GraphState, block: BlockState, *, owning: bool) -> Owner | None:
    """Whose capture, outside the chain, took memory that the chain had let go of; with `owning`, only if it is still owned.

    Where the graph itself copies its output elsewhere and then lets go of it, or it was a library's workspace, nobody is left
    to read it; so long as nobody owns the memory now either, nothing is lost by writing there.
    """
    overlaps = state.overlaps.of(block)
    takers = [
        Owner(-1, other.record.during, other.record.allocated, other.record.id, other.record.address)
        for other in overlaps
        if other.record.during is not None and not (owning and other.dead)
    ]
    takers += [owner for owner in block.inside.values() if not (owning and _given_back(owner, overlaps))]
    for taker in sorted(takers, key=lambda taker: str(taker.during)):
        if taker.during is None or taker.during in _maker(state, graph, block).graphs or taker.during == graph.id:
            continue
        known = state.graphs.get(taker.during)
        if known is not None and not known.reset and block.freed is not None and known.capture.ended > block.freed:
            return taker
    return None


def _given_back(owner: Owner, overlaps: list[BlockState]) -> bool:
    """Whether what a capture was handed is known as a block and was freed; unknown is not given back."""
    return any(
        other.dead and not other.temporary
        for other in overlaps
        if other.record.id == owner.block
        or (owner.address is not None and other.record.address == owner.address and other.record.during == owner.during)
    )


def is_handover(state: WorkerState, graph: GraphState, block: BlockState) -> bool:
    """Whether the block was allocated by another capture of the same pool that may hand it to `graph`.

    Between chains of different labels nothing is handed over: there a block of the other chain is outside memory.
    """
    during = block.record.during
    producer = state.graphs.get(during) if during is not None else None
    if (
        producer is None
        or producer is graph
        or producer.capture.pool != graph.capture.pool
        or graph.capture.pool is None
    ):
        return False
    if producer.chain is graph.chain:
        return True
    return producer.capture.label is None or graph.capture.label is None


def dependencies(state: WorkerState, graph: GraphState) -> list[Dependency]:
    """The blocks of other captures that `graph` references, with what must not have replayed after their producer."""
    found = []
    for block_id in graph.refs:
        block = state.blocks.get(block_id)
        during = block.record.during if block is not None else None
        if block is None or during is None or during == graph.id or during not in state.graphs:
            continue
        handed = is_handover(state, graph, block)
        if not handed and (block.dead or block_id in graph.ambiguous):
            continue  # judged by its state alone
        overlaps = state.overlaps.of(block)
        clobbers = {user for other in overlaps for user in other.users} - {during}
        spoilt = _died_inside(block, state.graphs[during]) and any(
            during in other.users and other.record.during == during and _younger(other, block) for other in overlaps
        )
        needs = handed and (block.dead or _reuses_handovers(state, graph))
        if clobbers or spoilt or needs:
            found.append(
                Dependency(block, during, tuple(sorted(clobbers, key=str)), spoilt, needs, block_id in graph.ambiguous)
            )
    return found


def judge_order(state: WorkerState, graph: GraphState) -> Iterator[Judgement]:
    """What the order of replays so far says about replaying `graph` now."""
    last, inside = state.last, graph.inside
    for dependency in graph.dependencies:
        block, clobbers = dependency.block, dependency.clobbers
        within = [clobber for clobber in clobbers if clobber in inside]
        around = state.parents and not state.parents.isdisjoint(clobbers)
        if dependency.producer in inside or within or around:
            # How the nodes of one graph lie to those of its child graphs is told for blocks that a child supplies only.
            if within or around or block.record.id not in graph.supplied:
                yield Judgement("handover-order", graph, block, None, within[0] if within else dependency.producer)
            continue
        produced: float = last.get(dependency.producer, -1)
        culprit, latest = dependency.producer if dependency.spoilt else None, -1.0
        for clobber in clobbers:
            when = last.get(clobber, -1)
            if when > latest:
                culprit, latest = clobber, when
        together = produced >= 0 and int(latest) == int(produced)
        if latest > produced or together or (dependency.spoilt and produced >= 0):
            code = "handover-overwritten" if block.dead and not together else "handover-order"
            if dependency.ambiguous:
                code = "handover-ambiguous"
            yield Judgement(code, graph, block, block.inside.get(culprit) if culprit is not None else None, culprit)
        elif dependency.needs_producer and produced < 0:
            yield Judgement("handover-unproduced", graph, block, None, dependency.producer)


def _died_inside(block: BlockState, producer: GraphState) -> bool:
    """Whether the block was given back before its own capture ended; only then can that capture have reused it."""
    return block.temporary or (block.freed is not None and block.freed <= producer.capture.ended)


def _younger(other: BlockState, block: BlockState) -> bool:
    a, b = other.record, block.record
    same_place = a.address == b.address and a.generation is not None and b.generation is not None
    if same_place and a.generation != b.generation:
        return (a.generation or 0) > (b.generation or 0)
    # Identities are given in the order in which blocks were met, which within a capture is the order of its nodes.
    return not (isinstance(a.id, int) and isinstance(b.id, int)) or a.id > b.id


def _reuses_handovers(state: WorkerState, graph: GraphState) -> bool:
    """Whether the graphs that `graph` is linked with reuse memory that they handed over: then their order is part of them."""
    version, cached = state.reuse
    if version != state.version:
        cached = {}
        for component in _components(state):
            reuses = any(_hands_over_and_reuses(state, state.graphs[member]) for member in component)
            cached.update(dict.fromkeys(component, reuses))
        state.reuse = (state.version, cached)
    return cached.get(graph.id, False)


def _hands_over_and_reuses(state: WorkerState, consumer: GraphState) -> bool:
    for block_id in consumer.refs:
        block = state.blocks.get(block_id)
        if block is None or not block.dead or not is_handover(state, consumer, block):
            continue
        parties = {consumer.id, block.record.during}
        if any(user not in parties for other in state.overlaps.of(block) for user in other.users):
            return True
    return False


def _components(state: WorkerState) -> list[set[Id]]:
    """Graphs tied together by blocks handed over."""
    group: dict[Id, set[Id]] = {}
    for graph in state.graphs.values():
        mine = group.setdefault(graph.id, {graph.id})
        for block_id in graph.refs:
            block = state.blocks.get(block_id)
            if block is None or not is_handover(state, graph, block):
                continue
            producer = block.record.during
            assert producer is not None
            theirs = group.setdefault(producer, {producer})
            if theirs is not mine:
                mine |= theirs
                for member in theirs:
                    group[member] = mine
    return list({id(members): members for members in group.values()}.values())
