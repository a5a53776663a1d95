"""The traffic of a map, as it is sent where nobody gives any: it uses the adapters that a launch loads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.miniserve.test_fault_table import ENVIRONMENT, HERE, MINISERVE, make_map

#: One graph serves batches with and without adapters: no label tells them apart.
COMMAND = [
    *("python", "-m", "sglang.launch_server", "--model-path", "models/tiny-moe"),
    *("--lora-paths", "a=adapters/a", "b=adapters/b", "--lora-backend", "plain"),
]


def test_adapters_that_no_request_can_use_are_noted(tmp_path: Path) -> None:
    command = [*COMMAND[:5], "--enable-lora", "--lora-backend", "plain"]
    made = json.loads(make_map(tmp_path / "map.json", command).read_text())
    assert [item["name"] for item in made["traffic"]] == ["text"]
    assert [gap["severity"] for gap in made["gaps"] if gap["code"] == "SGG055"] == ["note"]


@pytest.mark.timeout(300)
def test_a_fault_that_only_adapters_show_is_seen_without_traffic_of_ones_own(tmp_path: Path) -> None:
    path_map = make_map(tmp_path / "map.json", COMMAND)
    made = json.loads(path_map.read_text())
    assert made["labels"] == ["target:decode", "target:prefill-breakable"]
    assert [(item["name"], item["variant"], item["concurrency"]) for item in made["traffic"]] == [
        ("text", None, 1),
        ("adapters", "mixed", 3),
    ]
    assert "SGG055" not in {gap["code"] for gap in made["gaps"]}
    values = {}
    for fault in ("", "lora-recreated:0"):
        out = tmp_path / f"run-{fault[:4]}"
        done = subprocess.run(
            [sys.executable, str(HERE / "run_driver.py"), str(out), str(path_map), "--", *COMMAND],
            cwd=MINISERVE,
            env={**ENVIRONMENT, "MINISERVE_FAULT": fault},
            capture_output=True,
            text=True,
            timeout=140,
            check=False,
        )
        ledger = json.loads((out / "ledger.json").read_text())
        values[fault] = {verdict: found["value"] for verdict, found in ledger["verdicts"].items()}
        assert done.returncode == (1 if fault else 0), done.stdout + done.stderr
    assert values[""] == {"lifetime": "PASS", "numerical": "PASS", "coverage": "PASS"}
    assert values["lora-recreated:0"] == {"lifetime": "FAIL", "numerical": "FAIL", "coverage": "PASS"}
