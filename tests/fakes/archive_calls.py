"""What tests of archives share: the program, called as a user does, and archives made without a server."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from tests.fakes import archives

__all__ = ["archives", "call", "resign", "verdicts"]


def call(*arguments: object, code: int = 0, cwd: Path | None = None) -> tuple[str, str]:
    """Run the program; stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "sgl_graph.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
    )
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


def verdicts(text: str) -> dict[str, str]:
    """Values by verdict of a ledger in JSON."""
    ledger = json.loads(text)
    return {name: verdict["value"] for name, verdict in ledger["verdicts"].items()}


def resign(root: Path) -> None:
    """A manifest that fits the files as they are now, as who forges an archive would write it."""
    from sgl_graph.analyzer.records.archive import Manifest
    from sgl_graph.runtime.archive import pretty_json

    manifest = json.loads((root / "manifest.json").read_text())
    for name in manifest["files"]:
        data = (root / name).read_bytes()
        manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    sealed = Manifest.model_validate(manifest).sealed()
    (root / "manifest.json").write_bytes(pretty_json(sealed.model_dump(mode="json")))
