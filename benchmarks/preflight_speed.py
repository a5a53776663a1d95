"""How fast preflight maps a real release: cold, warm, one file edited; and how long libcst alone takes to parse what it read.

python benchmarks/preflight_speed.py                 # SGLang from the package index, a plain Llama configuration
python benchmarks/preflight_speed.py --checkout DIR --model-config FILE -- python -m sglang.launch_server ...

Every run is a fresh process with a cache folder of its own. Cold uses two parser processes, and so does the yardstick:
`libcst.parse_module` over the same files, right after. Memory is that of the whole process tree, sampled in runs of their own, since looking takes time:
proportional set sizes (`Pss` of `/proc/PID/smaps_rollup`), in which a page that processes share counts once; resident sizes where the system has none.
Modules are compiled before, as an installer does, and stay compiled.
Beside each time stands that of the processors, which other work on the machine moves less.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
FETCH = HERE.parent / "fixtures" / "sglang_release.py"
JOBS = 2
SERVING = ["python", "-m", "sglang.launch_server", "--model-path", "meta-llama/Llama-3.1-8B-Instruct"]
LLAMA = HERE.parent / "fixtures" / "models" / "llama.json"
COLD_SECONDS, COLD_RATIO, WARM_SECONDS, EDITED_SECONDS, PEAK_MB = 25.0, 1.5, 2.0, 3.0, 600.0


@dataclass(frozen=True, slots=True)
class Timing:
    """One preflight: wall and processor seconds, peak of its process tree, and what its map says of itself."""

    seconds: float
    cpu: float
    peak_mb: float
    stats: dict[str, Any]


def preflight(base: Path, cache: Path, options: list[str], serving: list[str], *, watched: bool = False) -> Timing:
    """Map `base` in a process of its own, with the facts below `cache`; its memory is looked at where it is watched."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "map.json"
        command = [
            *(sys.executable, "-m", "sgl_graph.cli", "preflight", "--quiet", "--checkout", str(base)),
            *("--jobs", str(JOBS), "--format", "json", "-o", str(report), *options, "--", *serving),
        ]
        environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
        began, before = time.monotonic(), _processor_seconds()
        process = psutil.Popen(command, env=environment, cwd=place, stdin=subprocess.DEVNULL)
        peak = 0
        while watched and process.poll() is None:
            peak = max(peak, _resident(process))
            time.sleep(0.05)
        process.wait()
        seconds = time.monotonic() - began
        if process.returncode:
            sys.exit(f"preflight ended with {process.returncode}")
        stats: dict[str, Any] = json.loads(report.read_text("utf-8"))["stats"]
        return Timing(seconds, _processor_seconds() - before, peak / 1e6, stats)


def files_read(base: Path, cache: Path) -> list[Path]:
    """The files whose facts a cold run stored, found by their content, largest first."""
    (store,) = cache.glob("sgl-graph/facts-*.sqlite")
    with sqlite3.connect(store) as connection:
        digests = {row[0] for row in connection.execute("SELECT digest FROM facts")}
    # Files of one content are read once.
    found = {digest: file for file in (base / "sglang").rglob("*.py") if (digest := _digest(file)) in digests}
    return sorted(found.values(), key=lambda file: (-file.stat().st_size, str(file)))


def parse_only(files: list[Path]) -> tuple[float, float]:
    """Wall and processor seconds that libcst takes to parse the files in as many processes, which were started and warmed before."""
    before = _processor_seconds()
    with multiprocessing.get_context("spawn").Pool(JOBS) as pool:
        pool.map(_parse, [str(Path(__file__))] * JOBS, chunksize=1)
        began = time.monotonic()
        for _ in pool.imap_unordered(_parse, map(str, files), chunksize=1):
            pass
        seconds = time.monotonic() - began
        pool.close()
        pool.join()
    return seconds, _processor_seconds() - before


def main() -> int:
    """Measure, print the table, and fail if a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="0.5.23", help="SGLang release to fetch and map")
    parser.add_argument("--checkout", type=Path, help="map this folder in its place")
    parser.add_argument("--model-config", type=Path, default=LLAMA, help="config.json; a plain Llama's if left out")
    parser.add_argument("--device", default="h200")
    parser.add_argument("serving", nargs="*", default=SERVING, help="after --: the serving command")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sgl-graph-bench-") as folder:
        return _measure(arguments, Path(folder))


def _measure(arguments: argparse.Namespace, work: Path) -> int:
    base = _copy(arguments.checkout or _fetch(arguments.release), work / "checkout")
    options = ["--model-config", str(arguments.model_config.absolute()), "--device", arguments.device]
    cache = work / "cache"
    for part in ("analyzer", "runtime", "cli"):
        compileall.compile_dir(HERE.parent / part, quiet=1)
    cold = preflight(base, cache, options, arguments.serving)
    files = files_read(base, cache)
    parsing, parsing_cpu = parse_only(files)
    warm = preflight(base, cache, options, arguments.serving)
    edited_file = files[0]
    edited_file.write_bytes(edited_file.read_bytes() + b"\n# edited\n")
    edited = preflight(base, cache, options, arguments.serving)
    watched = preflight(base, work / "second cache", options, arguments.serving, watched=True)
    size = sum(file.stat().st_size for file in files) / 1e6
    print(
        f"read {len(files)} files, {size:.1f} MB; libcst.parse_module alone, {JOBS} processes: {parsing:.1f} s, {parsing_cpu:.1f} s of processor"
    )
    name = edited_file.relative_to(base)
    rows = [
        (f"cold ({cold.stats['modules_parsed']} parsed)", cold.seconds, COLD_SECONDS, "s"),
        ("cold against parsing alone", cold.seconds / parsing, COLD_RATIO, "x"),
        (f"warm ({warm.stats['modules_parsed']} parsed)", warm.seconds, WARM_SECONDS, "s"),
        (f"edited {name} ({edited.stats['modules_parsed']} parsed)", edited.seconds, EDITED_SECONDS, "s"),
        ("peak memory, all processes, cold", watched.peak_mb, PEAK_MB, " MB"),
    ]
    for title, timing in (("cold", cold), ("warm", warm), ("edited", edited)):
        print(f"{title}: {timing.seconds:.1f} s, {timing.cpu:.1f} s of processor")
    for title, value, limit, unit in rows:
        print(f"{title:<70} {value:8.2f}{unit:<3} limit {limit:g}{unit}  {'ok' if value <= limit else 'OVER'}")
    return int(any(value > limit for _, value, limit, _ in rows))


def _fetch(version: str) -> Path:
    done = subprocess.run([sys.executable, str(FETCH), version], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return Path(done.stdout.strip())


def _copy(source: Path, target: Path) -> Path:
    """A copy of the package that may be edited: its Python files, at the place where preflight looks for it."""
    base = next((place for place in (source / "python", source) if (place / "sglang" / "srt").is_dir()), None)
    if base is None:
        sys.exit(f"{source} holds no sglang/srt")
    for file in (base / "sglang").rglob("*.py"):
        copied = target / file.relative_to(base)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)
    return target


def _resident(process: psutil.Process) -> int:
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += _proportional(one.pid) or one.memory_info().rss
    except psutil.Error:
        pass
    return total


def _processor_seconds() -> float:
    """What ended children of this process, and theirs, have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _proportional(pid: int) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), None)


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _parse(file: str) -> None:
    import libcst

    try:
        libcst.parse_module(Path(file).read_bytes())
    except libcst.ParserSyntaxError:
        pass


if __name__ == "__main__":
    sys.exit(main())
