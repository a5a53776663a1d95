"""What start-up chooses between: of two classes that capture, the one that a test decides for, and never both."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sgl_graph.analyzer.static.link.moments import Serving
from sgl_graph.analyzer.static.linked import Linked

from .programs import FolderSources, write

PROGRAM = """
        # file: runners.py
        class Whole:
            def capture(self):
                record(self)

        class Pieces:
            def capture(self):
                record(self)

        class Plain:
            def capture(self):
                record(self)

        def record(runner):
            pass

        # file: main.py
        import ext
        from runners import Pieces, Plain, Whole

        class Worker:
            def __init__(self):
                self.backends = ext.backends()

            def start(self):
                together = all(b.refreshes or b.can_stage() for b in self.backends)
                if {test}:
                    self.runner = {one}()
                else:
                    self.runner = {other}()
                self.runner.capture()

        def serve_loop(worker):
            while True:
                {serving}

        def run():
            worker = Worker()
            worker.start()
            serve_loop(worker)
"""
WHOLE, PIECES = "runners:Whole.capture", "runners:Pieces.capture"


def linked(folder: Path, *, capturing: frozenset[str], **words: str) -> Linked:
    from sgl_graph.analyzer.static.checkout.project import Project
    from sgl_graph.analyzer.static.link.driver import link

    values = {"test": "together", "one": "Whole", "other": "Pieces", "serving": "pass", **words}
    write(folder, PROGRAM.format(**values))
    serving = Serving(re.compile("_loop$"), re.compile("^administer$"))
    return link(Project(FolderSources(folder)), ["main:run"], serving=serving, capturing=lambda: capturing)


def made_under(found: Linked) -> set[tuple[str, str, tuple[str, ...]]]:
    """(class, condition, what it rests on) of each object that the worker's start makes."""
    return {
        (name.partition(":")[2], guard.text, guard.depends)
        for call in found.calls["main:Worker.start"]
        for name in call.constructs
        for guard in call.guards
    }


CAPTURING = frozenset({"runners:Whole", "runners:Pieces"})


def test_of_two_that_capture_neither_is_certain_and_what_decides_is_named(tmp_path: Path) -> None:
    found = linked(tmp_path, capturing=CAPTURING)
    rests = ("b.can_stage", "b.refreshes")
    assert made_under(found) == {("Whole", "together", rests), ("Pieces", "not (together)", rests)}
    assert {found.reached[name].value for name in (WHOLE, PIECES)} == {"unknown"}
    assert found.reached["main:Worker.start"].value == "true"


@pytest.mark.parametrize(
    ("capturing", "words"),
    [
        # Objects that capture nothing may be made in turn; so may those of one class, and what requests make.
        (frozenset(), {}),
        (CAPTURING, {"other": "Whole"}),
        (CAPTURING, {"other": "Plain"}),
        (CAPTURING, {"serving": "worker.start()"}),
    ],
)
def test_a_test_that_chooses_nothing_for_good_may_hold_either_way(
    tmp_path: Path, capturing: frozenset[str], words: dict[str, str]
) -> None:
    found = linked(tmp_path, capturing=capturing, **words)
    assert {depends for _, _, depends in made_under(found)} == {()}
    assert found.reached[WHOLE].value == "true"


def test_a_test_without_attributes_is_named_itself(tmp_path: Path) -> None:
    found = linked(tmp_path, capturing=CAPTURING, test="ext.memory() > 1")
    assert {depends for _, _, depends in made_under(found)} == {("ext.memory() > 1",)}


def test_each_outcome_makes_what_it_chooses_certain_and_the_other_not(tmp_path: Path) -> None:
    found = linked(tmp_path, capturing=CAPTURING)
    ((holds, fails),) = found.cases
    assert (holds.holds, fails.holds) == (True, False)
    assert [holds.reached[name].value for name in (WHOLE, PIECES)] == ["true", "unknown"]
    assert [fails.reached[name].value for name in (WHOLE, PIECES)] == ["unknown", "true"]
    calls = {name: call for call in holds.of(found).calls["main:Worker.start"] for name in call.constructs}
    assert calls["runners:Whole"].active and not calls["runners:Pieces"].active
    assert found.calls["main:Worker.start"] != holds.of(found).calls["main:Worker.start"]


def test_a_test_that_chooses_nothing_has_no_outcomes(tmp_path: Path) -> None:
    assert linked(tmp_path, capturing=frozenset()).cases == ()
