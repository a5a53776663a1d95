"""Runs one Python program with the probe and collects its receipts: the process side of `run --program`."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sgl_graph.analyzer.errors import CommandInvalid, HostError, OutputExists
from sgl_graph.analyzer.serving_command import PYTHON_VALUE_OPTIONS
from sgl_graph.runtime.inject import ProbeSettings, write_injection

#: Interpreter switches that keep PYTHONPATH or sitecustomize from acting.
_ISOLATING = frozenset("EIS")
#: Short interpreter switches as CPython takes them: alone ones, then perhaps one whose value follows.
_SWITCHES = re.compile(r"-([^cmXW]*)([cmXW]?)(.*)", re.DOTALL)
#: How long workers that outlive the program may take to write their footers.
_SEAL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a program left.

    Attributes:
        run: The run's identifier.
        command: What was run.
        returncode: Its exit status; negative for a signal.
        seconds: How long it took.
        receipts: The workers' receipt files, by name.
    """

    run: str
    command: tuple[str, ...]
    returncode: int
    seconds: float
    receipts: tuple[Path, ...]


def run_program(
    command: Sequence[str],
    out: Path,
    *,
    env: Mapping[str, str] | None = None,
    inspector: str = "cuda",
    poison: bool = False,
    tool: str | None = None,
    timeout: float | None = None,
    fresh: bool = True,
) -> ProgramRun:
    """Run a program under the probe; its output goes where this process's goes.

    Args:
        command: `python SCRIPT ARGS...`, or any command that starts Python workers.
        out: Fresh folder; receipts go to `out/receipts`.
        env: Variables on top of this process's.
        inspector: `cuda`, or another inspector's module.
        poison: Overwrite what graphs must not depend on.
        tool: Digest of this tool.
        timeout: Seconds after which the program is ended.
        fresh: Whether `out` must be empty; an archive holds its plan before the program starts.

    Raises:
        OutputExists: `out` holds something already.
        CommandInvalid: The command cannot be injected.
        HostError: It cannot be started.
    """
    check_program(command)
    if fresh and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputExists(f"{out} is not empty", hint="name a fresh folder")
    receipts = out / "receipts"
    receipts.mkdir(parents=True, exist_ok=True)
    run = uuid.uuid4().hex[:16]
    base = Path(tempfile.mkdtemp(prefix="sgl-graph-"))
    try:
        settings = ProbeSettings(
            run=run, launch="program", receipts=receipts, inspector=inspector, tool=tool, poison=poison, roles={}
        )
        injection = write_injection(base / "inject", settings)
        environment = injection.environment({**os.environ, **(env or {})})
        started = time.monotonic()
        try:
            process = subprocess.Popen(list(command), env=environment)
        except OSError as error:
            raise HostError(f"{command[0]} cannot be started: {error}", hint="is it on PATH?") from error
        returncode = _wait(process, timeout)
        seconds = time.monotonic() - started
        injection.seal()
        _await_footers(receipts)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    return ProgramRun(run, tuple(command), returncode, seconds, tuple(sorted(receipts.glob("*.jsonl"))))


def check_program(command: Sequence[str]) -> None:
    """Refuse what cannot be run under the probe, before anything is written or started.

    Raises:
        CommandInvalid: There is no command, its interpreter would ignore the probe, or its script does not exist.
    """
    if not command:
        raise CommandInvalid("no program is named", hint="sgl-graph run --program --out DIR -- python SCRIPT ARGS...")
    if not Path(command[0]).name.startswith("python"):
        return
    arguments = iter(command[1:])
    for argument in arguments:
        if not argument.startswith("-"):
            _check_script(argument)
            return
        if argument == "-":
            return
        if argument.startswith("--"):
            if argument in PYTHON_VALUE_OPTIONS:
                next(arguments, None)
            continue
        taken = _SWITCHES.fullmatch(argument)
        assert taken is not None
        switches, valued, value = taken.groups()
        if _ISOLATING & set(switches):
            raise CommandInvalid(
                f"python {argument} ignores PYTHONPATH or sitecustomize, so the probe cannot enter",
                hint=f"leave {argument} out",
            )
        if valued in ("c", "m"):
            return
        if valued and not value:
            next(arguments, None)


def _check_script(script: str) -> None:
    if not Path(script).exists():
        raise CommandInvalid(
            f"{script}: no such script", hint="paths of scripts are relative to the folder where sgl-graph is started"
        )


def status_text(returncode: int) -> str:
    """How a program ended, in words; empty for status 0."""
    if returncode >= 0:
        return f"exit status {returncode}" if returncode else ""
    try:
        return f"signal {-returncode} ({signal.Signals(-returncode).name})"
    except ValueError:
        return f"signal {-returncode}"


def _wait(process: subprocess.Popen[bytes], timeout: float | None) -> int:
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise


def _await_footers(receipts: Path) -> None:
    """Wait until every worker that still lives has written its footer, but not for ever."""
    end = time.monotonic() + _SEAL_SECONDS
    while time.monotonic() < end and any(_is_open(path) for path in receipts.glob("*.jsonl")):
        time.sleep(0.05)


def _is_open(path: Path) -> bool:
    pid = path.stem.partition("-")[0]
    if not pid.isdigit() or not Path(f"/proc/{pid}").exists():
        return False
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    return b'"k":"footer"' not in last
