"""Runs programs with and without the probe and holds verdict and output against what their first line expects.

    python tests/gpu/table.py [--jobs N] [--keep DIR] [--poison] PROGRAM_OR_FOLDER...

A program's first line is `# expect: lifetime=FAIL ...`; `!PASS` means anything but PASS. Where the expected verdict is FAIL
and a line of the program is marked `# the freeing line`, the finding must name that line. With `--poison` the verdicts are the same, and
the output of a program changes only if its first line says `poison=changes`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult
from sgl_graph.runtime import program

_TIMEOUT = 240.0


@dataclass
class Row:
    """One program's outcome."""

    name: str
    expected: str
    got: str
    agreed: bool
    notes: list[str]
    text: str
    seconds: float


def programs(places: list[Path]) -> list[Path]:
    """Every program named or in a folder named."""
    found: list[Path] = []
    for place in places:
        found += sorted(p for p in place.glob("*.py") if not p.name.startswith("_")) if place.is_dir() else [place]
    return found


def judge(path: Path, keep: Path, *, poison: bool = False, timeout: float = _TIMEOUT) -> Row:
    """Run one program twice and compare."""
    first = path.read_text().splitlines()[0]
    expected = re.search(r"lifetime=(\S+)", first)
    if expected is None:
        raise ValueError(f"{path}: the first line states no expected verdict (`# expect: lifetime=...`)")
    want = expected[1]
    env = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    plain = subprocess.run(
        [sys.executable, str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **env},
    )
    started = time.monotonic()
    out = keep / path.stem
    log = keep / f"{path.stem}.log"
    shell = f"exec {sys.executable} {path} > {log} 2>&1"
    done = program.run_program(["bash", "-c", shell], out, env=env, timeout=timeout, poison=poison)
    seconds = time.monotonic() - started
    result = lifetime_verdict([read_receipts(p) for p in done.receipts])
    got = result.value.value
    notes: list[str] = []
    agreed = got != "PASS" if want == "!PASS" else got == want
    text = described(result)
    marked = [i for i, line in enumerate(path.read_text().splitlines(), 1) if "# the freeing line" in line]
    if want == "FAIL" and marked and not any(f"{path.name}:{n}" in text for n in marked):
        notes.append(f"the freeing line {marked} is not named")
    if "outside=1" in first and not result.outside:
        notes.append("memory outside the guarantee is not listed")
    printed = log.read_text(errors="replace")
    lines = [line for line in printed.splitlines() if "CUDA-error" not in line and "Warning" not in line]
    wanted = [line for line in plain.stdout.splitlines() if "CUDA-error" not in line and "Warning" not in line]
    differs = any(line not in lines for line in wanted)
    if poison and "poison=changes" in first:
        if not differs:
            notes.append("the output is the same although what it depends on was overwritten")
    elif differs or plain.returncode != done.returncode:
        notes.append(f"the output differs: without the probe {wanted} ({plain.returncode}), with it {lines[-6:]}")
    if not agreed and plain.returncode:
        notes.append(f"the program ends with {plain.returncode} without the probe: {plain.stderr.strip()[-400:]}")
    return Row(path.stem, want, got, agreed and not notes, notes, text, seconds)


def attempt(path: Path, keep: Path, options: argparse.Namespace) -> Row:
    """`judge`, and a row too for a program that could not be judged."""
    try:
        return judge(path, keep, poison=options.poison, timeout=options.timeout)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return Row(path.stem, "?", "no verdict", False, [str(error)], "", options.timeout)


def described(result: LifetimeResult) -> str:
    """The verdict, its findings and what lies outside the guarantee, as text."""
    lines = [f"lifetime: {result.value.value} - {result.reason}"]
    for f in result.findings[:5]:
        lines += [f"  {f.severity} {f.code}: {f.text}", f"    {f.kernel}, parameter {f.parameter}, block {f.block}"]
        lines += [
            f"    allocated {f.allocated_at}, freed {f.freed_at}, owner now {f.owner_now}, replay {f.replay_index}"
        ]
    lines += [f"  outside: {o.count} {o.kind} in {o.kernel}" for o in result.outside[:5]]
    return "\n".join(lines)


def main() -> int:
    """Print the table; the exit status is the number of rows that disagree."""
    parser = argparse.ArgumentParser()
    parser.add_argument("places", nargs="+", type=Path)
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--keep", type=Path, default=None)
    parser.add_argument("--poison", action="store_true")
    parser.add_argument("--timeout", type=float, default=_TIMEOUT)
    options = parser.parse_args()
    keep = options.keep or Path(tempfile.mkdtemp(prefix="table-"))
    keep.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(lambda path: attempt(path, keep, options), programs(options.places)))
    for row in rows:
        print(
            f"{'ok ' if row.agreed else 'BAD'} {row.name:38} expected {row.expected:8} got {row.got:12} {row.seconds:5.1f} s"
        )
    bad = [row for row in rows if not row.agreed]
    for row in bad:
        print(f"\n--- {row.name}: {'; '.join(row.notes)}\n{row.text}")
    print(f"\n{len(rows) - len(bad)} of {len(rows)} agree")
    return len(bad)


if __name__ == "__main__":
    sys.exit(main())
