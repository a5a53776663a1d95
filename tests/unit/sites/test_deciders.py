"""Who decides whether a graph runs, and which."""

from __future__ import annotations

from .deciding_program import PROGRAM, lines_of, names_of
from .programs import search, sites


def test_what_the_guard_of_a_replay_asks_of_its_owner_is_an_eligibility_check() -> None:
    # Through a local, `bool` and `and`; with overrides, what is asked in turn, and a function that is given the runner.
    # The batch is asked too, and owns no graph.
    assert names_of("eligibility") == {"Loop.may", "Wide.may", "Loop.small", "Whole.holds", "allowed"}


def test_the_question_is_a_site_where_it_is_asked_from_outside() -> None:
    assert lines_of("asked") == {("Worker.forward", "self.runner.may"), ("Worker.forward", "allowed")}


def test_a_question_in_a_module_that_names_no_owner_is_found_by_the_attribute_that_keeps_one() -> None:
    asking = """
        class Draft:
            def run(self, batch):
                held = self.other.runner
                ask = self.other.stranger
                return held.may(batch), ask.may(batch)
    """
    assert ("Draft.run", "held.may") in lines_of("asked", asking=asking)
    assert ("Draft.run", "ask.may") not in lines_of("asked", asking=asking)


def test_functions_whose_values_go_into_the_key_of_a_filed_graph() -> None:
    # With the part that is chosen by what the object keeps, overrides, and the sizes that are captured.
    assert names_of("key") == {"Loop.name_of", "Wide.name_of", "Loop.kind_of", "prefers_plain"}
    assert names_of("sizes") == {"sizes_for"}


def test_the_key_of_a_record_that_receives_the_graph_later() -> None:
    glue = """
        import torch

        class Glue:
            def __init__(self):
                self._kept = {}

            def run(self, batch, key, fn):
                held = self._kept.setdefault(key, {"graph": None})
                if held["graph"] is None:
                    thing = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(thing):
                        fn()
                    held["graph"] = thing
                held["graph"].replay()
    """
    user = """
        from sglang.srt.glue import Glue

        class User:
            def __init__(self):
                self.glue = Glue()

            def step(self, batch, fn):
                self.glue.run(batch, label(batch), fn)
                self.glue.run(batch, elsewhere(batch), fn)

        def elsewhere(batch):
            return 0
    """
    user += "\n        def label(batch):\n            return len(batch)\n"
    found = search(glue=glue, user=user).sites
    assert not [site for site in found if site.form == "key"]  # no module of the graphs' owners
    found = search(glue=glue + user.replace("from sglang.srt.glue import Glue", "")).sites
    assert {site.api for site in found if site.form == "key"} == {"label", "elsewhere"}


def test_a_size_is_padded_to_a_captured_one_by_bisection() -> None:
    assert ("Loop.step", "self.pad") in lines_of("bucket")


def test_the_fork_before_a_method_that_surely_replays() -> None:
    worker = """
        from sglang.srt.runners import Loop

        class Worker:
            def __init__(self, model):
                self.runner = Loop(model)

            def forward(self, batch, old):
                if batch.wanted:
                    if old:
                        return self.by_graph_of_old(batch)
                    return self.by_graph(batch)
                return 0

            def by_graph(self, batch):
                return self.runner.step(batch)

            def by_graph_of_old(self, batch):
                return self.runner.step(batch)
    """
    # `old` leads to a replay either way.
    found = [(line, form) for module, line, _, form in sites(**{**PROGRAM, "worker": worker}) if module == "worker"]
    assert [line for line, form in found if form == "fork"] == [9]
