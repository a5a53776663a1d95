"""Runs sgl-graph on a real SGLang with one planted fault a row, several rows at once, and holds each against its row.

usage: python3 tests/gpu/run_faults.py ROW... --bundle DIR --out DIR [--jobs N] [--limit SECONDS] [--maps DIR] [--kernels FILE]
                                [--derived]
       python3 tests/gpu/run_faults.py --check DIR [--derived]

Rows are those of fault_rows.py; `one` means all for one GPU, `two` all for two. DIR holds site.tar.xz (SGLang and what it needs) and
tool.tar.xz (make_tool_bundle.sh). In OUT: rows.json, and faults.tar with each row's archive, export, report and log. --limit
interrupts what still runs after so many seconds, and packs it. --maps takes maps made elsewhere, as ROW.json. --derived sends the map's own
traffic instead of traffic.json beside this file: sizes are left out then, and rows that need certain ones do not hold. --kernels
unpacks kernels compiled on such a host if FILE is there; OUT/kernels.tar.xz holds them afterwards. --check holds archives, kept
as DIR/ROW beside DIR/rows.json, against the rows again, without a GPU. Exit status: 0 when every row holds, 1 when not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import kernel_cache
from fault_rows import PLUGIN, ROWS, Checked, Row, check, planted_lines
from run_sglang import COMMON, REPOSITORY, WORK, models, unpack
from stopping import Stopping

ARCHIVES = WORK / "faults"
_BEGAN = time.monotonic()
_stopping = Stopping()


def command(name: str, row: Row, number: int, site: Path, maps: Path | None, derived: bool = False) -> list[str]:
    """What runs a row; each row has ports of its own."""
    path = os.pathsep.join([str(site), str(PLUGIN.parent)])
    program = [sys.executable, "-m", "sgl_graph.cli", "run", "--out", str(ARCHIVES / name), "--checkout", str(site)]
    program += ["--env", f"PYTHONPATH={path}", *(["--env", f"SGL_GRAPH_FAULT={row.fault}"] if row.fault else [])]
    program += ["--accept-gaps", "--allow-busy"]
    program += [] if derived else ["--traffic", str(Path(__file__).with_name("traffic.json"))]
    program += ["--start-timeout", "420", "--request-timeout", "60", *row.options.split()]
    if maps is not None and (maps / f"{name}.json").exists():
        program += ["--map", str(maps / f"{name}.json")]
    return [*program, "--", *serving(name, row, number)]


def serving(name: str, row: Row, number: int) -> list[str]:
    """The serving command of a row."""
    ports = ["--port", str(21000 + 10 * number), "--nccl-port", str(23000 + 10 * number)]
    model = ["--model-path", str(WORK / row.model)]
    return ["python3", "-m", "sglang.launch_server", *model, *COMMON.split(), *row.flags.split(), *ports]


def run(name: str, number: int, out: Path, site: Path, tool: Path, maps: Path | None, derived: bool) -> dict[str, Any]:
    """One row; what rows.json says of it."""
    if _stopping.begun:
        return {"row": name, "exit": 130, "holds": False, "problems": ["not begun: out of time"]}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY / ".typeview"), str(tool)]),
        "PATH": os.pathsep.join([os.environ.get("PATH", ""), os.path.dirname(sys.executable), "/usr/local/cuda/bin"]),
    }
    began = time.monotonic()
    with (out / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command(name, ROWS[name], number, site, maps, derived),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        _stopping.watch(process)
        assert process.stderr is not None
        for line in process.stderr:
            log.write(line)
            if not line.startswith(" "):
                print(f"{time.monotonic() - _BEGAN:4.0f} {name}: {line.rstrip()[:150]}", flush=True)
        code = process.wait()
    result = examined(name, ARCHIVES / name, code) | {"seconds": round(time.monotonic() - began)}
    print(f"== {said(result)}", flush=True)
    keep(name, out, environment)
    return result


def examined(name: str, archive: Path, code: int) -> dict[str, Any]:
    """A finished archive held against its row."""
    verdicts: dict[str, str] = {}
    try:
        ledger = json.loads((archive / "ledger.json").read_text())
        launches = ("eager", "ordinary", "instrumented")
        logs = {launch: (archive / launch / "server.log").read_text(errors="replace") for launch in launches}
        checked = check(ROWS[name], ledger, code, logs, planted_lines(PLUGIN.read_text()))
        verdicts = {key: ledger["verdicts"][key]["value"] for key in ("lifetime", "numerical", "coverage")}
    except (OSError, ValueError, LookupError, TypeError) as error:
        checked = Checked(problems=[f"no whole run: {type(error).__name__}: {error}"])
    return {
        "row": name,
        "exit": code,
        "verdicts": verdicts,
        "holds": not checked.problems,
        "problems": checked.problems,
        "named": checked.named,
    }


def said(result: dict[str, Any]) -> str:
    """One line for people."""
    values = " ".join(result.get("verdicts", {}).values())
    if result["holds"]:
        return f"{result['row']}: holds ({values}; exit {result['exit']}) {'; '.join(result['named'])}"
    return f"{result['row']}: DOES NOT HOLD ({values}; exit {result['exit']}): {' | '.join(result['problems'][:4])}"


def keep(name: str, out: Path, environment: dict[str, str]) -> None:
    """The archive, its report and its export, beside the log."""
    archive = ARCHIVES / name
    if not archive.exists():
        return
    if (archive / "report.md").exists():
        (out / f"{name}.report.md").write_text((archive / "report.md").read_text())
    if (archive / "manifest.json").exists():
        export = [sys.executable, "-m", "sgl_graph.cli", "export", str(archive), "-o", str(out / f"{name}.zip")]
        subprocess.run([*export, "--include-outputs"], env=environment, stdout=subprocess.DEVNULL, check=False)
    with tarfile.open(out / f"{name}.tar.xz", "w:xz", preset=3) as packed:
        packed.add(archive, arcname=name)


def collect(out: Path, folder: Path, results: list[dict[str, Any]]) -> None:
    """rows.json and faults.tar, with whatever there is."""
    (out / "rows.json").write_text(json.dumps(results, indent=1))
    with tarfile.open(out / "faults.tar", "w") as packed:
        for file in sorted(folder.iterdir()):
            packed.add(file, arcname=file.name)


def check_kept(folder: Path) -> list[dict[str, Any]]:
    """Archives that were kept, held against the rows as they are now."""
    codes = {entry["row"]: entry["exit"] for entry in json.loads((folder / "rows.json").read_text())}
    return [examined(name, folder / name, codes[name]) for name in codes if name in ROWS]


def chosen(names: list[str]) -> list[str]:
    """Rows by name or by number of GPUs.

    Raises:
        SystemExit: There is no such row.
    """
    found: list[str] = []
    for name in names:
        gpus = {"one": 1, "two": 2}.get(name)
        if gpus is None and name not in ROWS:
            sys.exit(f"no row {name}; there are one, two, {', '.join(ROWS)}")
        found += [name] if gpus is None else [row for row in ROWS if ROWS[row].gpus == gpus]
    return list(dict.fromkeys(found))


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*")
    parser.add_argument("--bundle", type=Path)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "/tmp/sgl-graph-out")))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--limit", type=float)
    parser.add_argument("--maps", type=Path)
    parser.add_argument("--derived", action="store_true")
    parser.add_argument("--kernels", type=Path)
    parser.add_argument("--check", type=Path)
    args = parser.parse_args()
    if args.derived:
        ROWS.update({name: replace(row, drift=row.drift | {"bucket-unreplayed"}) for name, row in ROWS.items()})
    if args.check:
        results = check_kept(args.check)
        print("\n".join(said(result) for result in results))
        sys.exit(0 if all(result["holds"] for result in results) else 1)
    if args.bundle is None or not args.rows:
        parser.error("ROW... and --bundle are needed, or --check")
    rows = chosen(args.rows)
    _stopping.listen(args.limit)
    folder = WORK / "faults.out"
    for path in (args.out, folder, ARCHIVES):
        path.mkdir(parents=True, exist_ok=True)
    site, tool = unpack(args.bundle)
    if args.kernels and args.kernels.exists():
        kernel_cache.unpack(args.kernels)
    models()
    results: list[dict[str, Any]] = []
    lock = threading.Lock()

    def one(numbered: tuple[int, str]) -> None:
        result = run(numbered[1], numbered[0], folder, site, tool, args.maps, args.derived)
        with lock:
            results.append(result)
            collect(args.out, folder, results)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, enumerate(rows)))
    if args.kernels:
        print(f"{kernel_cache.pack(args.out / 'kernels.tar.xz')} files of compiled kernels kept", flush=True)
    print("\n".join(said(result) for result in results))
    sys.exit(0 if len(results) == len(rows) and all(result["holds"] for result in results) else 1)


if __name__ == "__main__":
    main()
