"""Real processes under an injection: where the probe enters, what it leaves, and however the process ends."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.errors import CommandInvalid, OutputExists
from sgl_graph.runtime.inject import FolderInjector, InjectionFolder, ProbeSettings, write_injection
from sgl_graph.runtime.program import check_program, run_program

#: A device of no memory: `device.capture()` and `device.replay()` are all there is.
DEVICE = "recorder = None\n"
INSPECTOR = """
import importlib, sys

class Handle:
    removed = False
    def remove(self):
        Handle.removed = True

def install(recorder):
    device = sys.modules["device"]
    blocks = importlib.import_module(type(recorder).__module__.rpartition(".")[0] + ".blocks")
    def capture(address=4096):
        begun = recorder.begin_capture()
        block = recorder.blocks.refer(blocks.Allocation(address, 512, [0, 0], None, 0))
        return recorder.end_capture(begun, pool=[0, 1], nodes={"kernel": 1}, names=["k"], unowned=[], unread=[],
                                    refs=[[0, 0, 0, 0, "param", "external", block.id]], complete=True)
    device.capture, device.replay, device.free = capture, recorder.replay, lambda a: recorder.freed(0, a)
    recorder.hello(hooks={"capture": "test", "replay": "test", "launch": None})
    return Handle()
"""
WORK = "import device\ng = device.capture()\nfor _ in range(10):\n    device.replay(g)\n"


class Site:
    """A folder with the device, its inspector and an injection for it."""

    def __init__(self, folder: Path, launch: str = "instrumented", **more: Any) -> None:
        self.folder = folder
        (folder / "device.py").write_text(DEVICE)
        (folder / "inspector_of_device.py").write_text(INSPECTOR)
        self.receipts = folder / "receipts"
        settings = ProbeSettings(
            run="r1", launch=launch, receipts=self.receipts, inspector="inspector_of_device@device", **more
        )
        self.injection: InjectionFolder = write_injection(folder / "inject", settings, b'{"sites": [], "paths": []}')
        self.env = self.injection.environment({**os.environ, "PYTHONPATH": str(folder)})

    def script(self, text: str, name: str = "script.py") -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def run(self, text: str, *, check: bool = True, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, self.script(text)], env=self.env, capture_output=True, text=True, timeout=60, check=check
        )

    def files(self) -> list[list[dict[str, Any]]]:
        """Records of each worker, its chain verified."""
        workers = []
        for path in sorted(self.receipts.glob("*.jsonl")):
            previous = "0" * 32
            records = []
            for line in path.read_text().splitlines():
                body, _, tail = line.rpartition(',"h":"')
                link = hashlib.sha256((previous + body + "}").encode()).hexdigest()[:32]
                assert link == tail[:-2]
                previous = link
                records.append(json.loads(line))
            workers.append(records)
        return workers


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def kinds(records: list[dict[str, Any]]) -> list[str]:
    return [r["k"] for r in records]


def footer(records: list[dict[str, Any]]) -> str | None:
    return records[-1].get("reason") if records[-1]["k"] == "footer" else None


def test_a_process_that_never_imports_the_library_leaves_nothing(site: Site) -> None:
    done = site.run("import sys; print('torch' in sys.modules)")
    assert done.stdout == "False\n" and done.stderr == ""
    assert site.files() == []


def test_a_worker_leaves_a_whole_chain_with_a_footer(site: Site) -> None:
    site.run(WORK)
    [records] = site.files()
    assert kinds(records) == ["hello", "block", "capture", "replays", "footer"]
    assert records[0]["run"] == "r1" and records[0]["hooks"]["capture"] == "test"
    assert records[-1]["replays"] == 10 and footer(records) == "exit"


@pytest.mark.parametrize("ending", ["import os; os._exit(3)", "raise SystemExit(3)", "raise RuntimeError"])
def test_the_footer_is_there_however_the_process_leaves(site: Site, ending: str) -> None:
    done = site.run(WORK + ending, check=False)
    assert done.returncode in (1, 3)
    assert footer(site.files()[0]) == "exit"


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children_of_multiprocessing_are_workers_of_their_own(site: Site, method: str) -> None:
    text = (
        "import multiprocessing as mp\n"
        f"def work():\n    {WORK.replace(chr(10), chr(10) + '    ')}\n"
        "if __name__ == '__main__':\n"
        f"    p = mp.get_context('{method}').Process(target=work); p.start(); p.join(); assert p.exitcode == 0\n"
    )
    site.run(text)
    [records] = [r for r in site.files() if "capture" in kinds(r)]
    assert footer(records) == "exit" and records[-1]["replays"] == 10


def test_a_forked_child_leaves_the_parents_chain_alone(site: Site) -> None:
    text = (
        WORK + "import os\npid = os.fork()\n"
        "if pid == 0:\n    h = device.capture(8192); device.replay(h); os._exit(0)\n"
        "os.waitpid(pid, 0)\ndevice.replay(g)\n"
    )
    # The inspector's functions are bound to the recorder, which starts afresh in the child.
    site.run(text)
    workers = site.files()
    assert len(workers) == 2
    assert sorted(r[-1]["replays"] for r in workers) == [1, 11]
    assert {footer(r) for r in workers} == {"exit"}
    assert len({r[0]["pid"] for r in workers}) == 2


def test_a_nested_launcher_hands_the_probe_on(site: Site) -> None:
    inner = site.script(WORK, "inner.py")
    site.run(f"import subprocess, sys\nsubprocess.run(['bash', '-c', sys.executable + ' {inner}'], check=True)\n")
    assert len(site.files()) == 1


def test_another_sitecustomize_still_acts(site: Site) -> None:
    (site.folder / "sitecustomize.py").write_text("import builtins; builtins.other_was_here = True\n")
    done = site.run("import sys; print(other_was_here, sys.modules['sitecustomize'].__file__)")
    assert done.stdout.startswith("True") and str(site.folder / "sitecustomize.py") in done.stdout


def test_a_killed_worker_leaves_lines_that_read_back_and_no_footer(site: Site) -> None:
    text = WORK + "import time, sys\ntime.sleep(0.8)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    process = subprocess.Popen([sys.executable, site.script(text)], env=site.env, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    [records] = site.files()
    assert kinds(records) == ["hello", "block", "capture", "replays"]
    assert records[-1]["count"] == 10


def test_the_seal_writes_the_footer_while_the_process_lives_on(site: Site) -> None:
    text = WORK + (
        "import time, sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
        "for _ in range(5):\n    device.replay(g)\nimport inspector_of_device\nprint(inspector_of_device.Handle.removed)\n"
    )
    process = subprocess.Popen(
        [sys.executable, site.script(text)], env=site.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    site.injection.seal()
    end = time.monotonic() + 10
    while footer(site.files()[0]) is None and time.monotonic() < end:
        time.sleep(0.05)
    out, _ = process.communicate("go\n", timeout=30)
    assert out == "True\n"
    [records] = site.files()
    assert footer(records) == "sealed" and records[-1]["replays"] == 10


def test_requests_apart_in_time_are_runs_apart(site: Site) -> None:
    site.run(WORK + "import time\ntime.sleep(0.8)\nfor _ in range(5):\n    device.replay(g)\n")
    [records] = site.files()
    assert [r["count"] for r in records if r["k"] == "replays"] == [10, 5]


def test_source_and_role_are_told(tmp_path: Path) -> None:
    site = Site(tmp_path, sources=("served",), roles={"run_worker": "scheduler"})
    package = tmp_path / "served" / "sub"
    package.mkdir(parents=True)
    (tmp_path / "served" / "__init__.py").write_text("__version__ = '9.9'\n")
    (package / "__init__.py").write_text("")
    (package / "model.py").write_text("x = 1\n")
    site.run(
        "import served.sub.model, time\n"
        f"def run_worker(tp_rank, gpu_id):\n    {WORK.replace(chr(10), chr(10) + '    ')}time.sleep(0.5)\n"
        "run_worker(1, 0)\n"
    )
    [records] = site.files()
    [role] = [r for r in records if r["k"] == "role"]
    assert (role["role"], role["rank"]) == ("scheduler", {"tp": 1, "gpu_id": 0})
    source = next(r for r in records if r["k"] == "source")
    assert source["root"] == str(tmp_path) and source["version"] == "9.9"
    assert source["modules"]["served.sub.model"] == hashlib.sha256(b"x = 1\n").hexdigest()


def test_the_probe_imports_nothing_but_the_standard_library(site: Site) -> None:
    text = (
        "import sys, device\nknown = set(sys.stdlib_module_names)\n"
        "print(sorted({m.partition('.')[0] for m in sys.modules} - known - {'device', 'inspector_of_device'}))\n"
    )
    env = {k: v for k, v in site.env.items() if not k.startswith("VIRTUAL")}
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import site"], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.returncode == 0
    out = site.run(text).stdout
    assert {n for n in json.loads(out.replace("'", '"')) if "editable" not in n} <= {
        "_sgl_graph_probe",
        "__main__",
        "sitecustomize",
        "_virtualenv",
        "_distutils_hack",
    }


def test_a_broken_configuration_never_stops_the_program(site: Site) -> None:
    (site.injection.folder / "config.json").write_text("{")
    done = site.run("print('alive')")
    assert done.stdout == "alive\n" and "not active" in done.stderr


def test_the_injector_prepares_a_folder_a_launch(tmp_path: Path) -> None:
    injector = FolderInjector(tmp_path / "base", inspector="a@b")
    made = injector(launch="ordinary", receipts=tmp_path / "r", run="1", map_bytes=b"{}", count_only=True, poison=False)
    config = json.loads((made.folder / "config.json").read_text())
    assert config["count_only"] is True and config["inspector"] == "a@b" and (made.folder / "map.json").exists()
    assert not list(made.folder.rglob("__pycache__"))


def test_run_program_collects_and_refuses(tmp_path: Path) -> None:
    site = Site(tmp_path)
    env = {"PYTHONPATH": str(tmp_path)}
    done = run_program(
        [sys.executable, site.script(WORK + "import sys; sys.exit(7)")],
        tmp_path / "out",
        env=env,
        inspector="inspector_of_device@device",
    )
    assert done.returncode == 7 and len(done.receipts) == 1
    with pytest.raises(OutputExists):
        run_program([sys.executable, "-c", ""], tmp_path / "out")
    for flags in ("-I", "-sE", "-S"):
        with pytest.raises(CommandInvalid, match="probe cannot enter"):
            run_program(["python3", flags, "x.py"], tmp_path / "other")
    with pytest.raises(CommandInvalid):
        run_program([], tmp_path / "other")


@pytest.mark.parametrize("switches", [[], ["-u"], ["-X", "dev"], ["-uW", "ignore"], ["-Wignore"]])
def test_a_script_that_does_not_exist_is_named_before_anything_is_written(tmp_path: Path, switches: list[str]) -> None:
    with pytest.raises(CommandInvalid, match=r"nope\.py: no such script"):
        run_program(["python", *switches, "nope.py"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "command", [["python", "-c", "x"], ["python", "-uc", "x"], ["python3", "-m", "x"], ["bash", "x"], ["python", "-"]]
)
def test_what_names_no_script_is_left_to_the_program(command: list[str]) -> None:
    check_program(command)
