"""A draft has no captures of a kind whose maker leaves where the draft's model lacks what the target's has."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.paths.fitting import Fitting

from .linked_paths import RUNNERS, linked_program

ENTRY = "sglang.srt.scheduler:run"
MODELS = """
    class Inner:
        def __init__(self):
            self.layers, self.first = [1, 2], 0

    class Big:
        def __init__(self):
            self.model = Inner()

    class Alike(Big):
        pass

    class InnerNext:
        def __init__(self):
            self.decoder = 1

    class BigNext(Big):
        def __init__(self):
            self.model = InnerNext()
"""
#: What makes a runner for a model, and asks it {asked} before.
MAKER = """
    from sglang.srt.models import Alike, Big, BigNext
    from sglang.srt.runners import DecodeGraphRunner

    def make(model, other):
        {asked}
        return DecodeGraphRunner(model)

    def run():
        for model in (Big(), BigNext(), Alike()):
            make(model, object())
"""
LEAVING = "if not hasattr(model.model, 'layers'):\n            return None"
CHAIN = """if hasattr(model, 'model') and hasattr(model.model, 'layers'):
            found = model.model
        elif hasattr(model, 'layers'):
            found = model
        else:
            return None"""
DESCENDING = """while not hasattr(model, 'layers') and hasattr(model, 'model'):
            model = model.model
        if not hasattr(model, 'layers'):
            return None"""


def _left_out(asked: str, draft: str = "BigNext") -> bool:
    _, linked = linked_program(
        ENTRY, {"models": MODELS, "runners": RUNNERS, "scheduler": MAKER.replace("{asked}", asked)}
    )
    return Fitting(linked, {False: "Big", True: draft}).leaves_draft_out("sglang.srt.runners:DecodeGraphRunner")


@pytest.mark.parametrize("asked", [LEAVING, CHAIN, DESCENDING])
def test_a_maker_that_leaves_without_an_attribute_leaves_a_model_out_that_lacks_it(asked: str) -> None:
    assert _left_out(asked)
    assert not _left_out(asked, draft="Alike")


@pytest.mark.parametrize(
    "asked",
    [
        "pass",
        "if not hasattr(other, 'runner'):\n            return None",  # neither model has that
        "if not hasattr(model, 'model'):\n            return None",  # both have that
        "if not hasattr(model.model, 'layers'):\n            print(model)",
        "if hasattr(model.model, 'layers'):\n            return None",
        "if not (hasattr(model.model, 'layers') and other):\n            return None",
        CHAIN.replace("hasattr(model, 'layers')", "hasattr(model, 'decoder')"),
        CHAIN.replace("return None", "found = None"),
    ],
)
def test_a_maker_that_asks_for_nothing_that_tells_the_models_apart_leaves_none_out(asked: str) -> None:
    assert not _left_out(asked)


@pytest.mark.parametrize("models", [{}, {False: "Big"}, {False: "Big", True: "Elsewhere"}, {False: "X", True: "Big"}])
def test_what_is_not_known_of_the_models_leaves_none_out(models: dict[bool, str]) -> None:
    _, linked = linked_program(
        ENTRY, {"models": MODELS, "runners": RUNNERS, "scheduler": MAKER.replace("{asked}", LEAVING)}
    )
    assert not Fitting(linked, models).leaves_draft_out("sglang.srt.runners:DecodeGraphRunner")
    assert not Fitting(None, {False: "Big", True: "BigNext"}).leaves_draft_out("sglang.srt.runners:DecodeGraphRunner")
