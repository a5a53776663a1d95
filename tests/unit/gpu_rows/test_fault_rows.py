"""Rows of planted faults: what a run must say for its row to hold, and that anything else does not."""

from __future__ import annotations

import copy
import importlib.util
import json
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GPU = Path(__file__).parents[2] / "gpu"
CLEAN = Path(__file__).parents[3] / "fixtures" / "archives" / "real-sglang-0.5.17" / "dedup.zip"


def load(name: str) -> ModuleType:
    """A module of tests/gpu, as its scripts import it."""
    spec = importlib.util.spec_from_file_location(name, GPU / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


fault_rows, run_faults = load("fault_rows"), load("run_faults")
SOURCE = fault_rows.PLUGIN.read_text()
LINES = fault_rows.planted_lines(SOURCE)
Judge = Callable[..., list[str]]


@pytest.fixture
def ledger() -> dict[str, Any]:
    """What a clean run of a real server said."""
    with zipfile.ZipFile(CLEAN) as archive:
        [name] = [n for n in archive.namelist() if n.endswith("/ledger.json")]
        found: dict[str, Any] = json.loads(archive.read(name))
    return found


def logs(row: str) -> dict[str, str]:
    """Server logs in which the row's fault was planted where it should be."""
    stated = fault_rows.ROWS[row]
    name = stated.fault.partition("@")[0]
    said = "".join(f"SGL_GRAPH_FAULT: {name} planted on rank {rank}\n" for rank in stated.ranks)
    return {"eager": "ready\n", "ordinary": f"ready\n{said}", "instrumented": said}


def faulty(ledger: dict[str, Any], row: str) -> dict[str, Any]:
    """The clean ledger, changed to what the row expects."""
    stated = fault_rows.ROWS[row]
    found = copy.deepcopy(ledger)
    for name, value in zip(("lifetime", "numerical", "coverage"), stated.verdicts, strict=True):
        found["verdicts"][name]["value"] = value
    found["drift"] = [{"kind": kind, "subject": "p1"} for kind in stated.drift]
    found["findings"] = [finding("answers-differ", "target:decode@1")] if stated.verdicts[1] == "FAIL" else []
    found["findings"] += [finding("label-not-replayed", label) for label in stated.uncovered]
    if stated.lifetime is not None:
        line = LINES[stated.lifetime.function]
        frames = [
            "/x/sglang/inner.py:7 inner",
            f"/x/faults/sgl_graph_faults.py:{line} {stated.lifetime.function}",
            "/x/sglang/runner.py:9 init",
        ]
        kernels = {"lora": "_qkv_lora_b_kernel", ".": "nvjet_tst"}
        kernel = kernels.get(stated.lifetime.kernels, "_fwd_grouped_kernel_stage1")
        for label in stated.lifetime.labels:
            raw = label if "@" in label else f"{label}@2"
            found["findings"].append(
                finding(min(stated.lifetime.codes), raw, kernel=kernel, freed_at=frames, worker="w1")
            )
    found["workers"] = [{"id": "w0", "rank": "unknown"}, {"id": "w1", "rank": {"tp": max(stated.ranks, default=0)}}]
    return found


def finding(code: str, label: str, **members: Any) -> dict[str, Any]:
    """A finding as a ledger holds it."""
    plain = {"kernel": "unknown", "freed_at": "unknown", "worker": "unknown", "text": f"{code} on {label}"}
    return {"code": code, "label": label, **plain, **members}


def judged(row: str, ledger: dict[str, Any], code: int | None = None, said: dict[str, str] | None = None) -> list[str]:
    """What does not hold."""
    stated = fault_rows.ROWS[row]
    exit_code = stated.exit if code is None else code
    problems: list[str] = fault_rows.check(stated, ledger, exit_code, said or logs(row), LINES).problems
    return problems


@pytest.mark.parametrize("row", fault_rows.ROWS)
def test_a_row_holds_when_all_is_as_stated(row: str, ledger: dict[str, Any]) -> None:
    assert judged(row, faulty(ledger, row)) == []


def test_a_clean_run_of_a_real_server_holds_as_a_clean_row_alone(ledger: dict[str, Any]) -> None:
    assert judged("tp2-clean", ledger) == []
    for row, stated in fault_rows.ROWS.items():
        if stated.fault:
            assert judged(row, ledger)


@pytest.mark.parametrize("name", ["lifetime", "numerical", "coverage"])
def test_each_verdict_counts(name: str, ledger: dict[str, Any]) -> None:
    found = faulty(ledger, "weight-rebound")
    found["verdicts"][name]["value"] = "INCONCLUSIVE"
    [problem] = judged("weight-rebound", found)
    assert problem.startswith(f"{name}: expected")


def test_exit_code_drift_and_planting_count(ledger: dict[str, Any]) -> None:
    found = faulty(ledger, "seq-lens-stale")
    assert judged("seq-lens-stale", found, code=3) == ["exit code: expected 1, found 3"]
    unplanted = {**logs("seq-lens-stale"), "ordinary": ""}
    assert "fault planted" in judged("seq-lens-stale", found, said=unplanted)[0]
    everywhere = dict.fromkeys(logs("seq-lens-stale"), logs("seq-lens-stale")["ordinary"])
    assert "fault planted" in judged("seq-lens-stale", found, said=everywhere)[0]
    found["drift"] = [{"kind": "dispatch", "subject": "x"}]
    assert judged("seq-lens-stale", found) == ["drift: expected [], found ['dispatch']"]


@pytest.mark.parametrize(
    ("member", "value", "says"),
    [
        ("freed_at", ["/x/faults/sgl_graph_faults.py:1 rebind_weight"], "not at"),
        ("freed_at", "unknown", "not at"),
        ("kernel", "unknown", "kernel unknown"),
        ("label", "target:verify@2", "does not reach"),
        ("code", "handover-order", "another finding"),
    ],
)
def test_a_lifetime_finding_leads_to_the_planted_line_with_kernel_and_label(
    member: str, value: Any, says: str, ledger: dict[str, Any]
) -> None:
    found = faulty(ledger, "weight-rebound")
    extra = {**found["findings"][-1], member: value}
    found["findings"].append(extra)
    assert any(says in problem for problem in judged("weight-rebound", found))


def test_every_expected_label_is_named(ledger: dict[str, Any]) -> None:
    found = faulty(ledger, "weight-rebound")
    found["findings"] = [f for f in found["findings"] if f["label"] != "target:prefill-breakable@2"]
    [problem] = judged("weight-rebound", found)
    assert problem.startswith("labels with a lifetime finding")


def test_only_the_rank_with_the_fault_may_report_it(ledger: dict[str, Any]) -> None:
    found = faulty(ledger, "tp2-weight-rebound")
    found["workers"][1]["rank"] = {"tp": 0}
    assert any("is not rank 1" in problem for problem in judged("tp2-weight-rebound", found))


def test_a_label_with_a_size_is_that_size(ledger: dict[str, Any]) -> None:
    found = faulty(ledger, "workspace-regrown")
    found["findings"].append({**found["findings"][-1], "label": "target:decode@8"})
    assert any("does not reach" in problem for problem in judged("workspace-regrown", found))


def test_each_row_plants_what_the_plugin_knows_at_a_line_that_it_marks() -> None:
    text = SOURCE.splitlines()
    for stated in fault_rows.ROWS.values():
        assert not stated.fault or f'"{stated.fault.partition("@")[0]}": ' in SOURCE
        if stated.lifetime is not None:
            assert text[LINES[stated.lifetime.function] - 1].endswith(fault_rows.MARK)


def test_rows_run_apart_from_each_other() -> None:
    site = Path("/tmp/site")
    commands = [run_faults.command(n, r, i, site, None) for i, (n, r) in enumerate(fault_rows.ROWS.items())]
    for flag in ("--port", "--nccl-port", "--out"):
        assert len({c[c.index(flag) + 1] for c in commands}) == len(commands)
    plain = [c for c in commands if not any(token.startswith("SGL_GRAPH_FAULT=") for token in c)]
    assert [c[c.index("--out") + 1].rpartition("/")[2] for c in plain] == ["tp2-clean"]
    assert all(f"{site}:{fault_rows.PLUGIN.parent}" in c[c.index("--env") + 1] for c in commands)


def test_rows_are_chosen_by_name_or_number_of_gpus() -> None:
    assert set(run_faults.chosen(["one"])) | set(run_faults.chosen(["two"])) == set(fault_rows.ROWS)
    assert run_faults.chosen(["tp2-clean", "two"])[0] == "tp2-clean"
    with pytest.raises(SystemExit):
        run_faults.chosen(["three"])


def test_a_run_that_did_not_end_does_not_hold(tmp_path: Path) -> None:
    result = run_faults.examined("tp2-clean", tmp_path, 4)
    assert not result["holds"] and "no whole run" in result["problems"][0]
    assert "DOES NOT HOLD" in run_faults.said(result)


def test_kept_archives_are_checked_again(tmp_path: Path, ledger: dict[str, Any]) -> None:
    for launch in ("eager", "ordinary", "instrumented"):
        (tmp_path / "tp2-clean" / launch).mkdir(parents=True)
        (tmp_path / "tp2-clean" / launch / "server.log").write_text("ready\n")
    (tmp_path / "tp2-clean" / "ledger.json").write_text(json.dumps(ledger))
    (tmp_path / "rows.json").write_text(json.dumps([{"row": "tp2-clean", "exit": 0}]))
    [result] = run_faults.check_kept(tmp_path)
    assert result["holds"] and run_faults.said(result).startswith("tp2-clean: holds (PASS PASS PASS; exit 0)")


def test_compiled_kernels_travel_with_their_times(tmp_path: Path) -> None:
    cache = load("kernel_cache")
    kernel = tmp_path / "one" / ".triton" / "cache" / "k" / "kernel.cubin"
    kernel.parent.mkdir(parents=True)
    kernel.write_bytes(b"code")
    (tmp_path / "one" / "other").write_text("not a kernel")
    assert cache.pack(tmp_path / "kernels.tar.xz", tmp_path / "one") == 1
    cache.unpack(tmp_path / "kernels.tar.xz", tmp_path / "two")
    moved = tmp_path / "two" / ".triton" / "cache" / "k" / "kernel.cubin"
    assert moved.read_bytes() == b"code" and int(moved.stat().st_mtime) == int(kernel.stat().st_mtime)
    with tarfile.open(tmp_path / "kernels.tar.xz") as packed:
        assert packed.getnames() == [".triton/cache/k/kernel.cubin"]
