"""The path map: every graph primitive of a checkout, every capture path of one configuration, what to expect of it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasChoices, Field
from sgl_graph.analyzer.records.base import Record

SCHEMA = "sgl-graph.path-map/1"

Role = Literal["capture", "replay", "pool", "dispatch", "break", "update"]
Family = Literal[
    "decode",
    "prefill-full",
    "prefill-breakable",
    "prefill-piecewise",
    "draft",
    "draft-extend",
    "verify",
    "vit",
    "metadata-glue",
    "other",
]
Reach = Literal["yes", "no", "unresolved"]
Trigger = Literal["startup", "request", "admin"]
Inspectability = Literal["lifetime-inspectable", "replay-observable-only", "partial", "unsupported", "unresolved"]
TruthValue = Literal["true", "false", "unknown"]
ConfigSource = Literal["flag", "env", "default", "model", "device", "assumption", "unresolved"]
ComponentKind = Literal["attention", "lora", "moe", "communication", "workspace"]


class Place(Record):
    """A line of the checkout; `file` is relative to the folder that holds the serving package."""

    file: str
    line: int


class CodeRef(Place):
    """A function of the checkout: `qualname` is `package.module:Class.method`."""

    qualname: str


class Reason(Place):
    """One sentence and the line that proves it; `code` is a rule that `explain` knows."""

    text: str
    code: str | None = None


class CheckoutIdentity(Record):
    """Which source was read; what cannot be known is None."""

    root: str
    layout: str
    commit: str | None = None
    tree: str | None = None
    dirty: bool | None = None
    sglang_version: str | None = None
    #: Digest over the files of the checkout that the analysis read.
    digest_: str = Field(serialization_alias="digest", validation_alias=AliasChoices("digest", "digest_"))

    model_config = {"populate_by_name": True, "serialize_by_alias": True}


class DeviceFacts(Record):
    """The device that was assumed; `name` None: no device fact is known."""

    name: str | None
    source: str
    kind: str | None = None
    capability: str | None = None
    memory_gb: float | None = None


class Starts(Record):
    """Whether the server starts with this command; where it does not, the line that rejects it."""

    value: Literal["yes", "no", "unresolved"] = "yes"
    why: str = ""
    file: str | None = None
    line: int | None = None


class ConfigValue(Record):
    """One resolved setting and where its value comes from."""

    name: str
    value: Any
    source: ConfigSource
    automatic: bool = False
    predicted: Any = None
    confirmed_by: Literal["server"] | None = None
    decided_by: CodeRef | None = None
    #: Facts that the value rests on: `flag:NAME`, `env:NAME`, `device`, `model`, `package:NAME`.
    depends: tuple[str, ...] = ()


class Injection(Record):
    """Whether an instrument injected through the environment reaches the process."""

    reaches: Reach
    why: str
    file: str | None = None
    line: int | None = None


class WorkerEntry(Record):
    """One kind of process that may hold graphs; `count` None: nothing in the source says how many."""

    role: str
    count: int | None
    source: str
    injection: Injection
    entry: CodeRef | None = None


class Gate(Place):
    """A condition on the way to a site, and whether this configuration satisfies it."""

    text: str
    value: TruthValue
    depends: tuple[str, ...] = ()


class Site(Place):
    """One device-graph primitive, reachable or not."""

    id: str
    qualname: str
    role: Role
    api: str
    family: Family
    also_families: tuple[Family, ...] = ()
    gates: tuple[Gate, ...] = ()
    reachable: Reach
    trigger: Trigger | None = None
    why: str
    inspectability: Inspectability
    reason: str
    reasons: tuple[Reason, ...] = ()


class Component(Place):
    """What a capture path runs or points into besides the model's own kernels."""

    kind: ComponentKind
    class_: str = Field(serialization_alias="class", validation_alias=AliasChoices("class", "class_"))
    memory: str
    reachable: Reach = "unresolved"
    #: The call in the path's captured code that comes to it first.
    reached_at: CodeRef | None = None

    model_config = {"populate_by_name": True, "serialize_by_alias": True}


class Label(Record):
    """How one captured graph of a path is told from its siblings."""

    key: str
    expression: str
    variants: tuple[str | None, ...] = (None,)
    #: Those that only the server decides on: which of them are captured, or whether any is.
    variants_open: tuple[str, ...] = ()
    buckets: tuple[int, ...] | None = None
    buckets_from: CodeRef | None = None
    buckets_effective: tuple[int, ...] | None = None
    clamped_by: str | None = None
    stored_at: CodeRef | None = None
    enumerable: bool = True
    #: Batches, from and to, that run eagerly below a captured size, and the statement that leaves them.
    left_to_eager: tuple[tuple[int, int], ...] = ()
    left_by: CodeRef | None = None


class PathEntry(Record):
    """One capture path: (family, worker, runner, backend)."""

    id: str
    family: Family
    worker: str
    runner: str
    backend: str
    #: Spelling of the path in labels: `target:decode`.
    name: str
    sites: tuple[str, ...]
    components: tuple[Component, ...] = ()
    label: Label
    chain: tuple[CodeRef, ...] = ()
    nested_in: str | None = None
    independent: bool = False
    depends_on_unconfirmed: tuple[str, ...] = ()
    reachable: Reach
    trigger: Trigger | None = None
    inspectability: Inspectability
    reasons: tuple[Reason, ...] = ()


class Unresolved(Record):
    """Something that source and configuration leave open, who decides it, and how to settle it."""

    what: str
    predicted: Any = None
    decided_by: CodeRef | None = None
    settle_with: str


class Gap(Record):
    """What cannot be proven, or will not be seen; material ones stop a run before its launch."""

    severity: Literal["material", "note"]
    text: str
    sites: tuple[str, ...] = ()
    code: str | None = None


class TrafficItem(Record):
    """One request set that replays the labels it names."""

    name: str
    labels: tuple[str, ...]
    concurrency: int | None
    input_len: int | None
    output_len: int | None
    variant: str | None = None


class Stats(Record):
    """What the analysis cost: the only part of a map that differs between two runs."""

    modules_parsed: int = 0
    modules_cached: int = 0
    functions_reached: int = 0
    functions_total: int = 0
    seconds: float = 0.0
    peak_rss_mb: float = 0.0


class PathMap(Record):
    """The whole map, `"schema": "sgl-graph.path-map/1"`."""

    schema_: Literal["sgl-graph.path-map/1"] = Field(default="sgl-graph.path-map/1", alias="schema")
    checkout: CheckoutIdentity
    command: tuple[str, ...]
    env: dict[str, str] = {}
    device: DeviceFacts
    starts: Starts = Starts()
    config: tuple[ConfigValue, ...] = ()
    workers: tuple[WorkerEntry, ...] = ()
    sites: tuple[Site, ...] = ()
    paths: tuple[PathEntry, ...] = ()
    unresolved: tuple[Unresolved, ...] = ()
    gaps: tuple[Gap, ...] = ()
    labels: tuple[str, ...] = ()
    traffic: tuple[TrafficItem, ...] = ()
    #: Files of the checkout that could not be read, with the reason.
    problems: dict[str, str] = {}
    stats: Stats = Stats()

    model_config = {"populate_by_name": True, "serialize_by_alias": True}

    def content_digest(self) -> str:
        """Digest of the map without `stats`: two runs over the same source and command give the same."""
        return self.model_copy(update={"stats": Stats()}).digest()
