"""Real SGLang releases: each is mapped, and no constructor of a device graph in it is missed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sgl_graph.analyzer.records.pathmap import PathMap

from fixtures.sglang_models import LLAMA
from fixtures.sglang_release import RELEASES
from tests.releases.mapped import mapped

#: Classes of device libraries whose instances are graphs; looked for in the syntax, independently of the analyser.
GRAPH_CLASSES = {"CUDAGraph", "NPUGraph", "XPUGraph"}
#: Mapped by every `make test`; the others by `make test-releases`.
ALWAYS = {"0.5.17", "0.5.23"}

Mapped = tuple[Path, PathMap]


def _parameter(version: str) -> object:
    marks = [pytest.mark.xdist_group(f"release-{version}"), pytest.mark.timeout(900)]
    return pytest.param(version, marks=[*marks, *([] if version in ALWAYS else [pytest.mark.releases])])


@pytest.fixture(scope="module", params=[_parameter(version) for version in RELEASES])
def release(
    request: pytest.FixtureRequest, sglang_source: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapped:
    """A release's folder, and its map under a plain Llama command."""
    folder = sglang_source(request.param)
    return folder, mapped(folder, tmp_path_factory.mktemp("map"), device="h200", model=LLAMA, command="")


def constructors(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Every call in `sglang/srt` of a class that is called as a graph class is: file, first and last line."""
    for file in sorted((folder / "sglang" / "srt").rglob("*.py")):
        source = file.read_bytes()
        if any(name.encode() in source for name in GRAPH_CLASSES):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Call) and _last_name(node.func) in GRAPH_CLASSES:
                    yield str(file.relative_to(folder)), node.lineno, node.end_lineno or node.lineno


def test_no_graph_constructor_is_missed(release: Mapped) -> None:
    folder, path_map = release
    made = list(constructors(folder))
    assert made
    captures = [(site.file, site.line) for site in path_map.sites if site.role == "capture"]
    missed = [
        (file, first) for file, first, last in made if not any(f == file and first <= n <= last for f, n in captures)
    ]
    assert missed == []


def test_a_plain_llama_starts_and_captures_its_decode_graphs(release: Mapped) -> None:
    """Its decode path is reachable, and its chain leads by resolved calls from the worker's entry to a capture of the map."""
    _, path_map = release
    assert path_map.starts.value != "no", path_map.starts.why
    decode = [path for path in path_map.paths if path.family == "decode" and path.reachable == "yes"]
    assert decode
    for path in decode:
        captures = {site.qualname for site in path_map.sites if site.id in path.sites and site.role == "capture"}
        assert captures
        assert path.chain[0].qualname.endswith(":run_scheduler_process")
        assert path.chain[-1].qualname in captures


def test_every_place_of_the_map_exists(release: Mapped) -> None:
    """Each file and line that the map cites is in the release."""
    folder, path_map = release
    cited = {(site.file, site.line) for site in path_map.sites}
    cited |= {(step.file, step.line) for path in path_map.paths for step in path.chain}
    cited |= {(reason.file, reason.line) for path in path_map.paths for reason in path.reasons}
    lengths = {file: len((folder / file).read_bytes().splitlines()) for file, _ in cited}
    assert [(file, line) for file, line in sorted(cited) if not 1 <= line <= lengths[file]] == []


def _last_name(called: ast.expr) -> str | None:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else None
