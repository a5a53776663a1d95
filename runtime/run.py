"""A run from its plan to its manifest: whatever happens on the way, the folder says what did."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from sgl_graph.analyzer.errors import ConfigError, HostError
from sgl_graph.analyzer.reconcile.ledger import assemble
from sgl_graph.analyzer.reconcile.observed import observed_map
from sgl_graph.analyzer.records.archive import LEDGER, MAP, OBSERVED_MAP, PLAN, REPORT
from sgl_graph.analyzer.records.ledger import Ledger
from sgl_graph.analyzer.records.plan import Plan
from sgl_graph.runtime.archive import RunArchive
from sgl_graph.runtime.devices import Devices, check_devices, visible_devices
from sgl_graph.runtime.evidence import IDENTITIES, SOURCE, read_evidence
from sgl_graph.runtime.identity import host_identity, serving_environment
from sgl_graph.runtime.injection import Injector
from sgl_graph.runtime.launching import Launcher, Say
from sgl_graph.runtime.locks import gpu_locks
from sgl_graph.runtime.map_fit import for_run, map_anew, wanted_options
from sgl_graph.runtime.options import RunOptions
from sgl_graph.runtime.planning import Prepared
from sgl_graph.runtime.processes import Watchdog, stop_marked

Render = Callable[[Ledger], str]
JOB = "new execution"


@dataclass(frozen=True)
class Finished:
    """A run that was carried to its end."""

    ledger: Ledger
    manifest_digest: str
    root: Path


def check_gaps(options: RunOptions, plan: Plan) -> None:
    """Stop before the launch where something material cannot be proven.

    Raises:
        ConfigError: There is such a gap, and it was not accepted.
    """
    if plan.gaps and not plan.gaps_accepted:
        listed = "\n  - ".join(map(for_run, plan.gaps))
        wanted = wanted_options(plan.gaps)
        accept = "--accept-gaps runs all the same; what is partial stays partial to the end"
        raise ConfigError(
            f"material gaps, nothing was launched:\n  - {listed}",
            hint=f"{map_anew(options, wanted)}\nor: {accept}" if wanted else accept,
        )


def execute(options: RunOptions, prepared: Prepared, injector: Injector | None, render: Render, say: Say) -> Finished:
    """Carry out a plan.

    Args:
        options: What the user asked.
        prepared: The plan and its sources.
        injector: Prepares the probe; None when this host cannot inject.
        render: Ledger to report.md.
        say: Receives progress, a line at a time.

    Raises:
        ConfigError: The output folder exists, or gaps were not accepted.
        HostError: The devices are not free, or the disk refuses.
        KeyboardInterrupt: Interrupted; servers are stopped and the partial archive is closed.
    """
    check_gaps(options, prepared.plan)
    devices = _devices(options, prepared)
    with gpu_locks(own_gpus(devices, allow_busy=options.allow_busy)):
        archive = RunArchive.create(options.out)
        plan_digest = archive.write_record(PLAN, prepared.plan)
        if prepared.map_bytes is not None:
            archive.write_bytes(MAP, prepared.map_bytes)
        archive.write_json(SOURCE, dict(prepared.source_index))
        identities = _identities(prepared, devices, plan_digest)
        archive.write_json(IDENTITIES, identities)
        say(f"plan {plan_digest[:12]} in {archive.root / PLAN}")
        failure: BaseException | None = None
        watchdog = Watchdog(prepared.plan.run_id)
        try:
            with _terminable():
                launcher = Launcher(options, prepared, archive, injector, watchdog, say)
                for launch in prepared.plan.launches:
                    launcher.run(launch)
        except BaseException as error:  # noqa: BLE001 - raised again below, when the folder is closed
            failure = error
        with _undisturbed():
            # An interruption may have hit the stopping itself.
            stop_marked(prepared.plan.run_id)
            watchdog.close()
            finished = close(
                archive, prepared.plan, render, identities=identities, plan_digest=plan_digest, failure=failure
            )
        if failure is not None:
            raise failure
        return finished


def close(
    archive: RunArchive,
    plan: Plan,
    render: Render,
    *,
    identities: dict[str, Any],
    plan_digest: str,
    failure: BaseException | None,
) -> Finished:
    """Judge what is there, write ledger, report and observed map, and close the folder with its manifest."""
    archive.release_reserve()
    evidence = read_evidence(archive.root, tool_digest=plan.tool_digest)
    ledger = assemble(evidence, job=JOB, run_dir=str(archive.root), read_file="its own files, as just written")
    archive.write_record(LEDGER, ledger)
    archive.write_bytes(REPORT, render(ledger).encode())
    if evidence.view is not None:
        try:
            archive.write_json(OBSERVED_MAP, observed_map(evidence.view, evidence.workers))
        except HostError:
            if failure is None:
                raise
            # The disk is full already: the manifest matters more than a view of what ledger and receipts hold.
    failed = [name for name, outcome in evidence.launches.items() if outcome.state == "failed"]
    reason = _reason(failure) or (f"failed: {', '.join(failed)}" if failed else "")
    digest = archive.close(
        run_id=plan.run_id, complete=not reason, reason=reason, identities=identities, plan_digest=plan_digest
    )
    return Finished(ledger, digest, archive.root)


def _reason(failure: BaseException | None) -> str:
    if failure is None:
        return ""
    return "interrupted" if isinstance(failure, KeyboardInterrupt) else f"{type(failure).__name__}: {failure}"


def _devices(options: RunOptions, prepared: Prepared) -> Devices:
    device = prepared.plan.device
    if device.emulated or device.kind not in ("cuda", "gpu"):
        return Devices()
    visible = visible_devices(options.command.env, options.env)
    return check_devices(options.command, visible, allow_busy=options.allow_busy)


def own_gpus(devices: Devices, *, allow_busy: bool) -> list[str]:
    """The GPUs that no other run may take meanwhile: none where busy ones are taken, for then others may be runs, too."""
    return [] if allow_busy else [gpu.uuid for gpu in devices.gpus]


def _identities(prepared: Prepared, devices: Devices, plan_digest: str) -> dict[str, Any]:
    plan = prepared.plan
    launch = plan.launches[0]
    interpreter = serving_interpreter(launch.argv)
    return {
        "tool": plan.tool_digest,
        "plan": plan_digest,
        "map": hashlib.sha256(prepared.map_bytes).hexdigest() if prepared.map_bytes is not None else None,
        "checkout": plan.checkout,
        "host": host_identity(),
        "serving": serving_environment(interpreter, _with_environ(launch.env)),
        "gpus": [gpu.text() for gpu in devices.gpus],
        "driver": devices.driver,
        "device": f"{plan.device.kind} ({plan.device.source})",
    }


def serving_interpreter(argv: list[str]) -> str:
    """The interpreter whose packages serve: the command's own, or the one beside `sglang`."""
    if argv[0].rsplit("/", 1)[-1] != "sglang":
        return argv[0]
    script = shutil.which(argv[0])
    beside = Path(script).resolve().with_name("python") if script else None
    return str(beside) if beside is not None and beside.exists() else sys.executable


def _with_environ(env: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **env}


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    yield from _with_handlers(interrupt, (signal.SIGTERM, signal.SIGHUP))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not cost the archive: closing it takes moments."""
    yield from _with_handlers(signal.SIG_IGN, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def _with_handlers(handler: Any, numbers: tuple[signal.Signals, ...]) -> Iterator[None]:
    try:
        before = {number: signal.signal(number, handler) for number in numbers}
    except ValueError:  # not the main thread: nobody delivers signals here
        yield
        return
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
