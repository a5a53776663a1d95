"""Whole runs of miniserve by the command line: a clean one with its control, one that finds a freed buffer, one that names a rank.

Every fault with one and with four ranks is in `tests/functional/miniserve/test_fault_table.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import miniserve_map as maps

ROOT = Path(__file__).parents[3] / "fixtures" / "miniserve"
FAULTS = json.loads((ROOT / "faults.json").read_text())
CLEAN = {"lifetime": "PASS", "numerical": "PASS", "coverage": "PASS"}


def run(
    tmp_path: Path, arguments: list[str], *, fault: str = "", workers: int = 2, options: tuple[str, ...] = ()
) -> Any:
    """A whole run of miniserve; exit code and ledger."""
    (tmp_path / "map.json").write_bytes(maps.miniserve_map(workers))
    out = tmp_path / "run"
    environment = {
        "PYTHONPATH": str(ROOT.parent / "emulated"),
        "SGL_GRAPH_INSPECTOR": "emugraph.inspector",
        **({"MINISERVE_FAULT": fault} if fault else {}),
    }
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "sgl_graph.cli",
        "run",
        "-q",
        "--out",
        str(out),
        "--checkout",
        str(ROOT),
    ]
    command += ["--map", str(tmp_path / "map.json"), "--request-timeout", "30", *options]
    command += [part for key, value in environment.items() for part in ("--env", f"{key}={value}")]
    command += ["--", "python", "-m", "sglang.launch_server", "--model-path", FAULTS["launch"]["model"]]
    command += [*FAULTS["launch"]["args"], "--tp-size", str(workers), *arguments]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False, env=dict(os.environ)
    )
    assert (out / "ledger.json").exists(), done.stderr
    return done.returncode, json.loads((out / "ledger.json").read_text())


def values(ledger: Any) -> dict[str, str]:
    return {name: verdict["value"] for name, verdict in ledger["verdicts"].items()}


@pytest.mark.timeout(300)
def test_a_clean_server_passes_all_three_and_drifts_nowhere(tmp_path: Path) -> None:
    case = next(case for case in FAULTS["clean"] if "replaces_args" not in case)
    code, ledger = run(tmp_path, case["args"], workers=2, options=("--control",))
    assert values(ledger) == CLEAN, ledger["verdicts"]
    assert (code, ledger["findings"], ledger["drift"]) == (0, [], [])
    assert ledger["agreement"]["value"] == "agrees"
    assert ledger["verdicts"]["numerical"]["control"]["status"] == "applied"
    assert len([w for w in ledger["workers"] if w["role"] == "scheduler"]) == 2
    assert ledger["launches"]["eager"]["captures"] == 0


@pytest.mark.timeout(300)
def test_a_freed_buffer_fails_the_run_and_is_named(tmp_path: Path) -> None:
    fault = next(fault for fault in FAULTS["faults"] if fault["finding"])
    code, ledger = run(tmp_path, fault["args"], fault=fault["name"])
    assert (code, values(ledger)) == (1, fault["expect"]), ledger["verdicts"]
    where = fault["finding"]["freed_at"]
    freed = [f for f in ledger["findings"] if f["freed_at"] != "unknown"]
    assert freed
    for finding in freed:
        assert finding["label"].rsplit("@", 1)[0] in fault["finding"]["labels"]
        place, function = finding["freed_at"][0].split()[:2]
        file, line = place.rsplit(":", 1)
        assert file.endswith(where["file"]) and function.rsplit(".", 1)[-1] == where["function"]
        statement = Path(file).read_text().splitlines()[int(line) - 1]
        assert any(code in statement for code in where["code"]), statement


@pytest.mark.timeout(300)
def test_the_rank_that_differs_is_named(tmp_path: Path) -> None:
    _, ledger = run(tmp_path, [], fault="rank-eager:1", options=("--skip-eager", "--skip-ordinary"))
    assert values(ledger)["coverage"] == "FAIL"
    between = [d for d in ledger["drift"] if d["kind"] == "workers-differ"]
    assert between
    [lacking] = {w["id"] for w in ledger["workers"] if w["rank"] != "unknown" and w["rank"].get("tp") == 1}
    assert any(lacking in d["observed"] for d in between)
    assert lacking in ledger["verdicts"]["coverage"]["reason"]
