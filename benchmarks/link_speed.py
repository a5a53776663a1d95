"""What linking costs once all facts are stored: processor time, interpretations and memory, apart from the rest of preflight.

python benchmarks/link_speed.py                      # SGLang from the package index, a plain Llama configuration
python benchmarks/link_speed.py --checkout DIR --repeat 3 -- python -m sglang.launch_server ...

The first run fills a cache folder of its own; in those that count, in a process each, no file is parsed and no map is stored. Seconds
are those of the processor, so that they mean something on a machine with other work, though caches that others use slow them too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
FETCH = HERE.parent / "fixtures" / "sglang_release.py"
LLAMA = HERE.parent / "fixtures" / "models" / "llama.json"
SERVING = ["python", "-m", "sglang.launch_server", "--model-path", "meta-llama/Llama-3.1-8B-Instruct"]


def main() -> int:
    """Measure and print a line a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="0.5.23", help="SGLang release to fetch and map")
    parser.add_argument("--checkout", type=Path, help="map this folder in its place")
    parser.add_argument("--model-config", type=Path, default=LLAMA, help="config.json; a plain Llama's if left out")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("serving", nargs="*", default=SERVING, help="after --: the serving command")
    arguments = parser.parse_args()
    checkout: Path = (arguments.checkout or _fetch(arguments.release)).absolute()
    if arguments.measure:
        print(json.dumps(_measured(checkout, arguments)))
        return 0
    with tempfile.TemporaryDirectory(prefix="sgl-graph-bench-") as cache:
        for turn in range(arguments.repeat + 1):
            found = _in_a_process(cache, checkout, arguments)
            if turn:
                print("  ".join(f"{name} {value:,.1f}" for name, value in found.items()), flush=True)
    return 0


def _measured(checkout: Path, arguments: argparse.Namespace) -> dict[str, float]:
    from sgl_graph.analyzer.serving_command import parse
    from sgl_graph.analyzer.static.link.interpreter import Interpreter
    from sgl_graph.runtime.mapping import MapOptions, make_map

    marks: list[tuple[str, float, float]] = []
    interpretations = 0
    interpret = Interpreter.interpret

    def counted(self: Interpreter, *given: object) -> None:
        nonlocal interpretations
        interpretations += 1
        interpret(self, *given)  # type: ignore[arg-type]

    def step(text: str) -> None:
        marks.append((text, time.process_time(), _peak()))

    Interpreter.interpret = counted  # type: ignore[method-assign]
    options = MapOptions(
        command=parse(arguments.serving),
        checkout=checkout,
        model_config=arguments.model_config,
        device=arguments.device,
        jobs=1,
    )
    made = make_map(options, step)
    (position,) = (i for i, (text, _, _) in enumerate(marks) if text.startswith("linking from"))
    (_, began, before), (_, ended, after) = marks[position : position + 2]
    return {
        "linking s": round(ended - began, 2),
        "all s": round(time.process_time(), 2),
        "interpretations": interpretations,
        "functions reached": made.stats.functions_reached,
        "MB before": before,
        "MB after": after,
    }


def _in_a_process(cache: str, checkout: Path, arguments: argparse.Namespace) -> dict[str, float]:
    for store in Path(cache).glob("sgl-graph/*.sqlite"):
        with sqlite3.connect(store) as connection:
            connection.execute("DELETE FROM maps")
    command = [
        *(sys.executable, __file__, "--measure", "--checkout", str(checkout), "--device", arguments.device),
        *("--model-config", str(arguments.model_config.absolute()), "--", *arguments.serving),
    ]
    done = subprocess.run(
        command, env={**os.environ, "XDG_CACHE_HOME": cache}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def _fetch(version: str) -> Path:
    done = subprocess.run([sys.executable, str(FETCH), version], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return Path(done.stdout.strip())


if __name__ == "__main__":
    sys.exit(main())
