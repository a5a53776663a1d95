"""Any process killed at any stage: never a PASS, a readable archive, nothing left running, nothing else touched."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from sgl_graph.analyzer.reconcile.ledger import assemble
from sgl_graph.runtime.evidence import read_evidence

DRIVER = Path(__file__).parents[2] / "fakes" / "run_driver.py"


class Running:
    """A driver that is going on."""

    def __init__(self, out: Path, *options: str, fault: str = "") -> None:
        self.out = out
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(DRIVER), str(out), f'env={{"FAKE_FAULT": "{fault}"}}', *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []

    def until(self, text: str) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            if text in line:
                return
        raise AssertionError("".join(self.said))

    def finish(self) -> int:
        assert self.process.stderr is not None
        self.said += self.process.stderr.readlines()
        return self.process.wait(60)

    def servers(self) -> list[psutil.Process]:
        run = json.loads((self.out / "plan.json").read_text())["run_id"]
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("SGL_GRAPH_RUN") == run and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def ledger(self) -> dict[str, Any]:
        return json.loads((self.out / "ledger.json").read_text())


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours, with a name like a server's."""
    code = "import time; time.sleep(300)  # sglang.launch_server"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    yield process
    assert process.poll() is None, "a process that the run did not start was ended"
    process.kill()
    process.wait()


def gone(running: Running, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not running.servers():
            return True
        time.sleep(0.2)
    return False


STAGES = [
    ("eager: starting", "never-healthy"),
    ("eager: healthy", "hang"),
    ("ordinary: starting", ""),
    ("instrumented: healthy", ""),
]


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("stage", "fault"), STAGES)
def test_killing_the_tool_leaves_no_server_and_a_readable_archive(
    tmp_path: Path, bystander: subprocess.Popen[bytes], stage: str, fault: str
) -> None:
    running = Running(tmp_path / "run", "tp=2", fault=fault)
    running.until(stage)
    running.process.kill()
    running.process.wait(10)
    assert gone(running, 20), [p.cmdline() for p in running.servers()]
    assert not (running.out / "manifest.json").exists()
    ledger = assemble(
        read_evidence(running.out, tool_digest="t"), job="read-only inspection", run_dir="", read_file="plan.json"
    )
    assert "PASS" not in (ledger.verdicts.lifetime.value, ledger.verdicts.coverage.value)
    if stage.startswith("eager"):
        assert ledger.verdicts.numerical.value == "INCOMPLETE"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("stage", "fault"), STAGES)
def test_an_interruption_closes_the_partial_archive(
    tmp_path: Path, bystander: subprocess.Popen[bytes], stage: str, fault: str, number: signal.Signals
) -> None:
    running = Running(tmp_path / "run", "tp=2", fault=fault)
    running.until(stage)
    time.sleep(0.3)
    running.process.send_signal(number)
    assert running.finish() == 130, running.said
    assert running.servers() == []
    manifest = json.loads((running.out / "manifest.json").read_text())
    assert (manifest["state"], manifest["reason"]) == ("partial", "interrupted")
    verdicts = running.ledger()["verdicts"]
    assert verdicts["lifetime"]["value"] == verdicts["coverage"]["value"] == "INCOMPLETE"
    assert (running.out / "report.md").read_text().startswith("```text\nJob: new execution\n")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("launch", ["eager", "ordinary", "instrumented"])
@pytest.mark.parametrize("victim", ["leader", "worker"])
def test_killing_a_server_process_fails_its_launch_only(
    tmp_path: Path, bystander: subprocess.Popen[bytes], launch: str, victim: str
) -> None:
    skips = {"eager": [], "ordinary": ["skip_eager=true"], "instrumented": ["skip_eager=true", "skip_ordinary=true"]}
    # settle leaves time between healthy and the first answer.
    settle = ["settle=2.0", "settle_unwatched=2.0"]
    running = Running(tmp_path / "run", "tp=2", *settle, "request_timeout=3.0", *skips[launch])
    running.until(f"{launch}: healthy")
    processes = running.servers()
    workers = [p for p in processes if "worker" in p.cmdline()]
    chosen = workers[-1] if victim == "worker" else next(p for p in processes if "worker" not in p.cmdline())
    os.kill(chosen.pid, signal.SIGKILL)
    assert running.finish() == 4, running.said
    assert running.servers() == []
    ledger = running.ledger()
    assert ledger["launches"][launch]["state"] == "failed"
    verdicts = {name: verdict["value"] for name, verdict in ledger["verdicts"].items()}
    touched = {"eager": ["numerical"], "ordinary": [], "instrumented": ["lifetime", "coverage"]}[launch]
    assert all(verdicts[name] == "INCOMPLETE" for name in touched), verdicts
    if launch == "eager":
        assert (verdicts["lifetime"], verdicts["coverage"]) == ("PASS", "PASS")


def test_a_full_disk_ends_the_run_and_keeps_what_is_there(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4400k", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("this host mounts nothing for tests")
    try:
        filler = disk / "filler"
        running = Running(disk / "run", "tp=1", "settle=1.0")
        running.until("ordinary: healthy")
        try:
            filler.write_bytes(b"x" * (8 << 20))
        except OSError:
            pass
        code = running.finish()
        assert code == 4, running.said
        assert running.servers() == []
        assert json.loads((running.out / "manifest.json").read_text())["state"] == "partial"
        verdicts = running.ledger()["verdicts"]
        assert "PASS" not in {verdict["value"] for verdict in verdicts.values()}
        assert json.loads((running.out / "eager" / "one.outputs.json").read_text())["launch"] == "eager"
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
