"""A checkout on disk: odd links do not rename what lies in it, and a file that ends its parser ends nothing else."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import psutil
import pytest
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.nesting import too_deep
from sgl_graph.runtime import checkout, parsers
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


def test_a_folder_that_cannot_be_listed_is_recorded(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = package / "srt" / "locked"
    locked.mkdir()
    (locked / "two.py").write_text("y = 2\n")
    listed = os.scandir

    def scandir(folder: str) -> Any:
        if folder == str(locked):  # permissions do not stop a superuser
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    sources = CheckoutSources(package.parent, FactStore(None))
    assert sources.paths() == ["sglang/srt/one.py"]
    assert sources.lost() == {"sglang/srt/locked": "cannot be listed: Permission denied"}


#: A parser that a marked file ends, as native code may; files of a hundred bytes count as large.
DYING = """
import os
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.runtime.parser_process import serve

def dying(data):
    if b"fatal" in data:
        os._exit(9)
    return f.encode_module(f.failed(f"{data.decode().strip()} {os.getppid()}"))

serve(dying, large=100)
"""


def own_parsers(before: set[int]) -> set[int]:
    """Children of this process that were not there before: other tests may have left theirs."""
    return {child.pid for child in psutil.Process().children()} - before


@pytest.fixture(params=[1, 2])
def pool(request: pytest.FixtureRequest) -> Iterator[parsers.Parsers]:
    made = parsers.Parsers(request.param, (sys.executable, "-c", DYING))
    yield made
    made.close()


@pytest.mark.parametrize("padding", ["", " " * 200], ids=["small", "large"])
def test_a_file_that_ends_its_parser_is_a_record_and_the_others_are_read(pool: parsers.Parsers, padding: str) -> None:
    for name in ("a", "fatal", "b", "c"):
        pool.submit(name, (name + padding).encode())
    found = {name: pool.result(name) for name in ("a", "fatal", "b", "c")}
    errors = {name: f.decode_module(encoded).error for name, (encoded, _) in found.items()}
    assert errors.pop("fatal") == "the parser's process died on it"
    assert {name: (error or "").split()[0] for name, error in errors.items()} == {"a": "a", "b": "b", "c": "c"}
    in_children = {(error or "").split()[1] for error in errors.values()} != {str(os.getpid())}
    assert in_children is bool(padding)
    assert [name for name, (_, lasting) in found.items() if not lasting] == ["fatal"]
    pool.submit("later", b"later")
    assert (f.decode_module(pool.result("later")[0]).error or "").startswith("later")


def ended(before: set[int]) -> bool:
    """Whether the parsers end by themselves within a while."""
    deadline = time.monotonic() + 20
    while own_parsers(before) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not own_parsers(before)


def test_parsers_that_rest_end_and_come_back(pool: parsers.Parsers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "_IDLE_SECONDS", 0.1)
    before = own_parsers(set())
    for name in ("first", "second"):
        pool.submit(name, name.encode())
        assert (f.decode_module(pool.result(name)[0]).error or "").startswith(name)
        assert ended(before)


def test_where_no_parser_starts_files_are_read_all_the_same() -> None:
    for command in (("/nowhere/python",), (sys.executable, "-c", "raise SystemExit(3)")):
        made = parsers.Parsers(1, command)
        made.submit("a", b"x = 1\n")
        encoded, lasting = made.result("a")
        assert f.decode_module(encoded).body and lasting
        made.close()


#: A parser that takes its time, and tells when it began and ended.
SLOW = DYING.replace(
    "def dying(data):", "import time\n\ndef dying(data):\n    began = time.monotonic()\n    time.sleep(0.05)"
)
SLOW = SLOW.replace("os.getppid()", "began} {time.monotonic()")


def span(encoded: bytes) -> tuple[float, float]:
    """When a file was parsed."""
    _, began, ended = (f.decode_module(encoded).error or "").split()
    return float(began), float(ended)


def unasked(pool: parsers.Parsers, names: list[str]) -> list[tuple[float, float]]:
    """When files were parsed that nobody waits for."""
    return [span(pool._pending[name].result()[0]) for name in names]


def overlaps(found: list[tuple[float, float]]) -> int:
    return sum(following[0] < one[1] for one, following in itertools.pairwise(sorted(found)))


def test_what_is_asked_for_is_parsed_next() -> None:
    made = parsers.Parsers(2, (sys.executable, "-c", SLOW))
    names = [f"file{number}" for number in range(20)]
    for name in names:
        made.submit(name, name.encode())
    asked, _ = span(made.result(names[-1])[0])
    assert asked < min(began for began, _ in unasked(made, names[10:-1]))
    made.close()


def test_a_core_is_left_to_the_readers_until_all_of_them_wait() -> None:
    before = own_parsers(set())
    readers = 1
    made = parsers.Parsers(2, (sys.executable, "-c", SLOW), readers=lambda: readers)
    names = [f"file{number}" for number in range(12)]
    for name in ("first", "second"):
        made.submit(name, name.encode())
    made.result("first")
    made.result("second")  # both have begun
    readers = 2
    for name in names:
        made.submit(name, name.encode())
    made.result(names[-1])  # one of two waits
    assert overlaps(unasked(made, names)) == 0
    readers = 1
    for name in names:
        made.submit(name + "again", name.encode())
    assert overlaps([span(made.result(name + "again")[0]) for name in names]) > 0
    made.close()
    assert not own_parsers(before)


def test_all_parsers_are_at_work_where_the_readers_have_a_core_of_their_own() -> None:
    made = parsers.Parsers(2, (sys.executable, "-c", SLOW), readers=lambda: 2, spare=True)
    for name in ("first", "second"):
        made.submit(name, name.encode())
    made.result("first")
    made.result("second")  # both have begun
    names = [f"file{number}" for number in range(12)]
    for name in names:
        made.submit(name, name.encode())
    made.result(names[-1])
    assert overlaps(unasked(made, names)) > 0
    made.close()


@pytest.mark.parametrize(("processors", "spare"), [(2, False), (3, True)])
def test_a_core_is_left_only_where_there_is_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processors: int, spare: bool
) -> None:
    monkeypatch.setattr(checkout, "_processors", lambda: processors)
    asked: list[tuple[int, bool]] = []
    monkeypatch.setattr(checkout, "Parsers", lambda jobs, *, readers, spare: asked.append((jobs, spare)))
    CheckoutSources(tmp_path, FactStore(None), jobs=2)
    assert asked == [(2, spare)]


def test_what_one_reader_waits_for_urgently_comes_before_what_another_waits_for() -> None:
    made = parsers.Parsers(1, (sys.executable, "-c", SLOW))
    for name in ("begun", "other", "aside", "urgent"):
        made.submit(name, name.encode())
    answers: dict[str, tuple[float, float]] = {}

    def wait(name: str, *, urgent: bool) -> None:
        answers[name] = span(made.result(name, urgent=urgent)[0])

    threads = [threading.Thread(target=wait, args=(n,), kwargs={"urgent": n == "urgent"}) for n in ("urgent", "aside")]
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    for thread in threads:
        thread.join()
    other, _ = span(made.result("other")[0])
    assert answers["urgent"][0] < answers["aside"][0] < other
    made.close()


def test_an_answer_is_there_until_it_is_forgotten(pool: parsers.Parsers) -> None:
    pool.submit("a", b"a")
    assert pool.result("a") == pool.result("a")
    assert "a" in pool
    pool.forget("a")
    assert "a" not in pool


def test_who_waits_for_a_file_that_will_not_be_parsed_any_more_is_told() -> None:
    made = parsers.Parsers(1, (sys.executable, "-c", SLOW))
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            made.result("never")
        except CancelledError as error:
            raised.append(error)

    for name in ("begun", "never"):
        made.submit(name, name.encode())
    while made.waiting > 1:  # the first one is being parsed
        time.sleep(0.01)
    waiter = threading.Thread(target=wait)
    waiter.start()
    while not made._awaited:
        time.sleep(0.01)
    assert list(made.close()) == ["begun"]
    waiter.join(10)
    assert len(raised) == 1


def test_what_was_parsed_and_not_asked_for_is_kept(pool: parsers.Parsers) -> None:
    pool.submit("a", b"a")
    pool.submit("fatal", b"fatal")
    while not all(future.done() for future in pool._pending.values()):
        time.sleep(0.01)
    assert list(pool.close()) == ["a"]


def test_a_parser_holds_only_what_it_needs() -> None:
    """Each of them is there besides the analysis."""
    code = "import sys; from sgl_graph.runtime.parser_process import parse; parse(b''); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "libcst" in loaded
    assert not {"networkx", "numpy", "pydantic", "typer", "rich", "yaml", "httpx", "psutil", "multiprocessing"} & set(
        loaded
    )


def test_a_cache_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / f"facts-{extractor_digest()}.sqlite"
    path.write_bytes(b"no database " * 1000)
    for _ in range(2):
        store = FactStore(tmp_path)
        store.save([("digest", b"facts")])
        assert store.load(["digest"]) == {"digest": b"facts"}
        store.close()
