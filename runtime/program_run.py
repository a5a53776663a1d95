"""`run --program` with an archive: the same folder as a serving run leaves, judged for lifetime alone."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sgl_graph.analyzer.errors import SglGraphError
from sgl_graph.analyzer.records.archive import PLAN
from sgl_graph.analyzer.records.ledger import LaunchOutcome
from sgl_graph.analyzer.records.plan import Plan, PlannedDevice, PlannedLaunch
from sgl_graph.runtime.archive import RunArchive
from sgl_graph.runtime.evidence import IDENTITIES, OUTCOME
from sgl_graph.runtime.identity import host_identity, serving_environment, tool_digest
from sgl_graph.runtime.launching import Say
from sgl_graph.runtime.program import check_program, run_program, status_text
from sgl_graph.runtime.run import Finished, Render, close

LAUNCH: Final = "program"


def execute_program(
    command: Sequence[str],
    out: Path,
    *,
    env: Mapping[str, str],
    inspector: str,
    poison: bool,
    render: Render,
    say: Say,
) -> Finished:
    """Run a program under the probe and close the archive, however the program ended.

    Args:
        command: `python SCRIPT ARGS...`.
        out: A fresh folder.
        env: Variables for it.
        inspector: `cuda`, or another inspector's module.
        poison: Overwrite what graphs must not depend on.
        render: Ledger to report.md.
        say: Receives progress.

    Raises:
        ConfigError: The folder exists, or the command cannot be injected.
        HostError: The disk refuses.
        KeyboardInterrupt: Interrupted; the partial archive is closed.
    """
    check_program(command)
    archive = RunArchive.create(out)
    plan = _plan(list(command), dict(env), inspector, poison)
    plan_digest = archive.write_record(PLAN, plan)
    identities = {
        "tool": plan.tool_digest,
        "plan": plan_digest,
        "host": host_identity(),
        "serving": serving_environment(command[0], env) if command else {},
    }
    archive.write_json(IDENTITIES, identities)
    failure: BaseException | None = None
    outcome = LaunchOutcome(state="failed", reason="interrupted")
    try:
        done = run_program(
            command, archive.root, env=env, inspector=inspector, poison=poison, tool=plan.tool_digest, fresh=False
        )
        # A program may fail for reasons of its own: what its graphs did before is judged all the same.
        reason = status_text(done.returncode)
        say(f"the program ended with {reason or 'exit status 0'} after {done.seconds:.1f} s")
        outcome = LaunchOutcome(state="ran", reason=reason)
    except SglGraphError as error:
        outcome = LaunchOutcome(state="failed", reason=error.message)
        failure = error
    except KeyboardInterrupt as error:
        failure = error
    archive.write_record(f"{LAUNCH}/{OUTCOME}", outcome)
    finished = close(archive, plan, render, identities=identities, plan_digest=plan_digest, failure=failure)
    if failure is not None:
        raise failure
    return finished


def _plan(command: list[str], env: dict[str, str], inspector: str, poison: bool) -> Plan:
    emulated = inspector != "cuda"
    return Plan(
        run_id=uuid.uuid4().hex[:12],
        mode="program",
        command=command,
        env=env,
        device=PlannedDevice(
            kind="emulated" if emulated else "cuda", source=f"inspector {inspector}", emulated=emulated
        ),
        launches=[PlannedLaunch(name=LAUNCH, argv=command, env=env, sets=[], probe="full", why="under the probe")],
        poison=poison,
        notes=["a program has no eager reference and no path map: lifetime only"],
        tool_digest=tool_digest(),
    )
