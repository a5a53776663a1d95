"""Five million replays with thousands of anomalies: size of the receipts, memory of the worker and of the judge, anomalies kept.

    python benchmarks/five_million.py [--replays 5000000] [--order round|random|decode] [--anomalies 2000]

No device: a recorder is told what an inspector would tell it. Fifty graphs replay `round` (in turn), at `random`, or as a server's
decode steps do (`decode`: one bucket some tens of times, then another). Every so many replays a block that a graph references is
freed and that graph replays once more: each such anomaly must be in the verdict as a finding of its own.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from sgl_graph.analyzer.reconcile import lifetime_worker
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.runtime.probe.blocks import Allocation
from sgl_graph.runtime.probe.config import ProbeConfig
from sgl_graph.runtime.probe.recorder import Recorder

GRAPHS = 50
#: How many replays lie between two drains: a tenth of a second of a fast server.
BATCH = 2000


def peak() -> float:
    """This process's peak so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def sequence(order: str, graphs: list[int]) -> Iterator[int]:
    """Graphs to replay, without an end."""
    source = random.Random(1)
    at = 0
    while True:
        if order == "decode":
            graph = source.choice(graphs)
            for _ in range(source.randrange(1, 60)):
                yield graph
        else:
            yield source.choice(graphs) if order == "random" else graphs[at % len(graphs)]
            at += 1


def capture(recorder: Recorder, blocks: list[int]) -> int:
    """A graph that references blocks at these addresses."""
    begun = recorder.begin_capture()
    found = [recorder.blocks.refer(Allocation(address, 512, [0, 0], (0, 1 << 40), 0)) for address in blocks]
    refs = [[0, 0, index, 0, "param", "external", block.id] for index, block in enumerate(found)]
    return recorder.end_capture(
        begun, pool=[0, 1], nodes={"kernel": 1}, names=["kernel"], refs=refs, unowned=[], unread=[], complete=True
    )


def main() -> int:
    """Record, then judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replays", type=int, default=5_000_000)
    parser.add_argument("--order", choices=["round", "random", "decode"], default="decode")
    parser.add_argument("--anomalies", type=int, default=2000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        recorder = Recorder(ProbeConfig(folder=folder, receipts=folder, run="r", launch="program", inspector="made"))
        each = -(-options.anomalies // GRAPHS)
        dying = [[4096 * (number * each + i + 1) for i in range(each)] for number in range(GRAPHS)]
        graphs = [capture(recorder, blocks) for blocks in dying]
        events = sorted(
            ((i + 1) * options.replays // (options.anomalies + 1), dying[i % GRAPHS][i // GRAPHS], graphs[i % GRAPHS])
            for i in range(options.anomalies)
        )
        before, began = peak(), time.process_time()
        replays, following = 0, sequence(options.order, graphs)
        while replays < options.replays:
            if events and events[0][0] <= replays:
                _, address, graph = events.pop(0)
                recorder.drain()
                recorder.freed(0, address)
                recorder.replay(graph)
                replays += 1
            for _ in range(min(BATCH, (events[0][0] if events else options.replays) - replays)):
                recorder.replay(next(following))
                replays += 1
            recorder.drain()
        recorder.close("exit")
        seconds, grown = time.process_time() - began, peak() - before
        path = next(folder.glob("*.jsonl"))
        size = path.stat().st_size
        print(
            f"{options.order}: {replays:,} replays, {seconds / replays * 1e6:.2f} us of processor a replay, "
            f"{size / 1e6:.2f} MB of receipts ({size / replays:.2f} bytes a replay), {grown:.1f} MB more memory"
        )
        before, began = peak(), time.process_time()
        result = lifetime_verdict([read_receipts(path)])
        found = len({finding.block for finding in result.findings})
        expected = min(options.anomalies, lifetime_worker.MOST_KEPT)
        frees = sum(1 for line in path.open() if '"e":"free"' in line)
        print(
            f"  {result.value} in {time.process_time() - began:.1f} s, {peak() - before:.1f} MB more memory; {found} findings "
            f"shown (at most {lifetime_worker.MOST_KEPT} a worker), {frees} of {options.anomalies} frees in the receipts"
        )
        return 0 if (result.value, found, frees) == ("FAIL", expected, options.anomalies) else 1


if __name__ == "__main__":
    sys.exit(main())
