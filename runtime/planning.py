"""The plan of a run, made before anything is launched; afterwards nothing outside it is launched or sent."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.graph_switches import declared_flags, eager_command
from sgl_graph.analyzer.label_check import check_labels
from sgl_graph.analyzer.reconcile.coverage import GRAPH_ROLE
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.records.base import canonical_json
from sgl_graph.analyzer.records.pathmap import Stats
from sgl_graph.analyzer.records.plan import (
    ExpectedWorkers,
    Plan,
    PlannedDevice,
    Requirements,
)
from sgl_graph.analyzer.request_sets import DEFAULT_TRAFFIC, request_sets
from sgl_graph.analyzer.serving_command import ServingCommand
from sgl_graph.analyzer.traffic_file import traffic_records
from sgl_graph.runtime.checkout import NOT_SERVING, Location
from sgl_graph.runtime.devices import gpu_count
from sgl_graph.runtime.identity import checkout_identity, source_index, tool_digest
from sgl_graph.runtime.launches import LOG_INTERVAL, argument_sources, planned_launches, server_address
from sgl_graph.runtime.map_fit import check_fit
from sgl_graph.runtime.model import load_model
from sgl_graph.runtime.options import RunOptions

#: Names the inspector of the probe; `cuda` is the product's.
INSPECTOR = "SGL_GRAPH_INSPECTOR"
_GPU_KINDS = frozenset({"cuda", "gpu"})
_UNCHECKED_KINDS = frozenset({"hip", "rocm", "npu", "xpu", "hpu", "musa", "mps"})


@dataclass(frozen=True)
class Prepared:
    """A plan and what it was made from."""

    plan: Plan
    view: MapView | None
    map_bytes: bytes | None
    location: Location
    source_index: Mapping[str, str]
    host: str
    port: int
    #: What the user should know before the launch: it may make what follows useless.
    doubts: tuple[str, ...] = ()


def prepare(
    options: RunOptions,
    location: Location,
    map_bytes: bytes | None,
    *,
    inspector: str | None,
    run_id: str | None = None,
) -> Prepared:
    """Plan a run.

    Args:
        options: What the user asked.
        location: The checkout.
        map_bytes: The path map as JSON; None when none could be made.
        inspector: The inspector that the environment or the checkout names; None for the product's own.
        run_id: A name for the run; made up by default.

    Raises:
        ConfigError: The command cannot be run as asked.
    """
    view = MapView.parse(map_bytes, str(options.map_file or "the path map")) if map_bytes is not None else None
    _refuse(options, view)
    env = {**options.env, **options.command.env}
    index = source_index(location.base)
    source_digest = _digest(_serving(index))
    doubts = check_fit(view, options, location, source_digest, index) if view is not None else []
    doubts += check_labels(options.expect_labels or (), view, "--expect-labels")
    traffic, unexpected = _traffic(options, view)
    doubts += unexpected
    model = load_model(options.command, {**os.environ, **env}, view.setting if view else lambda name: None)
    sets = request_sets(traffic, model, control=options.control and not options.skip_eager, budget=options.budget)
    host, port = server_address(options.command)
    device = _device(options.command, view, inspector)
    flags = declared_flags(argument_sources(location.base))
    eager = None if options.skip_eager else eager_command(options.command, flags)
    notes = [*doubts, *sets.notes]
    if device.kind in _UNCHECKED_KINDS:
        notes.append(f"the device check asks NVML, which does not know {device.kind}: not checked")
    if device.emulated:
        notes.append(f"the serving device is {device.kind}, no GPU: no device check")
    plan = Plan(
        run_id=run_id or uuid.uuid4().hex[:12],
        command=options.command.argv(),
        env=env,
        checkout={
            **checkout_identity(location.root, location.base, location.layout),
            "source_digest": source_digest,
        },
        device=device,
        launches=planned_launches(options, location, env, eager, sets, port, LOG_INTERVAL in flags),
        skipped=_skipped(options),
        request_sets=sets.sets if not options.skip_instrumented else sets.named("main", "control"),
        requirements=_requirements(options, view),
        workers=_expected_workers(options.command, view),
        tolerance=options.tolerance,
        control=options.control,
        repeat_reference=options.repeat_reference,
        poison=options.poison,
        budget=options.budget,
        vocab_size=model.vocab_size,
        map_digest=_map_digest(view),
        gaps=view.material_gaps if view else ["no path map: labels, sites and classes are unknown"],
        gaps_accepted=options.accept_gaps,
        notes=notes,
        tool_digest=tool_digest(),
    )
    return Prepared(plan, view, map_bytes, location, index, host, port, tuple(doubts))


def inspector_of(env: Mapping[str, str]) -> str | None:
    """The inspector that the run's environment names, or None."""
    return env.get(INSPECTOR) or os.environ.get(INSPECTOR) or None


def _refuse(options: RunOptions, view: MapView | None) -> None:
    command = options.command
    nodes = command.value("--nnodes")
    if nodes and nodes != "1":
        raise ConfigError(
            f"--nnodes {nodes}: run handles one node", hint="sgl-graph preflight maps commands of several nodes"
        )
    isolating = [t for t in command.program[1:] if re.fullmatch(r"-[A-Za-z]*[EIS][A-Za-z]*", t)]
    if isolating:
        raise ConfigError(
            f"python {isolating[0]} ignores PYTHONPATH or sitecustomize: neither checkout nor probe would be reached",
            hint=f"leave {isolating[0]} out",
        )
    if options.skip_eager and options.skip_ordinary and options.skip_instrumented:
        raise ConfigError("all launches are skipped: there is nothing to run")
    if view is not None and view.starts[0] == "no":
        raise ConfigError(f"this configuration does not start: {view.starts[1]}")
    if options.budget is not None and options.budget < 1:
        raise ConfigError(f"--budget {options.budget}: at least one request is needed")


def _traffic(options: RunOptions, view: MapView | None) -> tuple[list[Mapping[str, Any]], list[str]]:
    if options.traffic is not None:
        try:
            # A pipe or a device could be waited for without an end.
            if not stat.S_ISREG(options.traffic.stat().st_mode):
                raise ConfigError(f"--traffic {options.traffic}: it is no plain file", hint="name a JSON file")
            data = options.traffic.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"--traffic {options.traffic}: {error.strerror}", hint="leave it out, and the map's traffic is sent"
            ) from error
        return traffic_records(data, f"--traffic {options.traffic}", view)
    return (view.traffic if view else []) or list(DEFAULT_TRAFFIC), []


def _requirements(options: RunOptions, view: MapView | None) -> Requirements:
    roles = {}
    for path in view.paths if view else ():
        for variant in path.variants or (None,):
            roles[f"{path.name}/{variant}" if variant else path.name] = path.worker
        roles.setdefault(path.name, path.worker)
    digest = _map_digest(view)
    if options.expect_labels is not None:
        labels, provenance = list(dict.fromkeys(options.expect_labels)), "declared" if options.expect_labels else "none"
    else:
        labels = view.labels if view else []
        provenance = "derived" if labels else "none"
    return Requirements.model_validate(
        {"labels": labels, "provenance": provenance, "map_digest": digest, "roles": roles}
    )


def _expected_workers(command: ServingCommand, view: MapView | None) -> list[ExpectedWorkers]:
    """The processes that hold graphs: by the map where it counts them, else by the sizes in the command."""
    holders = {path.worker for path in view.paths if path.reachable != "no"} if view else set()
    found = [
        ExpectedWorkers(role=role, count=count, source=f"map: {source}")
        for role, count, source in (view.workers if view else ())
        if role in holders and (count is not None or role != GRAPH_ROLE)
    ]
    if any(expected.role == GRAPH_ROLE for expected in found):
        return found
    return [*found, ExpectedWorkers(role=GRAPH_ROLE, count=gpu_count(command), source="sizes in the command")]


def _device(command: ServingCommand, view: MapView | None, inspector: str | None) -> PlannedDevice:
    flag = command.value("--device")
    name, kind = view.device if view else (None, None)
    if flag:
        found, source = flag, "--device of the command"
    elif inspector not in (None, "cuda"):
        found, source = "emulated", f"inspector {inspector}"
    elif view is not None and isinstance(view.setting("device"), str):
        found, source = str(view.setting("device")), "map"
    elif kind or name:
        found, source = str(kind or name), "map"
    else:
        found, source = "cuda", "assumed"
    family = found.split(":", 1)[0].lower()
    emulated = inspector not in (None, "cuda") or family not in (_GPU_KINDS | _UNCHECKED_KINDS)
    return PlannedDevice(kind=family, source=source, emulated=emulated)


def _skipped(options: RunOptions) -> dict[str, str]:
    flags = {"eager": options.skip_eager, "ordinary": options.skip_ordinary, "instrumented": options.skip_instrumented}
    return {name: f"--skip-{name}" for name, skipped in flags.items() if skipped}


def _map_digest(view: MapView | None) -> str | None:
    """Digest of a map without its stats, which differ between two runs over the same source."""
    if view is None:
        return None
    return _digest({**view.body, "stats": Stats().model_dump(mode="json")})


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()


def _serving(index: Mapping[str, str]) -> dict[str, str]:
    """The modules that a map's checkout digest is taken over."""
    apart = tuple(name.replace("/", ".") for name in NOT_SERVING)
    return {name: digest for name, digest in index.items() if not f"{name}.".startswith(tuple(f"{x}." for x in apart))}
