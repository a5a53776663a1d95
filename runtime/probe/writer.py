"""Append-only, hash-chained receipt file of one worker: each line is written whole and at once, so a crash loses at most one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

_ZERO = "0" * 32
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class ReceiptWriter:
    """Writes bodies as chained lines (docs/receipts.md); not thread-safe, the recorder holds the lock."""

    def __init__(self, path: Path) -> None:
        """Create `path`, which must not exist.

        Args:
            path: The worker's receipt file; its folder is made when missing.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.lines = 0
        self._previous = _ZERO
        self._fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644
        )

    def write(self, kind: str, **members: Any) -> None:
        """Append one record; a member whose value is not JSON raises before anything is written."""
        body = _encode({"n": self.lines, "k": kind, **members})
        digest = hashlib.sha256((self._previous + body).encode("ascii")).hexdigest()[:32]
        line = f'{body[:-1]},"h":"{digest}"}}\n'.encode("ascii")
        view = memoryview(line)
        while view:
            view = view[os.write(self._fd, view) :]
        self._previous = digest
        self.lines += 1

    def close(self) -> None:
        """Close the file; later writes raise OSError."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
