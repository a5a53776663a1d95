"""What the user asked of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.records.plan import Tolerance
from sgl_graph.analyzer.serving_command import ServingCommand


@dataclass(frozen=True)
class RunOptions:
    """Options of `sgl-graph run`, parsed."""

    out: Path
    command: ServingCommand
    checkout: Path | None = None
    map_file: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    expect_labels: tuple[str, ...] | None = None
    traffic: Path | None = None
    budget: int | None = None
    tolerance: Tolerance = field(default_factory=Tolerance)
    skip_eager: bool = False
    skip_ordinary: bool = False
    skip_instrumented: bool = False
    repeat_reference: bool = False
    control: bool = False
    poison: bool = False
    accept_gaps: bool = False
    allow_busy: bool = False
    start_timeout: float = 900.0
    request_timeout: float = 300.0
    stop_timeout: float = 20.0
    #: Seconds that workers have to close their receipts once asked.
    footer_wait: float = 30.0
    #: Seconds without traffic at both ends of a set: longer than the probe keeps a run of replays open.
    settle: float = 0.8
    #: The same in launches whose replays nobody has to tell apart.
    settle_unwatched: float = 0.0


def parse_tolerance(text: str) -> Tolerance:
    """`token-ids`, `bitwise` or `logprobs:ATOL,RTOL`.

    Raises:
        ConfigError: It is none of them.
    """
    kind, _, bounds = text.partition(":")
    if kind in ("token-ids", "bitwise") and not bounds:
        return Tolerance.model_validate({"kind": kind})
    if kind == "logprobs":
        try:
            atol, rtol = (float(part) for part in (bounds or "1e-3,1e-3").split(","))
        except ValueError:
            atol = rtol = -1.0
        if 0 <= atol < float("inf") and 0 <= rtol < float("inf"):
            return Tolerance(kind="logprobs", atol=atol, rtol=rtol)
    raise ConfigError(f"--numerical {text}: unknown", hint="token-ids, bitwise, or logprobs:ATOL,RTOL")
