"""Every fault of fixtures/miniserve/faults.json in a whole run: three verdicts, the finding's line, the ranks that differ."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3] / "fixtures" / "miniserve"
FAULTS = json.loads((ROOT / "faults.json").read_text())
CLEAN = {"lifetime": "PASS", "numerical": "PASS", "coverage": "PASS"}
_SPEC = importlib.util.spec_from_file_location(
    "miniserve_map", Path(__file__).parents[2] / "fakes" / "miniserve_map.py"
)
assert _SPEC is not None and _SPEC.loader is not None
maps = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(maps)


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
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("case", [c for c in FAULTS["clean"] if "replaces_args" not in c], ids=lambda c: c["name"])
def test_a_clean_server_passes_all_three_and_drifts_nowhere(tmp_path: Path, case: Any, workers: int) -> None:
    code, ledger = run(tmp_path, case["args"], workers=workers, options=("--control",))
    assert values(ledger) == CLEAN, ledger["verdicts"]
    assert (code, ledger["findings"], ledger["drift"]) == (0, [], [])
    assert ledger["agreement"]["value"] == "agrees"
    assert ledger["verdicts"]["numerical"]["control"]["status"] == "applied"
    assert len([w for w in ledger["workers"] if w["role"] == "scheduler"]) == workers
    assert ledger["launches"]["eager"]["captures"] == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS["faults"], ids=lambda f: f["name"])
def test_a_planted_fault_gives_its_row(tmp_path: Path, fault: Any) -> None:
    code, ledger = run(tmp_path, fault["args"], fault=fault["name"])
    assert values(ledger) == fault["expect"], ledger["verdicts"]
    expected = fault["expect"].values()
    assert code == (1 if "FAIL" in expected else 4 if fault["name"] == "worker-dies" else 3)
    freed = [f for f in ledger["findings"] if f["freed_at"] != "unknown"]
    if not fault.get("finding"):
        assert freed == []
        return
    where = fault["finding"]["freed_at"]
    assert freed
    for finding in freed:
        assert finding["label"].rsplit("@", 1)[0] in fault["finding"]["labels"]
        innermost = finding["freed_at"][0] if isinstance(finding["freed_at"], list) else finding["freed_at"]
        place, function = innermost.split()[:2]
        file, line = place.rsplit(":", 1)
        assert file.endswith(where["file"]) and function.rsplit(".", 1)[-1] == where["function"]
        statement = Path(file).read_text().splitlines()[int(line) - 1]
        assert any(code in statement for code in where["code"]), statement


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["rank-differs", "rank-eager"])
def test_the_rank_that_differs_is_named(tmp_path: Path, name: str) -> None:
    _, ledger = run(tmp_path, [], fault=f"{name}:1", options=("--skip-eager", "--skip-ordinary"))
    assert values(ledger)["coverage"] == "FAIL"
    between = [d for d in ledger["drift"] if d["kind"] == "workers-differ"]
    assert between
    [lacking] = {w["id"] for w in ledger["workers"] if w["rank"] != "unknown" and w["rank"].get("tp") == 1}
    assert any(lacking in d["observed"] for d in between)
    assert lacking in ledger["verdicts"]["coverage"]["reason"]
