"""A checkout on disk: odd links do not rename what lies in it, and a file that ends its parser ends nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sgl_graph.analyzer.static import facts as f
from sgl_graph.analyzer.static.nesting import too_deep
from sgl_graph.runtime import parsers
from sgl_graph.runtime.checkout import CheckoutSources, locate
from sgl_graph.runtime.fact_store import FactStore, extractor_digest


@pytest.fixture
def package(tmp_path: Path) -> Path:
    srt = tmp_path / "sglang" / "srt"
    srt.mkdir(parents=True)
    (srt / "one.py").write_text("x = 1\n")
    return srt.parent


def paths(package: Path) -> list[str]:
    return CheckoutSources(package.parent, FactStore(None), jobs=1).paths()


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_a_link_beside_its_target_renames_nothing(package: Path, name: str) -> None:
    (package / name).symlink_to("srt")
    assert paths(package) == ["sglang/srt/one.py"]


def test_a_link_that_leads_back_ends(package: Path) -> None:
    (package / "srt" / "loop").symlink_to("..")
    assert paths(package) == ["sglang/srt/one.py"]


def test_a_linked_folder_from_elsewhere_belongs_to_the_package(package: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "two.py").write_text("y = 2\n")
    (package / "kernels").symlink_to(tmp_path / "elsewhere")
    assert paths(package) == ["sglang/kernels/two.py", "sglang/srt/one.py"]


def test_what_is_no_file_is_not_waited_for(package: Path) -> None:
    os.mkfifo(package / "srt" / "pipe.py")
    sources = CheckoutSources(package.parent, FactStore(None), jobs=1)
    assert sources.text("sglang/srt/pipe.py") == b""
    assert sources.facts("sglang/srt/pipe.py").error == "cannot be read: no plain file"


def test_the_package_may_be_named_from_inside(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(package)
    assert locate(Path()).base == package.parent.resolve()


@pytest.mark.parametrize(
    ("source", "deep"),
    [
        (b"x = " + b"(" * 250 + b"1" + b")" * 250, True),
        (b"x = " + b"(" * 250, True),
        (b"x = " + b"[(" * 90 + b"1" + b")]" * 90, False),
        (b"x = [" + b"'(', " * 500 + b"]", False),
        (b"# " + b"(" * 500 + b"\nx = (1)\n", False),
        (b"x = " + b"(1,), " * 1000, False),
    ],
)
def test_nesting_is_what_python_counts(source: bytes, deep: bool) -> None:
    assert too_deep(source) is deep


def dying(data: bytes) -> bytes:
    """A parser that a marked file ends, as native code may."""
    if b"fatal" in data:
        os._exit(9)
    return f.encode_module(f.failed(data.decode()))


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[parsers.Parsers]:
    monkeypatch.setattr(parsers, "parse", dying)
    made = parsers.Parsers(2)
    yield made
    made.close()


def test_a_file_that_ends_its_parser_is_a_record_and_the_others_are_read(pool: parsers.Parsers) -> None:
    for name in ("a", "fatal", "b", "c"):
        pool.submit(name, name.encode())
    found = {name: pool.result(name) for name in ("a", "fatal", "b", "c")}
    errors = {name: f.decode_module(encoded).error for name, (encoded, _) in found.items()}
    assert errors == {"a": "a", "b": "b", "c": "c", "fatal": "the parser's process died on it"}
    assert [name for name, (_, lasting) in found.items() if not lasting] == ["fatal"]
    pool.submit("later", b"later")
    assert f.decode_module(pool.result("later")[0]).error == "later"


def test_a_cache_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / f"facts-{extractor_digest()}.sqlite"
    path.write_bytes(b"no database " * 1000)
    for _ in range(2):
        store = FactStore(tmp_path)
        store.save([("digest", b"facts")])
        assert store.load(["digest"]) == {"digest": b"facts"}
        store.close()
