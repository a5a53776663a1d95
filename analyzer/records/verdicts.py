"""The values of a verdict, and what the lifetime verdict hands to the ledger."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field
from sgl_graph.analyzer.records.base import Record
from sgl_graph.analyzer.records.ledger import UNKNOWN, Finding, Outside


class Verdict(StrEnum):
    """Only PASS is PASS."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    INCOMPLETE = "INCOMPLETE"
    NOT_RUN = "NOT-RUN"
    NOT_RECOMPUTED = "NOT-RECOMPUTED"


class WorkerLifetime(Record):
    """What one worker's receipts amount to."""

    worker: str
    value: Verdict
    role: str = UNKNOWN
    captures: int = Field(ge=0)
    replays: int = Field(ge=0)
    inspections: int = Field(ge=0)
    footer: str = UNKNOWN
    #: Why this worker's evidence is not whole, each located.
    incomplete: tuple[str, ...] = ()


class LifetimeResult(Record):
    """The lifetime verdict over all workers of a run."""

    value: Verdict
    reason: str
    findings: tuple[Finding, ...] = ()
    outside: tuple[Outside, ...] = ()
    workers: tuple[WorkerLifetime, ...] = ()
