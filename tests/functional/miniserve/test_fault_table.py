"""Every planted fault against the three verdicts, the drift and the line that the finding names, with 1 and 4 ranks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

HERE = Path(__file__).parent
FIXTURES = HERE.parents[2] / "fixtures"
MINISERVE = FIXTURES / "miniserve"
STATED = json.loads((MINISERVE / "faults.json").read_text())
#: A clean server passes everything; where the map's own, least traffic is sent, other sizes stay unreplayed.
CLEAN = [
    {
        "exit": 0,
        "drift": {ranks: [] if "replaces_args" not in case else ["bucket-unreplayed"] for ranks in ("1", "4")},
        "finding": None,
        "expect": {"lifetime": "PASS", "numerical": "PASS", "coverage": "PASS"},
        **case,
        "args": case.get("args", []),
        "name": f"clean-{case['name']}",
    }
    for case in STATED["clean"]
]
BY_NAME: dict[str, dict[str, Any]] = {fault["name"]: fault for fault in (*CLEAN, *STATED["faults"])}
#: Findings of the other two verdicts.
OTHER_CODES = {"answers-differ", "label-not-replayed"}
#: Runs at once: each waits more than it works.
WORKERS = 3

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": str(FIXTURES / "emulated"),
    "SGL_GRAPH_INSPECTOR": "emugraph.inspector",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class Outcome(NamedTuple):
    """One run: how it exited, what it said, and its ledger."""

    status: int
    said: str
    ledger: dict[str, Any]


Case = tuple[str, int]


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Case, Future[Outcome]]]:
    """All selected runs, started together a few at a time."""
    chosen = [
        (item.callspec.params["name"], item.callspec.params["ranks"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.originalname == test_verdicts_drift_and_line.__name__
    ]
    folder = tmp_path_factory.mktemp("table")

    commands = {case: serving_command(*case) for case in chosen}
    with ThreadPoolExecutor(WORKERS) as pool:
        distinct = sorted(set(map(tuple, commands.values())))
        files = [folder / f"map{number}.json" for number in range(len(distinct))]
        maps = dict(zip(distinct, pool.map(make_map, files, distinct), strict=True))
        yield {case: pool.submit(run, folder, case, maps[tuple(commands[case])]) for case in chosen}
        pool.shutdown(cancel_futures=True)


def serving_command(name: str, ranks: int) -> list[str]:
    case = BY_NAME[name]
    base = ["python", "-m", "sglang.launch_server", "--model-path", STATED["launch"]["model"]]
    return [*base, *case.get("replaces_args", STATED["launch"]["args"]), *case["args"], "--tp-size", str(ranks)]


def make_map(path: Path, command: Sequence[str]) -> Path:
    tool = [sys.executable, "-m", "sgl_graph.cli", "preflight", "--checkout", ".", "--format", "json", "-o", str(path)]
    done = subprocess.run(
        [*tool, "--", *command], cwd=MINISERVE, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert path.is_file(), done.stdout + done.stderr
    return path


def run(folder: Path, case: Case, path_map: Path) -> Outcome:
    """A whole run with the fault planted in the last rank."""
    name, ranks = case
    out = folder / f"{name}-{ranks}"
    env = dict(ENVIRONMENT)
    if not name.startswith("clean-"):
        # Not through --env: the map must be the one of the command without a fault.
        env["MINISERVE_FAULT"] = f"{name}:{ranks - 1}"
    tool = [sys.executable, str(HERE / "run_driver.py"), str(out), str(path_map)]
    if "replaces_args" not in BY_NAME[name]:
        tool.append(str(MINISERVE / "traffic.json"))
    done = subprocess.run(
        [*tool, "--", *serving_command(name, ranks)],
        cwd=MINISERVE,
        env=env,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    said = done.stdout + done.stderr
    assert (out / "ledger.json").is_file(), said
    return Outcome(done.returncode, said, json.loads((out / "ledger.json").read_text()))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("name", BY_NAME)
def test_verdicts_drift_and_line(runs: dict[Case, Future[Outcome]], name: str, ranks: int) -> None:
    fault = BY_NAME[name]

    outcome = runs[name, ranks].result()

    ledger = outcome.ledger
    verdicts = {verdict: ledger["verdicts"][verdict]["value"] for verdict in fault["expect"]}
    assert verdicts == fault["expect"], outcome.said
    assert outcome.status == fault["exit"], outcome.said
    if fault["drift"] is not None:
        assert sorted({drift["kind"] for drift in ledger["drift"]}) == fault["drift"][str(ranks)], ledger["drift"]
    found = [finding for finding in ledger["findings"] if finding["code"] not in OTHER_CODES]
    if fault["finding"] is None:
        assert found == []
        return
    assert {finding["label"].rpartition("@")[0] for finding in found} == set(fault["finding"]["labels"])
    assert {finding["freed_at"][0].rpartition(" ")[0] for finding in found} <= lines_of(fault["finding"]["freed_at"])
    assert {finding["worker"] for finding in found} == {worker_of_rank(ledger, ranks - 1)}


def lines_of(place: dict[str, Any]) -> set[str]:
    """`file:line` of the statements that a fault's freeing happens in."""
    path = MINISERVE / "python" / place["file"]
    found, inside = set(), False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("def "):
            inside = line.lstrip().startswith(f"def {place['function']}(")
        if inside and any(text in line for text in place["code"]):
            found.add(f"{path}:{number}")
    assert found, f"no such statement in {place['function']}"
    return found


def worker_of_rank(ledger: dict[str, Any], rank: int) -> str:
    ids = [w["id"] for w in ledger["workers"] if w["role"] == "scheduler" and w["rank"].get("tp") == rank]
    assert len(ids) == 1, ledger["workers"]
    return str(ids[0])
