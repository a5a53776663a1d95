"""Of the threads of one analysis one runs at a time, and another goes on while it waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from sgl_graph.analyzer.static.checkout.project import Module, Project
from sgl_graph.runtime.checkout import CheckoutSources
from sgl_graph.runtime.fact_store import FactStore
from sgl_graph.runtime.parser_process import parse
from sgl_graph.runtime.turns import Abandoned, Turns


def test_what_runs_aside_waits_for_its_turn_and_gives_its_result() -> None:
    turns, order = Turns(), []
    result = turns.begin(lambda: order.append("aside") or len(order))  # type: ignore[func-returns-value]
    order.append("owner")
    assert turns.running == 2
    assert result() == 2
    assert order == ["owner", "aside"]


def test_two_threads_take_turns_where_they_wait() -> None:
    turns, order = Turns(), []
    files = {name: threading.Event() for name in "abcd"}

    def read(name: str) -> None:
        order.append(f"wants {name}")
        with turns.waiting():
            assert files[name].wait(10)
        order.append(f"has {name}")

    result = turns.begin(lambda: (read("a"), read("b"), files["d"].set()))
    for name in "ab":
        files[name].set()
    files["c"].set()
    read("c")
    read("d")
    result()
    assert [step for step in order if step[-1] in "ab"] == ["wants a", "has a", "wants b", "has b"]
    assert [step for step in order if step[-1] in "cd"] == ["wants c", "has c", "wants d", "has d"]
    assert order.index("wants c") == 0
    assert order.index("has b") < order.index("has d")


def test_nobody_is_interrupted_between_two_waits() -> None:
    turns, inside = Turns(), []

    def work(steps: int) -> int:
        for _ in range(steps):
            inside.append(1)
            assert len(inside) == 1
            inside.pop()
            with turns.waiting():
                pass
        return steps

    results = [turns.begin(lambda: work(200)) for _ in range(3)]
    assert work(200) == 200
    assert [result() for result in results] == [200, 200, 200]


def test_what_it_raises_is_raised_where_the_result_is_wanted() -> None:
    turns = Turns()

    def work() -> None:
        raise ValueError("no such name")

    result = turns.begin(work)
    with pytest.raises(ValueError, match="no such name"):
        result()
    assert turns.running == 1


def test_abandoned_work_ends_where_it_waits() -> None:
    turns, waits, release = Turns(), threading.Event(), threading.Event()

    def work() -> None:
        with turns.waiting():
            waits.set()
            release.wait(10)
        raise AssertionError("it goes on although nobody wants it")

    begun = turns.begin(work)
    with turns.waiting():
        assert waits.wait(10)
    never_begun = turns.begin(lambda: "done")  # waits for its turn, which it never gets
    release.set()
    turns.abandon()
    assert turns.running == 1
    for result in (begun, never_begun):
        with pytest.raises(Abandoned):
            result()


class Gated:
    """Parsers that answer when they are let to, and remember what was given to them and in which order it was wanted."""

    def __init__(self) -> None:
        self.given: list[str] = []
        self.wanted: list[tuple[str, bool]] = []
        self._files: dict[str, bytes] = {}
        self.gates: dict[str, threading.Event] = {}

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def submit(self, path: str, data: bytes) -> None:
        self.given.append(path)
        self._files[path] = data
        self.gates.setdefault(path, threading.Event())

    def result(self, path: str, *, urgent: bool) -> tuple[bytes, bool]:
        self.wanted.append((path, urgent))
        data = self._files[path]
        assert self.gates[path].wait(10)
        return parse(data), True

    def forget(self, path: str) -> None:
        self._files.pop(path, None)

    def close(self) -> dict[str, bytes]:
        return {}


@pytest.fixture
def sources(tmp_path: Path) -> CheckoutSources:
    (tmp_path / "sglang").mkdir()
    for name in ("one", "two"):
        (tmp_path / "sglang" / f"{name}.py").write_text(f"name = '{name}'\n")
    made = CheckoutSources(tmp_path, FactStore(tmp_path / "cache"), jobs=2)
    made._parsers = Gated()  # type: ignore[assignment]
    return made


def opened(sources: CheckoutSources, *paths: str) -> Callable[[], None]:
    gates = sources._parsers.gates  # type: ignore[attr-defined]
    return lambda: [gates.setdefault(f"sglang/{path}.py", threading.Event()).set() for path in paths] and None


def test_a_file_that_both_threads_want_is_parsed_once_and_is_one_module(sources: CheckoutSources) -> None:
    project = Project(sources)
    found: list[Module | None] = []
    result = sources.turns.begin(lambda: found.append(project.module("sglang.one")))
    release = opened(sources, "one")
    threading.Timer(0.2, release).start()
    found.append(project.module("sglang.one"))
    result()
    assert found[0] is not None and found[0] is found[1]
    assert sources._parsers.given == ["sglang/one.py"]  # type: ignore[attr-defined]
    assert sources.reading.parsed == 1


def test_one_thread_reads_a_file_while_the_other_waits(sources: CheckoutSources) -> None:
    project = Project(sources)
    release = opened(sources, "one")
    opened(sources, "two")()

    def aside() -> str:
        module = project.module("sglang.two")
        assert module is not None
        release()  # only now can the owner's file be had
        return module.name

    result = sources.turns.begin(aside)
    module = project.module("sglang.one")
    assert module is not None and module.name == "sglang.one"
    assert result() == "sglang.two"
    assert sources._parsers.wanted == [("sglang/one.py", True), ("sglang/two.py", False)]  # type: ignore[attr-defined]


def test_the_store_serves_both_threads(sources: CheckoutSources, tmp_path: Path) -> None:
    opened(sources, "one", "two")()
    sources.facts("sglang/one.py")
    sources._flush()
    again = CheckoutSources(tmp_path, FactStore(tmp_path / "cache"), jobs=2)
    again._parsers = Gated()  # type: ignore[assignment]
    assert again.turns.begin(lambda: again.facts("sglang/one.py").lines)() == sources.facts("sglang/one.py").lines
    assert (again.reading.parsed, again.reading.cached) == (0, 1)


def test_closing_ends_what_runs_aside(sources: CheckoutSources) -> None:
    opened(sources, "one")()
    result = sources.turns.begin(lambda: sources.facts("sglang/one.py"))
    sources.close()
    with pytest.raises(Abandoned):
        result()
    assert sources.turns.running == 1
