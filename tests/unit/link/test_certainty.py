"""What certainly runs when nobody knows the model: a choice among several classes leaves each of them open."""

from __future__ import annotations

from pathlib import Path

import pytest
from sgl_graph.analyzer.static.linked import Truth
from sgl_graph.analyzer.static.paths.certainty import without_model

from .programs import program

MODELS = """
        # file: models.py
        class One:
            def __init__(self):
                self.table = make_table()

            def forward(self):
                capture_one()

            def only(self):
                capture_both()

        class Two:
            def forward(self):
                capture_both()

        def make_table():
            pass

        def capture_one():
            pass

        def capture_both():
            pass

        MODELS = {"one": One, "two": Two}
"""


@pytest.mark.parametrize(
    ("body", "certain", "open_"),
    [
        # Either class, by a name that nobody knows: neither is the one.
        ("MODELS[name]().forward()", set(), {"models:One.forward", "models:capture_one", "models:make_table"}),
        # Functions of different names in one table: neither is the one.
        ('{"a": capture_one, "b": capture_both}[name]()', set(), {"models:capture_one", "models:capture_both"}),
        ("(capture_one if name else capture_both)()", set(), {"models:capture_one", "models:capture_both"}),
        # One class alone: no choice.
        ("One().forward()", {"models:One.forward", "models:capture_one", "models:make_table"}, set()),
        # A choice, and a call beside it that meets one function only.
        ("MODELS[name]().forward(); capture_both()", {"models:capture_both"}, {"models:One.forward"}),
        # The same function by a chain without a choice.
        (
            "MODELS[name]().forward(); One().forward()",
            {"models:One.forward", "models:capture_one"},
            {"models:Two.forward"},
        ),
    ],
)
def test_a_choice_among_classes_leaves_each_of_them_open(
    tmp_path: Path, body: str, certain: set[str], open_: set[str]
) -> None:
    found = program(
        tmp_path,
        f"{MODELS}\n        # file: main.py\n        from models import *\n\n        def run(name):\n            {body}\n",
    )
    answers = without_model(found.linked)
    assert answers.keys() == found.linked.reached.keys()
    assert {name for name in certain | open_ if answers[name] is Truth.TRUE} == certain
    assert all(answers[name] is Truth.UNKNOWN for name in open_)
    # Nothing becomes certain that the linker leaves open.
    assert all(found.linked.reached[name] is Truth.TRUE for name, truth in answers.items() if truth is Truth.TRUE)
