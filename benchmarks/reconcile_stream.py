"""Recomputes an archive of many uncompressed replay records: seconds and peak memory against the floor of 60 s and 500 MB.

    python benchmarks/reconcile_stream.py [--records 10000000] [--workers 1] [--shape round] [--copy]

The archive is whole: plan, outcome, receipts, ledger and manifest, closed by the same code as a run's. What is timed is the command
`sgl-graph reconcile DIR --recompute --in-place` in a process of its own (with `--copy` it works in a copy, as without `--in-place`):
every file held against the manifest, receipts verified link by link, decoded, lifetime and the observation for coverage in one
pass, the report. Then a second time without `--recompute`, the read-only inspection.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import lifetime_stream
from sgl_graph.analyzer.records.archive import PLAN
from sgl_graph.analyzer.records.ledger import LaunchOutcome
from sgl_graph.analyzer.records.plan import Plan, PlannedDevice, PlannedLaunch
from sgl_graph.cli.render.report import markdown
from sgl_graph.runtime.archive import RunArchive
from sgl_graph.runtime.evidence import IDENTITIES, OUTCOME
from sgl_graph.runtime.identity import tool_digest
from sgl_graph.runtime.run import close


def make(root: Path, records: int, workers: int, graphs: int, shape: str) -> None:
    """Write and close the archive."""
    archive = RunArchive.create(root)
    launch = PlannedLaunch(name="program", argv=["python"], env={}, sets=[], probe="full", why="under the probe")
    plan = Plan(
        run_id="benchmark",
        mode="program",
        command=["python", "benchmark.py"],
        env={},
        device=PlannedDevice(kind="emulated", source="made", emulated=True),
        launches=[launch],
        tool_digest=tool_digest(),
    )
    digest = archive.write_record(PLAN, plan)
    archive.write_json(IDENTITIES, {"tool": plan.tool_digest, "plan": digest})
    for number in range(workers):
        path = archive.path(f"receipts/worker{number}.jsonl")
        lifetime_stream.write(path, records // workers, graphs, shape, worker=path.stem)
    archive.write_record("program/" + OUTCOME, LaunchOutcome(state="ran"))
    close(archive, plan, markdown, identities={"tool": plan.tool_digest}, plan_digest=digest, failure=None)


def timed(command: list[str]) -> int:
    """Run a command and print its seconds and its peak; both are those of its process alone."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *command],
        check=False,
        text=True,
        capture_output=True,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    verdict = next((line for line in done.stdout.splitlines() if line.startswith("lifetime:")), done.stderr[-300:])
    peak = done.stderr.splitlines()[-1] if done.stderr else "?"
    print(f"{' '.join(command[3:])}\n  {seconds:.1f} s, {busy:.1f} s of processor, {peak}\n  {verdict}", flush=True)
    return done.returncode


_MEASURE = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
print(f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f} MB", file=sys.stderr)
sys.exit(code)
"""


def main() -> int:
    """Make, recompute, inspect."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--graphs", type=int, default=50)
    parser.add_argument("--shape", choices=["one", "round", "chain"], default="round")
    parser.add_argument("--copy", action="store_true")
    parser.add_argument("--dir", type=Path, help="where the archive is made; a temporary folder by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        root = Path(folder) / "archive"
        make(root, options.records, options.workers, options.graphs, options.shape)
        size = sum(path.stat().st_size for path in root.rglob("*.jsonl"))
        print(f"{options.records:,} records of {options.workers} workers, {size / 1e6:.0f} MB", flush=True)
        command = [sys.executable, "-m", "sgl_graph.cli", "reconcile", str(root)]
        worst = timed([*command, "--recompute", *([] if options.copy else ["--in-place"])])
        return max(worst, timed(command))


if __name__ == "__main__":
    sys.exit(main())
