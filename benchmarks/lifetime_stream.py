"""Reads, verifies and judges a long receipts file: seconds and peak memory against the floor of 60 s and 500 MB.

    python benchmarks/lifetime_stream.py [--records 10000000] [--graphs 50] [--shape one|round|chain]

Each replay is a record of its own (no run-length compression). `one` replays one graph, `round` fifty in turn, `chain`
three captures of one pool that hand a reused block over, so that the order of replays is checked at each.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import FIRST_LINK, SCHEMA, read_receipts, seal_line

SEGMENT = [0x7F0000000000, 1 << 30]


def block(number: int, address: int, during: int | None = None) -> dict[str, Any]:
    """A block record."""
    pool = [0, 0] if during is None else [0, 1]
    return {
        "k": "block", "id": number, "address": address, "size": 4096, "pool": pool, "segment": SEGMENT, "device": 0,
        "generation": 1, "allocated": None, "during": during,
    }  # fmt: skip


def capture(graph: int, order: int, refs: list[list[Any]]) -> dict[str, Any]:
    """A capture record."""
    return {
        "k": "capture", "graph": graph, "pool": [0, 1], "label": None, "key": None, "site": None, "path": None,
        "stack": None, "began": order - 1, "ended": order, "nodes": {"kernel": 19}, "names": ["kernel"], "refs": refs,
        "unowned": [], "unread": [], "complete": True, "keep_graph": False, "t": order,
    }  # fmt: skip


def head(shape: str, graphs: int, worker: str) -> Iterator[dict[str, Any]]:
    """Everything before the replays."""
    yield {"k": "hello", "schema": SCHEMA, "run": "benchmark", "worker": worker}
    if shape == "chain":
        yield block(0, SEGMENT[0], during=0)
        yield capture(0, 2, [[0, 0, 1, 0, "param", "chain", 0]])
        yield block(1, SEGMENT[0] + 4096, during=1)
        yield capture(1, 4, [[0, 0, 0, 0, "param", "pool", 0], [0, 0, 1, 0, "param", "chain", 1]])
        yield {"k": "event", "o": 5, "e": "free", "block": 0, "stack": None, "t": 5}
        yield block(2, SEGMENT[0], during=2)
        yield capture(2, 7, [[0, 0, 0, 0, "param", "pool", 1], [0, 0, 1, 0, "param", "chain", 2]])
        return
    for graph in range(graphs):
        for number in range(40):
            yield block(graph * 40 + number, SEGMENT[0] + (graph * 40 + number) * 4096)
        refs = [[n // 2, 0, n % 2, 0, "param", "external", graph * 40 + n] for n in range(40)]
        yield capture(graph, 2 * graph + 2, refs)


def write(path: Path, records: int, graphs: int, shape: str, worker: str = "worker") -> None:
    """Write the file; bodies of replays are spelled directly, for speed."""
    previous, number = FIRST_LINK, 0
    cycle = 3 if shape == "chain" else 1 if shape == "one" else graphs
    with path.open("wb", buffering=1 << 20) as file:
        for body in head(shape, graphs, worker):
            line, previous = seal_line(json.dumps({"n": number, **body}, separators=(",", ":")).encode(), previous)
            file.write(line)
            number += 1
        captures = 3 if shape == "chain" else graphs
        for index in range(records):
            order, t = 1000 + index, 10**15 + index * 1000
            text = (
                f'{{"n":{number},"k":"replays","o":{order},"to":{order},"t0":{t},"t1":{t},'
                f'"cycle":[{index % cycle}],"count":1}}'
            )
            line, previous = seal_line(text.encode(), previous)
            file.write(line)
            number += 1
        footer = {
            "n": number, "k": "footer", "captures": captures, "replays": records, "inspections": captures,
            "problems": 0, "reason": "exit",
        }  # fmt: skip
        file.write(seal_line(json.dumps(footer, separators=(",", ":")).encode(), previous)[0])


def judge(path: Path) -> None:
    """Judge the file and print what it took."""
    start, busy = time.perf_counter(), time.process_time()
    result = lifetime_verdict([read_receipts(path)])
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{result.value} in {seconds:.1f} s ({busy:.1f} s of processor), {path.stat().st_size / seconds / 1e6:.0f} MB/s, peak {peak:.0f} MB: {result.reason}"
    )
    if result.value != "PASS":
        raise SystemExit(1)


def main() -> None:
    """Write, then judge in a process of its own so that the peak is the judge's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--graphs", type=int, default=50)
    parser.add_argument("--shape", choices=["one", "round", "chain"], default="round")
    parser.add_argument("--judge", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.judge is not None:
        judge(arguments.judge)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "worker.jsonl"
        write(path, arguments.records, arguments.graphs, arguments.shape)
        print(f"{arguments.shape}: {arguments.records:,} records, {path.stat().st_size / 1e6:.0f} MB", flush=True)
        raise SystemExit(subprocess.run([sys.executable, __file__, "--judge", str(path)], check=False).returncode)


if __name__ == "__main__":
    main()
