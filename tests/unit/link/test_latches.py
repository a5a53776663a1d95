"""Switches that start-up may turn: a test of one is open, and so is all that runs for an object made behind it."""

from __future__ import annotations

import re
from pathlib import Path

from sgl_graph.analyzer.static.link.moments import Serving

from .programs import Program, program

SERVING = Serving(re.compile("^event_loop$"), re.compile("^update_"))
PROGRAM = """
    # file: main.py
    class Backend:
        def __init__(self):
            self._special = False

        @property
        def special(self):
            return self._special

        @special.setter
        def special(self, value):
            self._special = value

    class Wrapper:
        def __init__(self, backend):
            backend.special = True

    class Runner:
        def go(self):
            pass

    class Worker:
        def __init__(self):
            self.backend = Backend()
            self.runner = None
            {start}
            self.prepare()

        def supported(self):
            return not self.backend.special

        def prepare(self):
            if not self.supported():
                return
            self.make()

        def make(self):
            self.runner = Runner()

        def event_loop(self):
            while True:
                if self.runner is not None:
                    self.runner.go()
                {loop}
                if self.backend.special:
                    self.apart()

        def apart(self):
            pass

    def run():
        Worker().event_loop()
"""


def linked(tmp_path: Path, *, start: str = "pass", loop: str = "pass") -> Program:
    return program(tmp_path, PROGRAM.format(start=start, loop=loop), serving=SERVING)


def test_what_stands_behind_a_switch_that_start_up_turns_is_not_certain(tmp_path: Path) -> None:
    p = linked(tmp_path, start="Wrapper(self.backend)")
    assert p.reached("main:Worker.make") == "unknown"
    assert p.call("main:Worker.prepare", "self.make").guards[0].depends == ("Backend._special",)
    # The runner may not be there, however certainly it would be asked.
    assert p.reached("main:Runner.go") == "unknown"
    # Start-up is over by then: the switch stands one way or the other, as anything that only running code can tell.
    assert p.reached("main:Worker.apart") == "true"


def test_a_switch_that_nothing_turns_leaves_nothing_open(tmp_path: Path) -> None:
    p = linked(tmp_path)
    assert p.reached("main:Worker.make") == p.reached("main:Runner.go") == "true"
    assert p.reached("main:Worker.apart") == "no"


def test_a_switch_that_is_turned_while_serving_holds_either_way_in_its_time(tmp_path: Path) -> None:
    p = linked(tmp_path, loop="Wrapper(self.backend)")
    assert p.reached("main:Worker.make") == p.reached("main:Runner.go") == p.reached("main:Worker.apart") == "true"
