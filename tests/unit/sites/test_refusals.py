"""Captures before which start-up comes to an assertion that fails for certain."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.deaths import Death, refusals
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.preflight import site_records
from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings
from sgl_graph.analyzer.static.sites.search import find_sites

from .capturing_programs import TABLE
from .linked_paths import linked_program

ENTRY = "sglang.srt.scheduler:run"
#: A runner with an {assertion} before its captures, and a scheduler that makes it in a way of its own ({making}).
RUNNER = (
    TABLE
    + """
    class Strict(Table):
        pass

    def open_file():
        return open("x")

    class DecodeGraphRunner:
        debug = {debug}

        def __init__(self, table):
            self.table = table
            for size in (1, 2):
                self.capture(size)

        def capture(self, size):
            {assertion}
            self.table.record(size, lambda: None)

        def step(self, size):
            self.table.again(size)
"""
)
SCHEDULER = """
    import os
    from sglang.srt.runner import DecodeGraphRunner, Strict, Table

    class Scheduler:
        def __init__(self):
            {making}

        def event_loop(self):
            while True:
                self.handle()

        def handle(self):
            {serving}

    def run():
        try:
            Scheduler().event_loop()
        except Exception:
            os._exit(1)
"""


def _found(
    assertion: str,
    *,
    debug: bool = True,
    making: str = "self.runner = DecodeGraphRunner(Table())",
    serving: str = "self.runner.step(1)",
) -> list[Death]:
    modules = {
        "runner": RUNNER.replace("{assertion}", assertion).replace("{debug}", str(debug)),
        "scheduler": SCHEDULER.format(making=making, serving=serving),
    }
    project, linked = linked_program(ENTRY, modules)
    found = find_sites(project)
    reach = Reachability(linked, [ENTRY], found.owners.on_demand())
    answers = [reach.of_site(raw) for raw in found.sites]
    sites = site_records(found, Classifier(found.owners, found.sites), answers, Surroundings(device="cuda"))
    return list(refusals(linked, reach, Chains(linked, reach, [ENTRY]), sites))


STRICT = "assert isinstance(self.table, Strict), 'not with this table'"


def test_an_assertion_that_surely_fails_ends_the_capture() -> None:
    (death,) = _found(STRICT)
    assert (death.name, death.by) == ("DecodeGraphRunner.capture", "DecodeGraphRunner.capture")
    assert death.text == "AssertionError: isinstance(self.table, Strict) does not hold"
    assert death.file == "sglang/srt/runner.py"
    assert death.sites == ("capture:runner.DecodeGraphRunner.capture",)


def test_one_under_a_setting_that_holds_does_too() -> None:
    assert len(_found(f"if self.debug:\n                {STRICT}")) == 1


@pytest.mark.parametrize(
    "assertion",
    [
        "assert isinstance(self.table, Table)",
        "assert open_file()",
        f"if open_file():\n                {STRICT}",
        f"try:\n                {STRICT}\n            except AssertionError:\n                pass",
        f"try:\n                {STRICT}\n            except Exception:\n                pass",
    ],
)
def test_one_that_may_hold_or_not_be_come_to_or_is_caught_ends_nothing(assertion: str) -> None:
    assert _found(assertion) == []


def test_one_under_a_setting_that_does_not_hold_ends_nothing() -> None:
    assert _found(f"if self.debug:\n                {STRICT}", debug=False) == []


def test_what_a_caller_catches_ends_nothing() -> None:
    caught = (
        "try:\n                self.runner = DecodeGraphRunner(Table())\n            except {}:\n                pass"
    )
    assert _found(STRICT, making=caught.format("Exception")) == []
    assert len(_found(STRICT, making=caught.format("RuntimeError"))) == 1


def test_one_that_another_caller_does_not_meet_ends_nothing() -> None:
    both = "self.runner = DecodeGraphRunner(Table() if os.path.exists('x') else Strict())"
    assert _found(STRICT, making=both) == []


def test_what_requests_alone_capture_does_not_end_the_start() -> None:
    assert _found(STRICT, making="pass", serving="DecodeGraphRunner(Table()).step(1)") == []
