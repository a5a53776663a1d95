"""What a lifetime finding is called and what it means: one table, which `explain` shows too."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Code(NamedTuple):
    """One kind of lifetime finding."""

    severity: Literal["definite", "hazard"]
    title: str
    meaning: str
    remedy: str


_OWN = "Keep an owner of the memory for as long as the graph may replay, copy new values in place, or capture again."

CODES: dict[str, Code] = {
    "freed-memory": Code(
        "definite",
        "a replay references freed memory",
        "The block was allocated outside the capture and given back before the replay. Nobody owns it now: values may still "
        "look right until the allocator hands it out again.",
        _OWN,
    ),
    "reused-memory": Code(
        "definite",
        "a replay references memory that belongs to somebody else now",
        "The block was given back and its memory handed out again, perhaps at the same address. The replay reads, or writes "
        "over, what the new owner keeps there.",
        _OWN,
    ),
    "unmapped-memory": Code(
        "definite",
        "a replay references memory that went back to the driver",
        "The segment that held the block was unmapped. The replay faults, or reads whatever is mapped there now.",
        _OWN,
    ),
    "dead-pool": Code(
        "definite",
        "a replay references a pool that was released",
        "The pool that served the block has no holder any more, so its memory may be unmapped or handed out at any time.",
        "Keep the pool, or a graph that uses it, for as long as any graph that references its memory.",
    ),
    "recaptured-graph": Code(
        "definite",
        "the old graph of a recaptured key was replayed",
        "The same key was captured again, and the graph that it replaced still ran.",
        "Drop every handle on the old graph when its key is captured again.",
    ),
    "handover-overwritten": Code(
        "definite",
        "memory handed from one capture to another was overwritten before it was read",
        "The block was allocated in one capture of a pool, referenced by another, freed, and reused by a third. The third "
        "replayed after the producer, so the consumer met its data.",
        "Replay captures that share a pool in the order of capture, or keep the tensor that is handed over.",
    ),
    "owned-memory-overwritten": Code(
        "definite",
        "a replay writes over memory that the program owns",
        "Memory that the graph uses for its own temporaries was handed out to the host program from the same pool.",
        "Do not allocate from a graph's pool outside captures.",
    ),
    "handover-order": Code(
        "hazard",
        "another capture's replay touched handed-over memory after its producer ran",
        "The block is still owned, but a graph with an earlier use of the same memory replayed between producer and consumer.",
        "Replay captures that share a pool in the order of capture.",
    ),
    "handover-ambiguous": Code(
        "hazard",
        "a replay references memory that changed hands while it was captured",
        "The address belonged to another capture's block, which was freed and reused inside this capture. If the graph reads the "
        "former block, another graph has overwritten it since its producer ran.",
        "Replay captures that share a pool in the order of capture, or do not free inside a capture what another one made.",
    ),
    "handover-unproduced": Code(
        "hazard",
        "a consumer was replayed before the capture that produces its input",
        "The input lies in memory that the producing capture allocated, and the producer never replayed before.",
        "Replay the producing capture first.",
    ),
    "output-reused": Code(
        "hazard",
        "an output was freed and another capture of the pool took its memory",
        "Replaying the first graph writes over what the other capture keeps there. Whether anybody still reads it cannot be "
        "seen from pointers.",
        "Keep each captured output until its graph is dropped, or consume it before any other graph of the pool replays.",
    ),
    "overlapping-owners": Code(
        "hazard",
        "two allocations claim the same memory at once",
        "A second allocator lies over blocks that a graph references. Whose contents count cannot be settled from pointers.",
        "Keep borrowed graph-pool memory away from replays, or do not borrow it.",
    ),
    "reset-graph": Code(
        "hazard",
        "a graph was launched after it had been reset or destroyed",
        "Its executable may have outlived it; who holds its memory is not known.",
        "Launch only graphs that are alive.",
    ),
    "tie": Code(
        "hazard",
        "an allocator event and a replay cannot be ordered",
        "Both bear the same time, so whether the memory was freed before or after the launch is open.",
        "Run again; where it repeats, free and replay on one thread.",
    ),
}
