"""Interpreting again: order, what is done again and what is not, and results that hang on neither."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.static.checkout.project import Module
from sgl_graph.analyzer.static.extract.facts import ModuleFacts, share
from sgl_graph.analyzer.static.link import interpreter
from sgl_graph.analyzer.static.link.agenda import Agenda
from sgl_graph.analyzer.static.link.calls import Calls
from sgl_graph.analyzer.static.link.cells import Cell
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import UNKNOWN, Constant, just

from .programs import Program, program

#: Values that come back to where they began: every function is interpreted several times before nothing grows.
_CIRCLES = """
    # file: main.py
    from stages import Copy, Keep, Shift

    class Machine:
        def __init__(self):
            self.stages = []
            self.last = None
            self.names = {}

        def add(self, name, stage):
            self.stages.append(stage)
            self.names[name] = stage
            if self.last is not None:
                self.last.then(stage)
            self.last = stage

        def turn(self, state):
            for stage in self.stages:
                if stage.ready(state):
                    state = stage.step(state)
                    self.after(stage, state)
            while state:
                state = self.names["keep"].step(state) if state.done else (state, self.last)
            return state

        def after(self, stage, state):
            method = getattr(stage, "settle", None)
            if method is not None:
                method(state)

    def run():
        machine = Machine()
        machine.add("copy", Copy())
        machine.add("shift", Shift())
        machine.add("keep", Keep(machine))
        return machine.turn(machine)

    # file: stages.py
    class Stage:
        following = None

        def then(self, stage):
            self.following = stage

        def ready(self, state):
            return self.following is None or self.following.ready(state)

        def step(self, state):
            return self.following.step(state) if self.following else state

    class Copy(Stage):
        def step(self, state):
            return super().step((state, state))

    class Shift(Stage):
        def step(self, state):
            first, second = state
            return super().step(second)

        def settle(self, state):
            self.kept = state
            return self.kept.turn(self)

    class Keep(Stage):
        def __init__(self, owner):
            self.owner = owner

        def settle(self, state):
            return self.owner.after(self, self.following)
"""


def _shown(found: Program) -> dict[str, Any]:
    linked = found.linked
    edges = sorted(
        (caller, target, data["line"], str(data["known"]), str(data["guards"]))
        for caller, target, data in linked.graph.edges(data=True)
    )
    calls = {
        caller: [(c.line, c.text, sorted(c.targets), sorted(c.receivers), c.guards) for c in items]
        for caller, items in linked.calls.items()
    }
    attributes = {name: info.attributes for name, info in linked.classes.items()}
    return {"edges": edges, "calls": calls, "reached": linked.reached, "attributes": attributes}


def test_statements_that_nothing_changed_for_are_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same result from fewer evaluations."""
    evaluations: Counter[str] = Counter()
    evaluate = Calls.evaluate

    def counted(self: Calls, frame: Any, e: Any) -> Any:
        evaluations[mode] += 1
        return evaluate(self, frame, e)

    monkeypatch.setattr(Calls, "evaluate", counted)
    mode = "remembered"
    remembered = _shown(program(tmp_path, _CIRCLES))
    monkeypatch.setattr(interpreter, "FIRST_RUNS", 1 << 30)
    mode = "done again"
    done_again = _shown(program(tmp_path, _CIRCLES))
    assert remembered == done_again
    assert ("main:Machine.turn", "stages:Shift.step") in {edge[:2] for edge in remembered["edges"]}
    assert 0 < evaluations["remembered"] < evaluations["done again"]


@pytest.mark.parametrize("deepest", [3, 28, 100])
def test_how_deep_calls_are_followed_at_once_changes_no_edge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deepest: int
) -> None:
    expected = {edge[:3] for edge in _shown(program(tmp_path, _CIRCLES))["edges"]}
    monkeypatch.setattr(interpreter, "_DEEPEST", deepest)
    assert {edge[:3] for edge in _shown(program(tmp_path, _CIRCLES))["edges"]} == expected


@pytest.mark.parametrize("calls", ["work(True)\n    work(False)", "work(False)\n    work(True)"])
def test_of_several_calls_the_one_that_leaves_least_open_gives_the_guards(tmp_path: Path, calls: str) -> None:
    """Whichever comes last: one that surely gets there is enough."""
    p = program(
        tmp_path,
        f"""
# file: main.py
from elsewhere import choose

def run():
    {calls}

def work(sure):
    if sure or choose():
        leaf()

def leaf():
    pass
""",
    )
    assert p.guards("main:work", "main:leaf") == [(("sure or choose()", "true"),)]


def test_two_uses_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Uses of a name share one node: `with` items and cases have records and texts of their own all the same."""
    p = program(
        tmp_path,
        """
        # file: main.py
        import enum
        from elsewhere import choose

        class Kind(enum.Enum):
            ONE = 1

        class Lock:
            def __enter__(self):
                return self

            def __exit__(self, *args):
                pass

        def run():
            lock = Lock()
            with lock:
                first(choose(), choose())
            with lock:
                pass

        def first(left, right):
            wanted = choose()
            match left:
                case wanted.one:
                    leaf()
            match right:
                case wanted.one:
                    other()

        def leaf():
            pass

        def other():
            pass
        """,
    )
    entered = [call for call in p.linked.calls["main:run"] if call.entered]
    assert [call.text for call in entered] == ["lock", "lock"]
    assert entered[1].line == entered[0].line + 2
    assert p.guards("main:first", "main:leaf") == [(("left == wanted.one", "unknown"),)]
    assert p.guards("main:first", "main:other") == [(("right == wanted.one", "unknown"),)]


def _activation() -> Activation:
    return Activation(Module("main", "main.py", False, ModuleFacts(None, [], [], [], 0)), None, None, None)


def test_callers_come_before_what_they_call_round_by_round() -> None:
    agenda = Agenda()
    callee, caller, root = _activation(), _activation(), _activation()
    for activation in (callee, caller, root):
        agenda.finished(activation)  # callees end first
    for activation in (callee, root, caller, root):
        agenda.add(activation)
    assert agenda.take() is root
    assert agenda.take() is caller
    agenda.add(root)  # what has had its turn waits for the next round
    agenda.add(caller)
    assert [agenda.take(), agenda.take(), agenda.take(), agenda.take()] == [callee, root, caller, None]


def test_an_activation_interpreted_meanwhile_is_not_taken() -> None:
    agenda = Agenda()
    one, other = _activation(), _activation()
    agenda.add(one)
    agenda.add(other)
    one.queued = False
    assert agenda.take() is other
    assert agenda.take() is None


def test_cells_keep_their_readers_in_order_and_say_when_they_grew() -> None:
    cell = Cell()
    readers = [_activation() for _ in range(3)]
    for reader in (*readers, readers[0]):
        cell.read_by(reader)
    assert cell.each_reader() == readers
    before = cell.values
    assert cell.grow(just(Constant.of("a")))
    grown = cell.values
    assert grown is not before
    assert not cell.grow(just(Constant.of("a")))
    assert cell.values is grown


def test_more_scalars_than_a_cell_holds_are_unknown() -> None:
    cell = Cell()
    for number in range(60):
        cell.grow(just(Constant.of(number)))
    assert UNKNOWN in cell.values
    assert len(cell.values) < 60


def test_which_scalars_a_cell_keeps_does_not_hang_on_their_order_in_memory() -> None:
    texts = [f"{number:02}" for number in range(60)]
    random.Random(7).shuffle(texts)
    cell = Cell()
    cell.grow(frozenset([Constant.of(text) for text in texts]))
    assert {v.value for v in cell.values if isinstance(v, Constant)} == {f"{number:02}" for number in range(40)}
    assert UNKNOWN in cell.values


def test_names_and_texts_of_bodies_are_shared() -> None:
    names: dict[str, Any] = {}
    body: list[Any] = [["=", 1, [["n", "x"]], ["c", ["n", "f"], [["n", "x"], ["v", "te" + "xt"]], 1]]]
    other: list[Any] = [["return", 2, ["n", "x"]]]
    expected = repr(body)
    share(body, names)
    share(other, names)
    assert repr(body) == expected
    assert body[0][2][0] is body[0][3][2][0] is other[0][2]
