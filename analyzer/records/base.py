"""Base of all records: frozen, closed, with canonical bytes and a digest."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class Record(BaseModel):
    """A frozen record whose JSON form is canonical (sorted keys, no spaces, UTF-8)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def canonical(self) -> bytes:
        """Canonical JSON bytes: what digests are taken over."""
        return canonical_json(self.model_dump(mode="json"))

    def digest(self) -> str:
        """Hex sha256 of the canonical bytes."""
        return hashlib.sha256(self.canonical()).hexdigest()


def first_problem(error: Exception) -> str:
    """What is wrong in one line: of a record that does not validate its first member, of anything else its own words."""
    if not isinstance(error, ValidationError):
        return str(error).replace("\n", " ")[:200]
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    text = str(first["msg"]).removeprefix("Value error, ").replace("\n", " ")
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {text}"[:200] + more if where else f"{text}"[:200] + more


def canonical_json(value: Any) -> bytes:
    """Canonical JSON bytes of a plain value; raises ValueError for NaN and infinities."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
