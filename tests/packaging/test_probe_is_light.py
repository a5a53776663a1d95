"""The probe runs inside other people's workers: it needs the standard library, and at most what a worker has anyway."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sgl_graph.runtime.inject import ProbeSettings, write_injection

from tests.packaging.distribution import ROOT, run

PROBE = ROOT / "runtime" / "probe"
ALLOWED = {*sys.stdlib_module_names, "torch", "numpy", "cuda"}
MODULES = sorted(PROBE.rglob("*.py"))

IMPORT_ALL = """
import importlib, pathlib, sys
sys.path.insert(0, sys.argv[1])
package = pathlib.Path(sys.argv[1]) / "_sgl_graph_probe"
for file in sorted(package.rglob("*.py")):
    parts = file.relative_to(package.parent).with_suffix("").parts
    importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
print(sum(name.split(".")[0] == "_sgl_graph_probe" for name in sys.modules))
"""


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Every import of a module, at any depth: its line, and its top-level name or the folder a relative one means."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, (node.module or "").split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            folder = file.parents[node.level - 1]
            yield node.lineno, "" if folder.is_relative_to(PROBE) else str(folder)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PROBE)))
def test_imports(file: Path) -> None:
    """No absolute import but of what a worker has, no relative one that leaves the folder that is copied."""
    foreign = [(line, name) for line, name in imports(file) if name and name not in ALLOWED]
    assert foreign == []


def test_the_copied_folder_imports_in_a_bare_interpreter(tmp_path: Path) -> None:
    """Without any installed package: `-I` ignores the environment and `-S` leaves site-packages out."""
    injection = write_injection(tmp_path / "inject", ProbeSettings("run", "program", tmp_path / "receipts"))
    script = tmp_path / "import_all.py"
    script.write_text(IMPORT_ALL)
    imported = run([sys.executable, "-I", "-S", script, injection.folder], tmp_path)
    assert int(imported) == len(MODULES)
