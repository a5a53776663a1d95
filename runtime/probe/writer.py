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
        self._held: list[bytes] | None = None
        self._fd = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0), 0o644
        )

    def write(self, kind: str, **members: Any) -> None:
        """Append one record; a member whose value is not JSON raises before anything is written."""
        body = _encode({"n": self.lines, "k": kind, **members})
        digest = hashlib.sha256((self._previous + body).encode("ascii")).hexdigest()[:32]
        line = f'{body[:-1]},"h":"{digest}"}}\n'.encode("ascii")
        if self._held is None:
            self._put(line)
        else:
            self._held.append(line)
        self._previous = digest
        self.lines += 1

    def hold(self) -> None:
        """Keep lines back until `release`: the many small lines of one capture go to the file in one piece."""
        if self._held is None:
            self._held = []

    def release(self) -> None:
        """Write what was held back."""
        held, self._held = self._held, None
        if held:
            self._put(b"".join(held))

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]

    def abandon(self) -> None:
        """Close without writing: in a forked child the lines held back are the parent's."""
        self._held = None
        self.close()

    def close(self) -> None:
        """Close the file; later writes raise OSError."""
        self.release()
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
