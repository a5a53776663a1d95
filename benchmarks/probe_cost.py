"""What the probe costs: host time a replay and the step, with and without it, on a GPU.

    python benchmarks/probe_cost.py [--repeat N] [--seconds S] [--warm S] [CASE...]

Runs itself in processes with and without the probe, in turn, N times each, and prints each pair and the median of the ratios: processes of the
same program differ by some per cent on a host that others use, so one pair proves little. Each pair also says where its steps went (allocations and
frees, the replay call, waiting for the device), how long a loop that does nothing took meanwhile, which is the host's own speed, and how often the
process had to leave its processor: a process that the host slows down shows it there, with and without the probe.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

LIVE = 10_000
FREES = 200
#: Two processes had the same host if the loop of nothing took as long in both, within this part.
_SAME_SPEED = 0.15
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
    pairs: list[float] = []
    idle: list[float] = []
    clock = time.perf_counter_ns
    end = time.monotonic() + warm + seconds
    warm = time.monotonic() + warm
    i, spent = 0, 0.0
    usage = resource.getrusage(resource.RUSAGE_SELF)
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
            if not steps:
                spent, usage = probe_seconds(), resource.getrusage(resource.RUSAGE_SELF)
            steps.append(done - start)
            calls.append(replayed - called)
            pairs.append(called - start)
            if i % 16 == 0:
                idle.append(nothing())
    left = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - usage.ru_nivcsw
    mean = sum(steps) / len(steps)
    assert len(live) == LIVE
    slow = [step for step in steps if step > 3 * statistics.median(steps)]
    return {
        "step": statistics.median(steps) / 1000,
        "step mean": mean / 1000,
        "call": statistics.median(calls) / 1000,
        "call mean": sum(calls) / len(calls) / 1000,
        "pairs": statistics.median(pairs) / 1000,
        "host": statistics.median(idle) / 1000,
        "evicted": left / seconds,
        "capture": captured * 1e6 / (graphs * nodes),
        "replays": i,
        "slow share": sum(slow) / sum(steps),
        "slowest": max(steps) / 1e6,
        "thread share": (probe_seconds() - spent) / (time.monotonic() - warm),
    }


def nothing() -> int:
    """Nanoseconds of a loop that does nothing: what the host gives a process just now."""
    start = time.perf_counter_ns()
    for _ in range(2_000):
        pass
    return time.perf_counter_ns() - start


def probe_seconds() -> float:
    """Processor time of the probe's own thread so far."""
    thread = next((t for t in threading.enumerate() if t.name == "sgl-graph-probe"), None)
    if thread is None:
        return 0.0
    fields = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
        "modes": [f"{r['e']}: {str(r['detail'])[:24]}" for r in records if r["k"] == "recorder"],
        "problems": [r["error"] for r in records if r["k"] == "problem"],
    }


def one(title: str, options: argparse.Namespace, *, probe: bool) -> dict[str, Any]:
    """One process."""
    from sgl_graph.runtime.inject import ProbeSettings, write_injection

    nodes, graphs = CASES[title]
    with tempfile.TemporaryDirectory() as place:
        env = dict(os.environ)
        if probe:
            settings = ProbeSettings(run="bench", launch="program", receipts=Path(place) / "receipts", roles={})
            env = write_injection(Path(place) / "inject", settings).environment(env)
        numbers = [str(x) for x in (nodes, graphs, options.seconds, options.warm)]
        command = [sys.executable, __file__, "--case", *numbers]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return json.loads(done.stdout.splitlines()[-1]) | receipts_of(Path(place) / "receipts")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--warm", type=float, default=7.0)
    options = parser.parse_args()
    print(f"{LIVE} live blocks, {FREES} allocations and frees between replays; microseconds")
    for title in options.cases or list(CASES):
        ratios: list[tuple[float, float]] = []
        alike: list[float] = []
        for _ in range(options.repeat):
            off, on = one(title, options, probe=False), one(title, options, probe=True)
            ratios.append((on["step"] / off["step"], on["step mean"] / off["step mean"]))
            if abs(on["host"] / off["host"] - 1) <= _SAME_SPEED:
                alike.append(ratios[-1][0])
            print(
                f"{title}: step {off['step']:.0f} -> {on['step']:.0f} median ({ratios[-1][0]:.3f}x), "
                f"{off['step mean']:.0f} -> {on['step mean']:.0f} mean ({ratios[-1][1]:.3f}x); "
                f"replay call {off['call']:.1f} -> {on['call']:.1f} median, {off['call mean']:.1f} -> {on['call mean']:.1f} mean; "
                f"allocations and frees {off['pairs']:.0f} -> {on['pairs']:.0f}, a loop of nothing {off['host']:.1f} -> {on['host']:.1f}, "
                f"evicted {off['evicted']:.0f} -> {on['evicted']:.0f} times a second; "
                f"steps of three medians take {off['slow share']:.3f} -> {on['slow share']:.3f} of the time, the slowest "
                f"{off['slowest']:.0f} -> {on['slowest']:.0f} ms; the probe's thread {on['thread share']:.3f} of the time; "
                f"inspection {on['nodes']:.0f} us a node and {on['allocator'] / 1000:.1f} ms of allocator snapshot a capture; "
                f"{on['replays']:.0f} replays, {on['size'] / 1024:.0f} KiB of receipts; {on['modes']} {on['problems'] or ''}",
                flush=True,
            )
        if options.repeat > 1:
            medians, means = (statistics.median(column) for column in zip(*ratios, strict=True))
            of_alike = (
                f"; of the {len(alike)} that the host gave the same speed {statistics.median(alike):.3f}x"
                if alike
                else ""
            )
            print(
                f"{title}: median of {options.repeat} pairs {medians:.3f}x, of their means {means:.3f}x{of_alike}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    if "--case" in sys.argv:
        at = sys.argv.index("--case")
        nodes, graphs, seconds, warm = sys.argv[at + 1 : at + 5]
        print(json.dumps(measure(int(nodes), int(graphs), float(seconds), float(warm))))
    else:
        sys.exit(main())
