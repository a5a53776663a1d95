"""The plan of a run: everything that will be launched and sent, hashed before the first launch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from sgl_graph.analyzer.records.base import Record

SCHEMA = "sgl-graph.plan/1"

Provenance = Literal["declared", "derived", "none"]
NumericalKind = Literal["token-ids", "logprobs", "bitwise"]


class Tolerance(Record):
    """How answers are compared; fixed before anything is launched."""

    kind: NumericalKind = "token-ids"
    atol: float = 0.0
    rtol: float = 0.0

    def text(self) -> str:
        """As the report names it."""
        return f"logprobs(atol={self.atol:g}, rtol={self.rtol:g})" if self.kind == "logprobs" else self.kind


class PlannedRequest(Record):
    """One request by token ids; greedy, exactly `output_len` tokens."""

    input_ids: list[int]
    output_len: int = Field(ge=1)
    lora: str | None = None


class RequestSet(Record):
    """Requests that are sent together, so that their batch forms; the next set waits until the server is idle."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._~-]{0,79}$")
    #: What the set is meant to replay, as `runner:family/variant@size` or a requirement without a size.
    labels: list[str] = []
    variant: str | None = None
    #: together = one HTTP call for all, so that one batch forms; single = one after the other.
    send: Literal["together", "single"] = "together"
    requests: list[PlannedRequest]
    #: Whether log-probabilities are asked for; some graphs cannot run for requests that want them.
    logprobs: bool = True
    #: main = every launch; control = the eager server again, other batch sizes; retry = sent only for a missed label.
    purpose: Literal["main", "control", "retry"] = "main"
    of: str | None = None


class PlannedLaunch(Record):
    """One server start: its whole command and what is added to the environment."""

    name: Literal["eager", "eager-repeat", "ordinary", "instrumented", "program"]
    argv: list[str]
    #: Variables set for the server beside those inherited; the user's own --env included.
    env: dict[str, str]
    sets: list[str]
    probe: Literal["none", "count", "full"] = "none"
    why: str = ""


class ExpectedWorkers(Record):
    """How many workers of a role must have written receipts; count None: nothing says how many."""

    role: str
    count: int | None = None
    source: str = "unknown"


class Requirements(Record):
    """The labels that coverage is judged by; this declaration is the only one used later."""

    labels: list[str] = []
    provenance: Provenance = "none"
    map_digest: str | None = None
    #: The role of the workers that must replay a label, where the map names it; else the scheduler's.
    roles: dict[str, str] = {}


class PlannedDevice(Record):
    """Where the server computes, and how that is known; an emulated device needs no GPU check."""

    kind: str
    source: str
    indices: list[str] = []
    emulated: bool = False


class Plan(Record):
    """`plan.json`."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    run_id: str
    mode: Literal["serving", "program"] = "serving"
    command: list[str]
    env: dict[str, str] = {}
    checkout: dict[str, Any] = {}
    device: PlannedDevice
    launches: list[PlannedLaunch]
    skipped: dict[str, str] = {}
    request_sets: list[RequestSet] = []
    requirements: Requirements = Requirements()
    workers: list[ExpectedWorkers] = []
    tolerance: Tolerance = Tolerance()
    control: bool = False
    repeat_reference: bool = False
    poison: bool = False
    budget: int | None = None
    vocab_size: int | None = None
    map_digest: str | None = None
    gaps: list[str] = []
    gaps_accepted: bool = False
    notes: list[str] = []
    tool_digest: str

    model_config = {"populate_by_name": True, "serialize_by_alias": True}

    def set_named(self, name: str) -> RequestSet:
        """The request set of that name."""
        return next(s for s in self.request_sets if s.name == name)
