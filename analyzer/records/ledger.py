"""The ledger: three verdicts that never borrow from one another, and what each rests on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from sgl_graph.analyzer.records.base import Record

SCHEMA = "sgl-graph.ledger/1"
UNKNOWN = "unknown"

Value = Literal["PASS", "FAIL", "INCONCLUSIVE", "INCOMPLETE", "NOT-RUN", "NOT-RECOMPUTED"]
Status = Literal["recorded", "newly recomputed", "rejected"]
WorkerSource = Literal["matches", "differs", "unknown"]
Severity = Literal["definite", "hazard", "note"]
AgreementStatus = Literal["newly recomputed", "historical only", "rejected", "unavailable"]
ControlStatus = Literal["applied", "unusable", "not run"]

#: These sentences end every report.
BOUNDARIES = (
    "A PASS holds only for the recorded configuration and the traffic that was sent.",
    "INCONCLUSIVE, INCOMPLETE, NOT-RUN and NOT-RECOMPUTED are not PASS and never become one.",
    "The control (eager under another batch composition) is a diagnostic heuristic, not proof of numerical correctness.",
    (
        "The lifetime verdict does not reach device-side pointer tables, memory outside the PyTorch caching allocator, "
        "metadata that stays allocated but is no longer refreshed, or traffic that was not sent."
    ),
    (
        "A successful exit is not evidence that every verdict passed; only the ledger is, and `--recompute` exits 0 "
        "whatever its verdicts."
    ),
    (
        "This tool changes no dependency, downloads no model, acquires or releases no machine, publishes nothing, "
        "starts no CI, and never runs more than the confirmed plan."
    ),
)


class Identity(Record):
    """By which tool, from which evidence, of which worker source a verdict was reached."""

    status: Status = "recorded"
    tool_digest: str = UNKNOWN
    evidence_digest: str = UNKNOWN
    worker_source: WorkerSource = "unknown"

    def text(self) -> str:
        """As the report shows it, in one parenthesis."""
        tool, evidence = self.tool_digest[:12], self.evidence_digest[:12]
        return f"{self.status}; tool {tool}, evidence {evidence}, worker source {self.worker_source}"


class Finding(Record):
    """One thing found; every absent member is `unknown`."""

    code: str
    severity: Severity
    label: str = UNKNOWN
    worker: str = UNKNOWN
    kernel: str = UNKNOWN
    parameter: str | int = UNKNOWN
    block: str | dict[str, Any] = UNKNOWN
    allocated_at: str | list[str] = UNKNOWN
    freed_at: str | list[str] = UNKNOWN
    owner_now: str | list[str] = UNKNOWN
    replay_index: int | str = UNKNOWN
    text: str = ""
    next_step: str = ""


class LifetimeVerdict(Record):
    """Whether every replay found the memory that its capture saw."""

    value: Value
    identity: Identity = Identity()
    reason: str
    evidence: dict[str, Any] = {}


class Control(Record):
    """Eager under another batch composition: a heuristic."""

    status: ControlStatus = "not run"
    reason: str = ""


class NumericalVerdict(Record):
    """Whether the ordinary server answered as the eager one did."""

    value: Value
    kind: str
    #: `none` where nothing was compared, `incomplete` where something lacked, `rejected` where it no longer verifies.
    evidence: Literal["verified", "unverified-legacy", "none", "incomplete", "rejected"] = "verified"
    reason: str
    control: Control = Control()
    #: {set, request, position, reference, observed, reference_top, observed_top} of the first difference.
    first_difference: dict[str, Any] | None = None
    differences: int = 0


class CoverageVerdict(Record):
    """Whether each required label was replayed, on every worker of its role, by the traffic of the plan."""

    value: Value
    identity: Identity = Identity()
    reason: str
    provenance: str = "none"
    required: list[str] = []
    replayed: list[str] = []
    captured_not_replayed: list[str] = []
    #: Required labels without a proven replay, each with what is known of why.
    missing: dict[str, str] = {}


class Verdicts(Record):
    """The three, apart."""

    lifetime: LifetimeVerdict
    numerical: NumericalVerdict
    coverage: CoverageVerdict


class Agreement(Record):
    """Instrumented against ordinary: did watching change the answers? Not a verdict."""

    status: AgreementStatus
    value: Literal["agrees", "differs", "unknown"] = "unknown"
    reason: str = ""


class SetWindow(Record):
    """When a request set ran, in CLOCK_MONOTONIC nanoseconds: nothing else was sent, and the server was idle at both ends."""

    set: str
    began: int
    ended: int


class LaunchOutcome(Record):
    """What became of one launch."""

    state: Literal["ran", "skipped", "failed"]
    reason: str = ""
    seconds_to_health: float | None = None
    captures: int | str = UNKNOWN
    windows: list[SetWindow] = []
    #: How the server refused log-probabilities, where it did; its sets were sent again, or at once, without.
    without_logprobs: str | None = None


class LedgerWorker(Record):
    """One process that wrote receipts."""

    id: str
    role: str = UNKNOWN
    source: dict[str, Any] | str = UNKNOWN
    captures: int | str = UNKNOWN
    replays: int | str = UNKNOWN
    inspections: int | str = UNKNOWN
    footer: str = UNKNOWN
    rank: dict[str, Any] | str = UNKNOWN
    #: Raw labels replayed in the windows of the request sets, with counts.
    replayed: dict[str, int] = {}


class Outside(Record):
    """Memory that a graph referenced and no caching allocator owned: listed, never judged."""

    kind: str
    label: str = UNKNOWN
    kernel: str = UNKNOWN
    count: int = 0
    worker: str = UNKNOWN


class Drift(Record):
    """Map and receipts say different things; moves no verdict."""

    kind: str
    subject: str
    predicted: str = UNKNOWN
    observed: str = UNKNOWN
    text: str = ""


class Configuration(Record):
    """What was run."""

    command: str = UNKNOWN
    env: dict[str, str] = {}
    gpus: list[str] | str = UNKNOWN
    checkout: dict[str, Any] | str = UNKNOWN
    tool_digest: str = UNKNOWN
    device: str = UNKNOWN
    identities: dict[str, Any] = {}


def _execution_path(value: dict[str, Any]) -> dict[str, Any]:
    """The members that reports walk are lists; other releases may have added more."""
    _lists(value, "dispatch", dict)
    for name in ("unexecuted", "unverified", "refuted"):
        _lists(value, name, str)
    return value


def _path_map(value: dict[str, Any]) -> dict[str, Any]:
    for name in ("paths", "other"):
        _lists(value, name, dict)
        for row in value.get(name) or []:
            for cell in ("captured", "replayed"):
                _lists(row, cell, str)
    return value


def _overhead(value: dict[str, Any]) -> dict[str, Any]:
    if value and not {"instrumented_tokens_per_second", "ordinary_tokens_per_second", "ratio", "tokens"} <= set(value):
        raise ValueError("overhead lacks a member")
    return value


def _lists(value: dict[str, Any], name: str, of: type) -> None:
    items = value.get(name)
    if items is not None and not (isinstance(items, list) and all(isinstance(item, of) for item in items)):
        raise ValueError(f"{name} is no list of {of.__name__}")


class Ledger(Record):
    """`ledger.json`."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    job: str
    run_id: str = UNKNOWN
    run_dir: str = UNKNOWN
    read_file: str = UNKNOWN
    configuration: Configuration = Configuration()
    launches: dict[str, LaunchOutcome] = {}
    verdicts: Verdicts
    agreement: Agreement = Agreement(status="unavailable")
    provenance: str = UNKNOWN
    workers: list[LedgerWorker] = []
    findings: list[Finding] = []
    outside: list[Outside] = []
    drift: list[Drift] = []
    execution_path: Annotated[dict[str, Any], AfterValidator(_execution_path)] = {}
    path_map: Annotated[dict[str, Any], AfterValidator(_path_map)] = {}
    overhead: Annotated[dict[str, Any], AfterValidator(_overhead)] = {}
    limitations: list[str] = []
    boundaries: list[str] = list(BOUNDARIES)

    model_config = {"populate_by_name": True, "serialize_by_alias": True}
