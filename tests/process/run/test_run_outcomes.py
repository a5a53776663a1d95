"""Every way in which a run can go: the right verdicts, exit code and drift, a readable archive, nothing left running."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

DRIVER = Path(__file__).parents[2] / "fakes" / "run_driver.py"


_PATHS = [
    {
        "id": name,
        "name": name,
        "worker": "scheduler",
        "reachable": "yes",
        "label": {"variants": [None], "buckets": [1, 2, 4]},
    }
    for name in ("target:decode", "draft:decode")
]
#: A map that expects a path more than the server takes.
DRAFTED = json.dumps({"paths": _PATHS})


def drive(out: Path, *options: str, fault: str = "") -> tuple[int, dict[str, Any], str]:
    """Run the driver; its exit code, the ledger that it left, and stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(DRIVER), str(out), f'env={{"FAKE_FAULT": "{fault}"}}', *options],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    ledger = json.loads((out / "ledger.json").read_text()) if (out / "ledger.json").exists() else {}
    return done.returncode, ledger, done.stderr + done.stdout


def values(ledger: dict[str, Any]) -> tuple[str, str, str]:
    verdicts = ledger["verdicts"]
    return verdicts["lifetime"]["value"], verdicts["numerical"]["value"], verdicts["coverage"]["value"]


def assert_sealed(out: Path) -> dict[str, Any]:
    """The manifest names every file with its digest, and nothing of the run is alive."""
    manifest = json.loads((out / "manifest.json").read_text())
    on_disk = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} - {"manifest.json"}
    assert set(manifest["files"]) == on_disk
    for name, entry in manifest["files"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == entry["sha256"], name
    run = json.loads((out / "plan.json").read_text())["run_id"]
    assert left_behind(run) == []
    return manifest


def left_behind(run: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            environ = process.environ()
            if environ.get("SGL_GRAPH_RUN") == run and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("fault", "options", "code", "expected"),
    [
        ("", ["control=true", "tp=2"], 0, ("PASS", "PASS", "PASS")),
        ("wrong-tokens", ["control=true"], 1, ("PASS", "FAIL", "PASS")),
        ("batch-sensitive", ["control=true"], 3, ("PASS", "INCONCLUSIVE", "PASS")),
        ("dangling", [], 1, ("FAIL", "PASS", "PASS")),
        ("no-replay", [], 1, ("NOT-RUN", "PASS", "FAIL")),
        ("no-footer", [], 3, ("INCOMPLETE", "PASS", "INCOMPLETE")),
        ("", ["labels=target:decode,draft:decode", f"map={DRAFTED}"], 1, ("PASS", "PASS", "FAIL")),
        ("", ["labels=target:decode@2"], 1, ("PASS", "PASS", "FAIL")),
        ("", ["labels="], 3, ("PASS", "PASS", "INCONCLUSIVE")),
        ("", ["skip_eager=true"], 0, ("PASS", "NOT-RUN", "PASS")),
        ("", ["skip_instrumented=true"], 0, ("NOT-RUN", "PASS", "INCOMPLETE")),
        ("garbage", [], 4, ("INCOMPLETE", "INCOMPLETE", "INCOMPLETE")),
        ("short", [], 4, ("INCOMPLETE", "INCOMPLETE", "INCOMPLETE")),
        ("die-at-start", [], 4, ("INCOMPLETE", "INCOMPLETE", "INCOMPLETE")),
        ("hang", ["request_timeout=2.0"], 4, ("INCOMPLETE", "INCOMPLETE", "INCOMPLETE")),
        ("never-healthy", ["start_timeout=3.0"], 4, ("INCOMPLETE", "INCOMPLETE", "INCOMPLETE")),
        ("worker-dies", ["tp=2", "request_timeout=5.0"], 4, ("INCOMPLETE", "INCOMPLETE", "INCOMPLETE")),
        ("ignore-term", ["skip_eager=true"], 0, ("PASS", "NOT-RUN", "PASS")),
    ],
)
def test_fault_gives_its_verdicts(
    tmp_path: Path, fault: str, options: list[str], code: int, expected: tuple[str, str, str]
) -> None:
    out = tmp_path / "run"
    status, ledger, text = drive(out, *options, fault=fault)
    assert values(ledger) == expected, text
    assert status == code, text
    manifest = assert_sealed(out)
    failed = [name for name, outcome in ledger["launches"].items() if outcome["state"] == "failed"]
    assert (manifest["state"] == "partial") == bool(failed)


def test_the_first_difference_is_named(tmp_path: Path) -> None:
    _, ledger, _ = drive(tmp_path / "run", "skip_instrumented=true", fault="wrong-tokens")
    first = ledger["verdicts"]["numerical"]["first_difference"]
    assert (first["set"], first["request"], first["position"]) == ("one", 0, 2)
    assert first["observed"] == first["reference"] + 1
    assert first["reference_top"] and first["observed_top"]
    [finding] = [f for f in ledger["findings"] if f["label"] == "target:decode@1"]
    assert (finding["code"], finding["severity"]) == ("answers-differ", "definite")
    assert finding["next_step"]


def test_a_server_that_refuses_log_probabilities_is_asked_without(tmp_path: Path) -> None:
    """As DFLASH does in SGLang 0.5.17. What was refused is in no window, and only the first set of all is refused."""
    out = tmp_path / "run"
    code, ledger, text = drive(out, "control=true", fault="refuses-logprobs")
    assert (code, values(ledger)) == (0, ("PASS", "PASS", "PASS")), text
    assert text.count("sent again without log-probabilities") == 1
    assert any("return_logprob is not supported" in line for line in ledger["limitations"])
    answers = json.loads(next(out.glob("ordinary/*.outputs.json")).read_text())
    assert all(r["output_ids"] and not r["logprobs"] for r in answers["requests"])
    assert_sealed(out)


def test_a_refusal_for_another_reason_fails_the_launch(tmp_path: Path) -> None:
    code, ledger, text = drive(tmp_path / "run", fault="refuses-all")
    assert code == 4 and values(ledger)[1] == "INCOMPLETE", text
    assert not any("no log-probabilities" in line for line in ledger["limitations"])


def test_a_server_that_dies_shows_the_cause_in_its_log(tmp_path: Path) -> None:
    _, ledger, _ = drive(tmp_path / "run", fault="die-at-start")
    reason = ledger["launches"]["eager"]["reason"]
    assert "RuntimeError: the fake was told to die" in reason
    assert "launch_server.py" in reason


def test_a_server_that_is_not_healthy_in_time_is_given_no_made_up_cause(tmp_path: Path) -> None:
    _, ledger, _ = drive(tmp_path / "run", "start_timeout=2.0", "skip_eager=true", fault="never-healthy")
    for launch in ("ordinary", "instrumented"):
        reason = ledger["launches"][launch]["reason"]
        assert reason.startswith("not healthy within 2 s; ")
        assert "cause" not in reason
        assert "no error in its log, which ends: " in reason or "its log is empty" in reason


def test_a_rank_that_writes_nothing_is_missed(tmp_path: Path) -> None:
    workers = json.dumps({"workers": [{"role": "scheduler", "count": 3, "source": "test", "injection": {}}]})
    status, ledger, text = drive(tmp_path / "run", f"map={workers}", "tp=2")
    assert status == 3, text
    assert values(ledger) == ("INCOMPLETE", "PASS", "INCOMPLETE")
    assert "2 of 3 scheduler workers wrote receipts" in ledger["verdicts"]["coverage"]["reason"]


def test_a_missed_label_is_retried_within_the_budget_and_then_reported(tmp_path: Path) -> None:
    traffic = tmp_path / "traffic.json"
    traffic.write_text(json.dumps([{"name": "two", "labels": ["target:decode@1"], "concurrency": 2, "output_len": 4}]))
    _, ledger, text = drive(tmp_path / "a", f'traffic="{traffic}"', "labels=target:decode@1")
    assert "sending two~retry" in text
    assert ledger["verdicts"]["coverage"]["value"] == "FAIL"
    assert ledger["verdicts"]["coverage"]["captured_not_replayed"] == ["target:decode@1", "target:decode@4"]
    _, _, text = drive(tmp_path / "b", f'traffic="{traffic}"', "labels=target:decode@1", "budget=3")
    assert "sending two~retry" not in text


def test_dispatch_that_the_server_contradicts_is_drift(tmp_path: Path) -> None:
    config = [
        {"name": "attention_backend", "value": None, "source": "unresolved", "automatic": True, "predicted": "other"}
    ]
    _, ledger, text = drive(tmp_path / "run", f"map={json.dumps({'config': config})}", "skip_eager=true")
    [drift] = [d for d in ledger["drift"] if d["kind"] == "dispatch"]
    assert (drift["predicted"], drift["observed"]) == ("other", "fake"), text
    assert values(ledger) == ("PASS", "NOT-RUN", "PASS")


def test_captures_that_match_no_path_are_drift_and_stay_in_the_observed_map(tmp_path: Path) -> None:
    _, ledger, text = drive(tmp_path / "run", f"map={json.dumps({'paths': []})}", "skip_eager=true")
    unmapped = [d for d in ledger["drift"] if d["kind"] == "unmapped-capture"]
    assert {d["observed"] for d in unmapped} == {"target:decode@1", "target:decode@2", "target:decode@4"}, text
    observed = json.loads((tmp_path / "run" / "map.observed.json").read_text())
    assert len(observed["unmapped_captures"]) == 3


def test_material_gaps_stop_the_run_before_any_launch(tmp_path: Path) -> None:
    gaps = json.dumps({"gaps": [{"severity": "material", "text": "memory out of sight", "sites": []}]})
    status, _, text = drive(tmp_path / "run", f"map={gaps}")
    assert status == 2, text
    assert "memory out of sight" in text
    assert not (tmp_path / "run").exists()
    status, ledger, _ = drive(tmp_path / "run", f"map={gaps}", "accept_gaps=true", "skip_eager=true")
    assert status == 0
    assert any("memory out of sight" in text for text in ledger["limitations"])


def test_an_existing_folder_is_never_written(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "precious").write_text("x")
    status, _, text = drive(tmp_path / "run")
    assert status == 2, text
    assert [p.name for p in (tmp_path / "run").iterdir()] == ["precious"]


def test_a_taken_port_is_refused_before_any_launch(tmp_path: Path) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        status, _, text = drive(tmp_path / "run", f"arguments=--port {taken.getsockname()[1]}")
    assert status == 4, text
    assert "is taken by another process" in text
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (['map={"starts": {"value": "no", "why": "rejected", "file": "sglang/x.py", "line": 3}}'], "sglang/x.py:3"),
        (["arguments=--nnodes 2"], "run handles one node"),
        (["skip_eager=true", "skip_ordinary=true", "skip_instrumented=true"], "nothing to run"),
        (["labels=decode"], "is no label"),
        (["labels=target:decod", "accept_gaps=true"], "the nearest is target:decode"),
        (
            ['map={"command": ["sglang", "serve", "m"]}', "accept_gaps=true"],
            "was made for another command: map: sglang serve",
        ),
        (
            [f'map={{"checkout": {{"digest": "{"0" * 64}"}}, "sites": [{{"file": "sglang/srt/gone.py"}}]}}'],
            "sglang/srt/gone.py, where it found captures, is not in this one",
        ),
        (["budget=0"], "at least one request"),
        (["arguments=--port x"], "no port"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_launch(tmp_path: Path, options: list[str], why: str) -> None:
    status, _, text = drive(tmp_path / "run", *options)
    assert status == 2, text
    assert why in text
    assert not (tmp_path / "run").exists()


def test_a_missing_model_is_refused_before_any_launch(tmp_path: Path) -> None:
    status, _, text = drive(tmp_path / "run", f"arguments=--model-path {tmp_path}/none")
    assert status == 2, text
    assert "is not on this host" in text


def test_a_map_of_other_source_makes_derived_coverage_inconclusive(tmp_path: Path) -> None:
    checkout = json.dumps({"checkout": {"root": "", "layout": "repository", "digest": "0" * 64}})
    status, ledger, text = drive(tmp_path / "a", f"map={checkout}", "skip_eager=true")
    assert (status, values(ledger)) == (3, ("PASS", "NOT-RUN", "INCONCLUSIVE")), text
    assert "the map was made from other source" in ledger["provenance"]
    status, ledger, text = drive(tmp_path / "b", f"map={checkout}", "skip_eager=true", "labels=target:decode")
    assert (status, values(ledger)) == (0, ("PASS", "NOT-RUN", "PASS")), text
