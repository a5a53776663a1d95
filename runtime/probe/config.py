"""The run's injection folder as a worker sees it: one environment variable names it, `config.json` in it says the rest."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Names the injection folder; inherited by every process of the run.
FOLDER_VARIABLE = "SGL_GRAPH_PROBE"


@dataclass(frozen=True, slots=True)
class ProbeConfig:
    """What `runtime/inject.py` wrote for this run.

    Attributes:
        folder: The injection folder (holds the probe copy, `sitecustomize.py`, `config.json`, perhaps `map.json`, later `seal`).
        receipts: Where workers write `<worker>.jsonl`.
        run: The run's identifier.
        launch: The launch's name, such as `instrumented` or `program`.
        inspector: `cuda`, or the dotted name of a module with `install(recorder) -> handle`.
        tool: Digest of the tool that injected the probe.
        poison: Whether free blocks of a graph's pool are overwritten before its replays.
        stacks: Whether allocator events carry Python stacks.
        count_only: Captures and replays are seen and labelled, and nothing is inspected (an ordinary launch that counts).
        options: Whatever else the inspector understands.
    """

    folder: Path
    receipts: Path
    run: str
    launch: str
    inspector: str = "cuda"
    tool: str | None = None
    poison: bool = False
    stacks: bool = True
    count_only: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def seal(self) -> Path:
        """The file whose appearance asks every worker to write its footer and stop recording."""
        return self.folder / "seal"


def load(folder: Path) -> ProbeConfig:
    """Read `config.json` of an injection folder.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not what `inject` writes.
    """
    raw = json.loads((folder / "config.json").read_text("utf-8"))
    if not isinstance(raw, dict) or not isinstance(raw.get("receipts"), str):
        raise ValueError(f"{folder / 'config.json'} is not a probe configuration")  # noqa: TRY004
    known = {"run", "launch", "inspector", "tool", "poison", "stacks", "count_only", "options"}
    return ProbeConfig(folder=folder, receipts=Path(raw["receipts"]), **{k: v for k, v in raw.items() if k in known})


def from_environment() -> ProbeConfig | None:
    """The configuration of the run this process belongs to, or None outside any run."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return load(Path(folder)) if folder else None
