"""How long the answer of a test holds: later stores, properties, and what a method or a branch settles."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import WORKERS, program


def test_a_test_that_later_code_can_change_is_not_pruned(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        WORKERS
        + """
        # file: main.py
        from work import no, yes

        ENABLED = False

        def enable():
            global ENABLED
            ENABLED = True

        class Owner:
            def __init__(self):
                self.ready = False

            def prepare(self):
                self.ready = True

            def use(self):
                if self.ready:
                    yes()
                else:
                    no()

        def run():
            enable()
            if ENABLED:
                yes()
            owner = Owner()
            owner.prepare()
            owner.use()
        """,
    )
    assert ("work:yes", "direct") in p.edges("main:run")
    assert p.edges("main:Owner.use") == {("work:yes", "direct"), ("work:no", "direct")}


RUNNERS = """
        # file: main.py
        class Runner:
            def __init__(self, is_draft):
                self.is_draft = is_draft

            def prefill(self, forced=False):
                if self.is_draft and not forced:
                    return
                if not self.is_draft:
                    return
                self.capture()

            def capture(self):
                pass

            def either(self, target):
                if self.is_draft or target:
                    return
                self.last() if self.is_draft else self.first()

            def first(self):
                pass

            def last(self):
                pass

        def run():
            for is_draft in (True, False):
                runner = Runner(is_draft)
                runner.prefill()
                runner.either(False)

        def force():
            run()
            Runner(True).prefill(forced=True)

        def turn():
            run()
            runner = Runner(True)
            runner.is_draft = False
"""


@pytest.mark.parametrize(("entry", "captures"), [("run", "no"), ("force", "true"), ("turn", "true")])
def test_an_attribute_of_one_object_keeps_its_truth_within_a_method(tmp_path: Path, entry: str, captures: str) -> None:
    """Objects of a class are not told apart, but a method has one of them; what other code stores may change under it."""
    found = program(tmp_path, RUNNERS, (f"main:{entry}",))
    assert found.reached("main:Runner.capture") == captures
    assert found.reached("main:Runner.first") == "true"
    assert found.reached("main:Runner.last") == ("true" if entry == "turn" else "no")


def test_what_a_property_gives_may_change_within_a_method(tmp_path: Path) -> None:
    text = """
        # file: main.py
        import elsewhere

        class Queue:
            def __init__(self):
                self.items = []

            @property
            def is_empty(self):
                if elsewhere.length(self.items):
                    return False
                return True

            def drain(self):
                if not self.is_empty:
                    return
                elsewhere.fill(self.items)
                if not self.is_empty:
                    self.flush()

            def flush(self):
                pass

        def run():
            Queue().drain()
    """
    assert program(tmp_path, text, ("main:run",)).reached("main:Queue.flush") == "true"


def test_what_one_branch_settles_is_open_after_both(tmp_path: Path) -> None:
    text = """
        # file: main.py
        import elsewhere

        class Runner:
            def __init__(self, is_draft):
                self.is_draft = is_draft

            def step(self):
                if elsewhere.late():
                    if self.is_draft:
                        return
                if self.is_draft:
                    self.last()

            def last(self):
                pass

        def run():
            Runner(True).step()
            Runner(False).step()
    """
    assert program(tmp_path, text, ("main:run",)).reached("main:Runner.last") == "true"
