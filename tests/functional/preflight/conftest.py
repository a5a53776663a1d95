"""Runs the program in this process, as the console script would."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[3]
MINISERVE = ROOT / "fixtures" / "miniserve"
COMMAND = ("python", "-m", "sglang.launch_server", "--model-path", "/models/none")


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Outcome]:
    from sgl_graph.cli.app import build
    from sgl_graph.cli.exits import guarded

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sgl-graph", *arguments])
        capsys.readouterr()
        code = guarded(build())
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A private copy of the small serving checkout."""
    target = tmp_path / "checkout"
    shutil.copytree(MINISERVE, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target
