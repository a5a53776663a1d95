"""The launches of a plan: whole commands, what is added to the environment, and where the servers are asked."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from sgl_graph.analyzer.errors import ConfigError, ServerStartFailed
from sgl_graph.analyzer.graph_switches import EagerCommand, enabling_variables
from sgl_graph.analyzer.records.plan import PlannedLaunch
from sgl_graph.analyzer.request_sets import RequestSets
from sgl_graph.analyzer.serving_command import ServingCommand
from sgl_graph.runtime.checkout import Location
from sgl_graph.runtime.options import RunOptions
from sgl_graph.runtime.server import free_port, port_taken

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
LOG_INTERVAL = "--decode-log-interval"


def server_environment(location: Location, env: Mapping[str, str], *, folder: Path | None = None) -> dict[str, str]:
    """The variables added for a server: the user's, the checkout first on the path, no network for models.

    Args:
        location: The checkout.
        env: The user's own.
        folder: The injection folder, before all else.
    """
    inherited = env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    parts = [str(folder) if folder else "", "" if location.layout == "installed" else str(location.base), inherited]
    return {
        **OFFLINE,
        "PYTHONUNBUFFERED": "1",
        **env,
        "PYTHONPATH": os.pathsep.join(part for part in parts if part),
    }


def planned_launches(
    options: RunOptions,
    location: Location,
    env: Mapping[str, str],
    eager: EagerCommand | None,
    sets: RequestSets,
    port: int,
    logs_decode: bool,
) -> list[PlannedLaunch]:
    """The launches that are not skipped, in the order in which they run.

    Args:
        options: What the user asked.
        location: The checkout.
        env: The user's variables.
        eager: The command without graphs; None when it is skipped.
        sets: The request sets.
        port: Where each server listens, one after the other.
        logs_decode: Whether the checkout can log every decode batch.
    """

    def names(*purposes: str) -> list[str]:
        return [s.name for s in sets.sets if s.purpose in purposes]

    found = []
    if eager is not None:
        quieter = {key: value for key, value in env.items() if key not in enabling_variables(env)}
        command = eager.command.with_arguments([LOG_INTERVAL, "1"] if logs_decode else [])
        for name in ("eager", "eager-repeat") if options.repeat_reference else ("eager",):
            found.append(
                PlannedLaunch.model_validate(
                    {
                        "name": name,
                        "argv": _argv(command, port),
                        "env": server_environment(location, quieter),
                        "sets": names("main", "control") if name == "eager" else names("main"),
                        "probe": "count",
                        "why": eager.why(),
                    }
                )
            )
    if not options.skip_ordinary:
        found.append(
            PlannedLaunch(
                name="ordinary",
                argv=_argv(options.command, port),
                env=server_environment(location, env),
                sets=names("main"),
                why="as it is served",
            )
        )
    if not options.skip_instrumented:
        found.append(
            PlannedLaunch(
                name="instrumented",
                argv=_argv(options.command, port),
                env=server_environment(location, env),
                sets=names("main", "retry"),
                probe="full",
                why="as it is served, watched; retry sets are sent only for labels that were missed",
            )
        )
    return found


def _argv(command: ServingCommand, port: int) -> list[str]:
    """The command on our port, with the interpreter that runs this tool where it names one that is not there."""
    argv = command.without("--port").with_arguments(["--port", str(port)]).argv()
    if command.interpreter in ("python", "python3") and not _on_path(argv[0]):
        argv[0] = sys.executable
    return argv


def _on_path(name: str) -> bool:
    return any(os.access(os.path.join(p, name), os.X_OK) for p in os.environ.get("PATH", "").split(os.pathsep) if p)


def server_address(command: ServingCommand) -> tuple[str, int]:
    """Where the servers will be asked; a port of the command is kept, and must be free.

    Raises:
        ConfigError: The command's port is no port.
        ServerStartFailed: It is taken.
    """
    host = command.value("--host") or "127.0.0.1"
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(host, host)
    asked = command.value("--port")
    if asked is None:
        return host, free_port(host)
    if not asked.isdigit() or not 0 < int(asked) < 65536:
        raise ConfigError(f"--port {asked}: no port")
    if port_taken(host, int(asked)):
        raise ServerStartFailed(
            f"port {asked} is taken by another process", hint="leave --port out and a free one is chosen"
        )
    return host, int(asked)


def argument_sources(base: Path) -> list[str]:
    """Text of the modules that declare the server's arguments."""
    srt = base / "sglang" / "srt"
    paths = [srt / "server_args.py", *sorted((srt / "arg_groups").rglob("*.py"))]
    return [path.read_text("utf-8", "replace") for path in paths if path.is_file()]
