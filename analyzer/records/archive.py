"""The manifest of an archive: identities and the digest of every file, written last."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Literal

from pydantic import Field
from sgl_graph.analyzer.records.base import Record

SCHEMA = "sgl-graph.manifest/1"
MANIFEST, PLAN, MAP, OBSERVED_MAP = "manifest.json", "plan.json", "map.json", "map.observed.json"
LEDGER, REPORT, RECEIPTS = "ledger.json", "report.md", "receipts"
#: What an export says of itself: what it left out, and what was damaged before it.
EXPORT = "export.json"

_UNSAFE = re.compile(r"(^/|(^|/)\.\.?(/|$)|\\|//|\x00|/$|^$)")


def is_safe_name(name: str) -> bool:
    """Whether a file name of a manifest stays inside the folder, in one spelling only."""
    return _UNSAFE.search(name) is None


class FileEntry(Record):
    """One file as it was when the manifest was written."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0)


class Manifest(Record):
    """`manifest.json`: its own sha256, kept elsewhere, binds the whole archive."""

    schema_: str = Field(default=SCHEMA, alias="schema")
    run_id: str
    #: partial = the run was interrupted or a step failed; what is there is still what happened.
    state: Literal["complete", "partial"]
    reason: str = ""
    identities: dict[str, Any] = {}
    plan_digest: str | None = None
    files: dict[str, FileEntry]
    #: sha256 over everything above: an edit by accident shows even where no digest was kept elsewhere.
    checksum: str = ""

    def sealed(self) -> Manifest:
        """This manifest with its checksum."""
        return self.model_copy(update={"checksum": self.expected_checksum()})

    def expected_checksum(self) -> str:
        """What the checksum must be."""
        return hashlib.sha256(self.model_copy(update={"checksum": ""}).canonical()).hexdigest()

    model_config = {"populate_by_name": True, "serialize_by_alias": True}
