"""Maps of a release for one launch, made as a user makes them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from sgl_graph.analyzer.records.pathmap import PathMap

from fixtures.sglang_models import EAGLE3, MODELS


def mapped(
    checkout: Path, place: Path, *, device: str, model: str, command: str, environment: Iterable[str] = ()
) -> PathMap:
    """The map of a serving command, in which `{draft}` stands for a folder with a draft model; `place` takes what it needs."""
    draft, report = place / "draft", place / "map.json"
    draft.mkdir()
    (draft / "config.json").write_text(json.dumps(MODELS[EAGLE3]))
    (place / "model.json").write_text(json.dumps(MODELS[model]))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sgl_graph.cli", "preflight", "--checkout", str(checkout), "--device", device),
            *("--model-config", str(place / "model.json"), "--format", "json", "-o", str(report)),
            *(word for pair in environment for word in ("--env", pair)),
            *("--", "python", "-m", "sglang.launch_server", "--model-path", "served/model"),
            *command.format(draft=draft).split(),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return PathMap.model_validate_json(report.read_bytes())
