"""What ships: the wheel's content, and that an installation of it works without the repository."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.packaging.distribution import Environment, copy_tree, room_files, run

# One worker of a parallel run builds once for all of them.
pytestmark = pytest.mark.xdist_group("wheel")

SPAWNED = """
import multiprocessing, pathlib, sys
import sgl_graph.analyzer, sgl_graph.cli, sgl_graph.runtime

def where(queue):
    import sgl_graph.runtime
    queue.put(sgl_graph.runtime.__file__)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=where, args=(queue,))
    child.start()
    seen = queue.get(timeout=60)
    child.join()
    assert seen == sgl_graph.runtime.__file__, seen
    print(pathlib.Path(seen).resolve().parents[1])
"""


def commands(*program: str | Path, cwd: Path) -> str:
    """The commands that a program's `--help` lists."""
    listed = run([*program, "--help"], cwd).partition("Commands:")[2]
    assert listed
    return listed


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tree."""
    return copy_tree(tmp_path_factory.mktemp("source") / "sgl-graph")


@pytest.fixture(scope="module")
def built(tree: Path) -> Path:
    """The folder with the source distribution and the wheel that was built from it."""
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist"], tree)
    return tree / "dist"


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    (file,) = built.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel installed."""
    place = tmp_path_factory.mktemp("installed")
    environment = Environment(place / "venv")
    environment.install(wheel, cwd=place)
    return environment


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if not name.endswith("/")]
    packaged = {name.removeprefix("sgl_graph/") for name in names if name.startswith("sgl_graph/")}
    assert packaged == room_files()
    rest = {name.split("/")[0] for name in names} - {"sgl_graph"}
    assert all(name.endswith(".dist-info") for name in rest)
    assert len(rest) == 1


def test_the_wheel_carries_its_licence_and_runs_on_any_host(wheel: Path) -> None:
    assert wheel.name.endswith("-py3-none-any.whl")
    assert any(name.endswith("/licenses/LICENSE") for name in zipfile.ZipFile(wheel).namelist())


def test_the_source_distribution_is_whole(built: Path) -> None:
    """Tests, fixtures and documentation travel with the source, byte code does not."""
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    for needed in ("tests/conftest.py", "fixtures/sglang_release.py", "Makefile", "CHANGELOG.md", "docs/receipts.md"):
        assert needed in names
    assert not [name for name in names if name.endswith(".pyc") or "__pycache__" in name]


def test_an_installed_wheel_works(installed: Environment, tmp_path: Path) -> None:
    """The command answers, and so does the module, from a folder that is not the repository."""
    here = commands(sys.executable, "-m", "sgl_graph.cli", cwd=tmp_path)
    assert commands(installed.bin / "sgl-graph", cwd=tmp_path) == here
    assert commands(installed.python, "-m", "sgl_graph.cli", cwd=tmp_path) == here
    assert run([installed.bin / "sgl-graph", "--version"], tmp_path).startswith("sgl-graph ")


def test_spawned_children_of_an_installed_wheel_resolve_it(installed: Environment, tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    assert run([installed.python, script], tmp_path).strip() == str((installed.site / "sgl_graph").resolve())


def test_an_editable_install_works_and_sees_new_modules(tree: Path, tmp_path: Path) -> None:
    """Children resolve it, new modules need no new install, and no bare `analyzer`, `runtime` or `cli` leaks."""
    environment = Environment(tmp_path / "venv")
    environment.install("--editable", tree, cwd=tmp_path)
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    assert run([environment.python, script], tmp_path).strip() == str(tree.resolve())
    here = commands(sys.executable, "-m", "sgl_graph.cli", cwd=tmp_path)
    assert commands(environment.bin / "sgl-graph", cwd=tmp_path) == here

    new = tree / "analyzer" / "records" / "made_by_a_test.py"
    new.write_text("HERE = 1\n")
    try:
        run([environment.python, "-c", "from sgl_graph.analyzer.records.made_by_a_test import HERE"], tmp_path)
    finally:
        new.unlink()
    leaks = "import importlib.util as u; assert not [n for n in ('analyzer', 'runtime', 'cli') if u.find_spec(n)]"
    run([environment.python, "-c", leaks], tmp_path)
