"""Every program of this folder gives the verdict of its first line, with the same output with and without the probe."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_spec = importlib.util.spec_from_file_location("gpu_table", _HERE / "table.py")
assert _spec is not None and _spec.loader is not None
table = importlib.util.module_from_spec(_spec)
sys.modules["gpu_table"] = table
_spec.loader.exec_module(table)


@pytest.mark.gpu
@pytest.mark.parametrize("path", table.programs([_HERE / "programs"]), ids=lambda path: path.stem)
def test_the_verdict_is_the_expected_one(path: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    row = table.judge(path, tmp_path)
    assert row.agreed, f"expected {row.expected}, got {row.got}; {row.notes}\n{row.text}"
