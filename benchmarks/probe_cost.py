"""What the probe costs: host time a replay and the step, with and without it, on a GPU.

python benchmarks/probe_cost.py            # runs itself in processes with and without the probe and prints a table
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LIVE = 10_000
FREES = 200
CASES = {"19 nodes": (19, 1), "700 nodes": (700, 1), "50 graphs": (19, 50)}


def measure(nodes: int, graphs: int, seconds: float, warm: float) -> dict[str, float]:
    """One case in this process: the step and the replay call in microseconds, after `warm` seconds."""
    import torch

    live = [torch.empty(256 + i % 7, device="cuda") for i in range(LIVE)]
    x = torch.ones(1024, device="cuda")
    keep = []
    before = time.perf_counter()
    for _ in range(graphs):
        graph = torch.cuda.CUDAGraph()
        y = x
        with torch.cuda.graph(graph):
            for _ in range(nodes):
                y = y + x
        keep.append((graph, y))
    captured = time.perf_counter() - before
    steps: list[float] = []
    calls: list[float] = []
    clock = time.perf_counter_ns
    end = time.monotonic() + warm + seconds
    warm = time.monotonic() + warm
    i = 0
    while time.monotonic() < end:
        start = clock()
        for _ in range(FREES):
            t = torch.empty(5000, device="cuda")
            del t
        graph = keep[i % graphs][0]
        called = clock()
        graph.replay()
        replayed = clock()
        torch.cuda.synchronize()
        done = clock()
        i += 1
        if time.monotonic() > warm:
            steps.append(done - start)
            calls.append(replayed - called)
    mean = sum(steps) / len(steps)
    assert len(live) == LIVE
    return {
        "step": statistics.median(steps) / 1000,
        "step mean": mean / 1000,
        "call": statistics.median(calls) / 1000,
        "call mean": sum(calls) / len(calls) / 1000,
        "capture": captured * 1e6 / (graphs * nodes),
        "replays": i,
    }


def receipts_of(folder: Path) -> dict[str, Any]:
    """What the probe wrote about itself."""
    records = [json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    captures = [r for r in records if r["k"] == "capture"]
    if not captures:
        return {}
    nodes = sum(sum(c["nodes"].values()) for c in captures)
    return {
        "nodes": sum(c["spent"]["nodes"] + c["spent"]["references"] for c in captures) / nodes,
        "allocator": statistics.mean(c["spent"]["allocator"] for c in captures),
        "size": sum(p.stat().st_size for p in folder.glob("*")),
        "modes": [f"{r['e']}: {str(r['detail'])[:12]}" for r in records if r["k"] == "recorder"],
        "problems": [r["error"] for r in records if r["k"] == "problem"],
    }


def main() -> int:
    """Print the table."""
    from sgl_graph.runtime.inject import ProbeSettings, write_injection

    print(f"{LIVE} live blocks, {FREES} allocations and frees between replays; microseconds")
    chosen = sys.argv[1:] or list(CASES)
    for title in chosen:
        nodes, graphs = CASES[title]
        rows: dict[bool, dict[str, Any]] = {}
        for probe in (False, True):
            with tempfile.TemporaryDirectory() as place:
                env = dict(os.environ)
                if probe:
                    settings = ProbeSettings(run="bench", launch="program", receipts=Path(place) / "receipts", roles={})
                    env = write_injection(Path(place) / "inject", settings).environment(env)
                command = [sys.executable, __file__, "--case", str(nodes), str(graphs)]
                done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
                rows[probe] = json.loads(done.stdout.splitlines()[-1])
                rows[probe] |= receipts_of(Path(place) / "receipts")
        off, on = rows[False], rows[True]
        print(
            f"{title}: step {off['step']:.0f} -> {on['step']:.0f} median ({on['step'] / off['step']:.3f}x), "
            f"{off['step mean']:.0f} -> {on['step mean']:.0f} mean ({on['step mean'] / off['step mean']:.3f}x); "
            f"replay call {off['call']:.1f} -> {on['call']:.1f} median, {off['call mean']:.1f} -> {on['call mean']:.1f} mean; "
            f"inspection {on['nodes']:.0f} us a node and {on['allocator'] / 1000:.1f} ms of allocator snapshot a capture; "
            f"{on['replays']:.0f} replays, {on['size'] / 1024:.0f} KiB of receipts; {on['modes']} {on['problems'] or ''}"
        )
    return 0


if __name__ == "__main__":
    if "--case" in sys.argv:
        at = sys.argv.index("--case")
        print(json.dumps(measure(int(sys.argv[at + 1]), int(sys.argv[at + 2]), 3.0, 7.0)))
    else:
        sys.exit(main())
