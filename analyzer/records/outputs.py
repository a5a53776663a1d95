"""What one launch answered to one request set: `<launch>/<set>.outputs.json`, arrays and their digests."""

from __future__ import annotations

import hashlib
import math
from typing import Any, Literal

from pydantic import Field
from sgl_graph.analyzer.records.base import Record, canonical_json

SCHEMA = "sgl-graph.outputs/1"
#: Answers as bare arrays, before they carried digests: they can be read, and prove nothing.
LEGACY_SCHEMA = "sgl-graph.outputs/0"

#: A number, or "NaN", "Infinity", "-Infinity" (JSON has no such numbers), or null where the server gave none.
Number = float | Literal["NaN", "Infinity", "-Infinity"] | None


class RequestOutput(Record):
    """One answer: token ids, the log-probability of each, and the best alternatives at each position."""

    index: int = Field(ge=0)
    output_ids: list[int]
    logprobs: list[Number]
    #: Per position, the best tokens as [token id, log-probability]; empty when the server gave none.
    top: list[list[tuple[int, Number]]] = []
    sha256: str

    def verified(self) -> bool:
        """Whether the digest is that of the arrays as they stand."""
        return self.sha256 == answer_digest(self.output_ids, self.logprobs, self.top)


class ObservedBatches(Record):
    """Batch sizes that the server itself reported while the set ran; empty lists mean that it reported none."""

    decode: list[int] = []
    prefill: list[int] = []
    source: str = "unknown"


class OutputSet(Record):
    """Answers of one launch to one request set, with the window in which it was sent."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    launch: str
    set: str
    #: CLOCK_MONOTONIC nanoseconds: nothing else was sent between them, and the server was idle at both ends.
    began: int
    ended: int
    seconds: float
    batches: ObservedBatches = ObservedBatches()
    requests: list[RequestOutput]
    sha256: str

    model_config = {"populate_by_name": True, "serialize_by_alias": True}

    @property
    def legacy(self) -> bool:
        """Whether the answers are of the schema that had no digests."""
        return self.schema_ == LEGACY_SCHEMA

    def problems(self) -> list[str]:
        """Digests that do not hold, in words; empty when all do."""
        found = [f"request {r.index}: its arrays contradict their digest" for r in self.requests if not r.verified()]
        if self.sha256 != set_digest(self.requests):
            found.append("the answers contradict the digest of the set")
        return found


def read_output_set(body: Any) -> OutputSet:
    """Answers of any schema that this release knows; those of the legacy one are given the digests that they lack.

    Raises:
        ValueError: the body is not what its schema says, or its schema is unknown.
    """
    schema = body.get("schema") if isinstance(body, dict) else None
    if schema == LEGACY_SCHEMA:
        return _with_digests(body)
    if schema != SCHEMA:
        raise ValueError(f"schema {schema!r} is unknown; this release reads {SCHEMA} and {LEGACY_SCHEMA}")
    return OutputSet.model_validate(body)


def _with_digests(body: dict[str, Any]) -> OutputSet:
    requests = body.get("requests")
    items = [item for item in requests if isinstance(item, dict)] if isinstance(requests, list) else []
    if requests != items or "sha256" in body or any("sha256" in item for item in items):
        raise ValueError(f"{LEGACY_SCHEMA} is a list of answers without digests, and this is not")
    bare = OutputSet.model_validate({**body, "requests": [{**item, "sha256": ""} for item in items], "sha256": ""})
    answers = [request_output(r.index, r.output_ids, r.logprobs, r.top) for r in bare.requests]
    return bare.model_copy(update={"requests": answers, "sha256": set_digest(answers)})


def number(value: Any) -> Number:
    """A JSON-safe number; None for what is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return float(value)


def answer_digest(ids: list[int], logprobs: list[Number], top: list[list[tuple[int, Number]]]) -> str:
    """Digest of the arrays of one answer."""
    body = {"logprobs": logprobs, "output_ids": ids, "top": [[list(pair) for pair in row] for row in top]}
    return hashlib.sha256(canonical_json(body)).hexdigest()


def set_digest(requests: list[RequestOutput]) -> str:
    """Digest over the answers of a set, in order."""
    return hashlib.sha256(canonical_json([[r.index, r.sha256] for r in requests])).hexdigest()


def request_output(
    index: int, ids: list[int], logprobs: list[Number], top: list[list[tuple[int, Number]]]
) -> RequestOutput:
    """An answer with its digest."""
    return RequestOutput(
        index=index, output_ids=ids, logprobs=logprobs, top=top, sha256=answer_digest(ids, logprobs, top)
    )
