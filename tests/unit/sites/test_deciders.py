"""Who decides whether a graph runs, which, and of which class; and what ends graphs or changes what a capture does."""

from __future__ import annotations

import textwrap

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.sites.classify import Classifier
from sgl_graph.analyzer.static.sites.search import find_sites

from .programs import MemorySources, search, sites

TABLES = """
    import torch

    class Whole:
        def __init__(self, runner):
            self._kept = {}

        def record(self, key, fn):
            thing = torch.cuda.CUDAGraph()
            with torch.cuda.graph(thing):
                fn()
            self._kept[key] = thing

        def holds(self, batch, key):
            return key in self._kept

        def again(self, key, batch):
            self._kept[key].replay()

        def forget(self):
            self._kept.clear()

        def size(self):
            return len(self._kept.keys())

    class Halves(Whole):
        def record(self, key, fn):
            super().record(key, fn)
"""
RUNNERS = """
    import bisect
    import torch
    from sglang.srt import dressing
    from sglang.srt.choosing import table_for

    def sizes_for(model):
        return [1, 2, 4]

    def prefers_plain(model):
        return model.plain

    class Loop:
        def __init__(self, model):
            self.sizes = sizes_for(model)
            self.plain = prefers_plain(model)
            self.table = table_for(self)
            self.mark = torch.cuda.Event(external=True)
            self.note = torch.cuda.Event()
            self.fill()

        def fill(self):
            for size in self.sizes:
                with dressing.dressed(size) as fn:
                    self.one(size, fn)

        def one(self, size, fn):
            def body():
                self.mark.record()
                self.note.record()
                return fn()
            self.table.record(self.name_of(size), body)

        def name_of(self, size, kind=None):
            return (size, kind)

        def kind_of(self, batch):
            if self.plain:
                return None
            return "rich"

        def pad(self, n):
            return self.sizes[bisect.bisect_left(self.sizes, n)]

        def may(self, batch):
            fits = self.table.holds(batch, self.name_of(len(batch))) if batch else False
            return fits and self.small(batch)

        def small(self, batch):
            return len(batch) < 9

        def step(self, batch):
            size = self.pad(len(batch))
            return self.table.again(self.name_of(size, self.kind_of(batch)), batch)

    class Wide(Loop):
        def may(self, batch):
            return len(batch) > 1

        def name_of(self, size, kind=None):
            return size
"""
CHOOSING = """
    from sglang.srt.tables import Whole, Halves

    def table_for(runner):
        if runner.half:
            return Halves(runner)
        return Whole(runner)

    def whole_for(runner):
        return Whole(runner)

    class Other: ...

    def other_for(runner):
        return Other() if runner else Other()
"""
DRESSING = """
    from contextlib import contextmanager

    @contextmanager
    def dressed(size):
        yield lambda: size

    @contextmanager
    def bare(size):
        yield lambda: 0
"""
WORKER = """
    from collections import defaultdict
    from sglang.srt.runners import Loop, Wide
    from sglang.srt.choosing import Other

    PLAIN = {"a": Other, "b": Other}

    def allowed(runner, batch):
        return True

    class Worker:
        def __init__(self, model, kind):
            self.model = model
            rows = defaultdict(lambda: Loop, {"wide": Wide})
            self.runner = rows[kind](model)

        def forward(self, batch):
            ready = bool(batch.ready() and self.runner and self.runner.may(batch))
            if ready and allowed(self.runner, batch):
                return self.runner.step(batch)
            return self.model(batch)
"""
PROGRAM = {"tables": TABLES, "runners": RUNNERS, "choosing": CHOOSING, "dressing": DRESSING, "worker": WORKER}


def _named(form: str, **changes: str) -> set[str]:
    """Qualified names of the sites of one form."""
    found = search(**{**PROGRAM, **changes}).sites
    return {site.scope.public_name.partition(":")[2] for site in found if site.form == form}


def _lines(form: str, **changes: str) -> set[tuple[str, str]]:
    """Function and callee (or what stands for it) of the sites of one form."""
    found = search(**{**PROGRAM, **changes}).sites
    return {(site.scope.public_name.partition(":")[2], site.api) for site in found if site.form == form}


def test_what_the_guard_of_a_replay_asks_of_its_owner_is_an_eligibility_check() -> None:
    # Through a local, `bool` and `and`; with overrides, what is asked in turn, and a function that is given the runner.
    # The batch is asked too, and owns no graph.
    assert _named("eligibility") == {"Loop.may", "Wide.may", "Loop.small", "Whole.holds", "allowed"}


def test_the_question_is_a_site_where_it_is_asked_from_outside() -> None:
    assert _lines("asked") == {("Worker.forward", "self.runner.may"), ("Worker.forward", "allowed")}


def test_a_question_in_a_module_that_names_no_owner_is_found_by_the_attribute_that_keeps_one() -> None:
    asking = """
        class Draft:
            def run(self, batch):
                held = self.other.runner
                ask = self.other.stranger
                return held.may(batch), ask.may(batch)
    """
    assert ("Draft.run", "held.may") in _lines("asked", asking=asking)
    assert ("Draft.run", "ask.may") not in _lines("asked", asking=asking)


def test_functions_whose_values_go_into_the_key_of_a_filed_graph() -> None:
    # With the part that is chosen by what the object keeps, overrides, and the sizes that are captured.
    assert _named("key") == {"Loop.name_of", "Wide.name_of", "Loop.kind_of", "prefers_plain"}
    assert _named("sizes") == {"sizes_for"}


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
    assert ("Loop.step", "self.pad") in _lines("bucket")


def test_a_factory_gives_one_of_several_tables_and_is_a_site_where_it_is_called() -> None:
    assert _named("factory") == {"table_for"}
    assert _lines("chosen-by") == {("Loop.__init__", "table_for")}


def test_a_table_of_classes_and_the_row_that_is_taken() -> None:
    assert _lines("class-table") == {("Worker.__init__", "rows")}
    assert _lines("picked") == {("Worker.__init__", "rows[kind]")}


def test_classes_that_one_place_gets_under_different_tests() -> None:
    worker = """
        from sglang.srt.runners import Loop, Wide

        class Worker:
            def __init__(self, model, kind):
                if kind:
                    self.runner = Wide(model)
                else:
                    self.runner = Loop(model)
                self.again = Loop(model)

            def forward(self, batch):
                return self.runner.step(batch)
    """
    found = [(line, form) for module, line, _, form in sites(**{**PROGRAM, "worker": worker}) if module == "worker"]
    assert [line for line, form in found if form == "alternatives"] == [6]


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


def test_a_context_that_gives_what_is_captured_and_what_is_put_in_its_place() -> None:
    assert _lines("body") == {("dressed", "dressing.dressed"), ("Loop.fill", "dressing.dressed")}
    put = """def other():
        dressing.dressed = dressing.bare
        dressing.elsewhere = dressing.bare
        elsewhere.dressed = dressing.bare

    def prefers_plain"""
    changes = {"runners": RUNNERS.replace("def prefers_plain", put)}
    assert _lines("rebound", **changes) == {("other", "dressing.dressed")}
    assert ("bare", "bare") in _lines("body", **changes)


def test_a_mode_that_is_turned_while_a_graph_replays() -> None:
    dressing = (
        DRESSING
        + """
    ON = False
    WARNED = False

    @contextmanager
    def turned():
        global ON
        ON = True
        yield
        ON = False

    @contextmanager
    def warned():
        global WARNED
        WARNED = True
        yield
    """
    )
    again = "            return self.table.again"
    inside = "            with dressing.turned(), dressing.warned():\n                return self.table.again"
    changes = {"dressing": dressing, "runners": RUNNERS.replace(again, inside)}
    assert _lines("mode", **changes) == {("turned", "turned")}


def test_a_table_that_lets_its_graphs_go_and_who_tells_it_to() -> None:
    assert _lines("dropped") == {("Whole.forget", "self._kept.clear")}
    tables = (
        TABLES + "\n    def stop(table: Whole):\n        table.size()\n        table.forget()\n        other.forget()\n"
    )
    assert _lines("ended", tables=tables) == {("stop", "table.forget")}


def test_only_an_event_that_outlives_the_capture_is_armed_anew_by_replays() -> None:
    assert _lines("rearmed") == {("Loop.one.body", "self.mark.record")}


def test_a_method_of_the_device_library_that_the_checkout_replaces() -> None:
    tables = TABLES + (
        "\n    def quiet(self, other): ...\n"
        "\n    def install():\n        torch.cuda.Stream.wait_stream = quiet\n        torch.cuda.Stream.note = 1\n"
    )
    found = search(**{**PROGRAM, "tables": tables})
    replaced = [site for site in found.sites if site.form == "replaced"]
    assert [(site.role, site.api) for site in replaced] == [("update", "torch.cuda.Stream.wait_stream")]
    assert Classifier(found.owners, found.sites).classify(replaced[0])[0] == "partial"


def test_a_choice_of_class_claims_nothing() -> None:
    found = search(**PROGRAM)
    classifier = Classifier(found.owners, found.sites)
    classes = {site.form: classifier.classify(site)[0] for site in found.sites}
    assert {classes[form] for form in ("factory", "chosen-by", "class-table", "picked", "sizes", "body")} == {
        "unresolved"
    }
    assert classes["eligibility"] == "lifetime-inspectable"


CHOSEN_UNDER_TESTS = """
from sglang.srt.runners import Loop, Wide

FLAG = {flag}

def note():
    return 1

class Worker:
    def __init__(self, model, kind):
        if FLAG:
            rows = {{"wide": Wide, "loop": Loop}}
            kept = note()
            self.runner = rows[kind](model)
        else:
            self.runner = Loop(model)
        if FLAG:
            Loop.may = note
        if FLAG:
            made = note().attribute
            Loop.small = note
        if FLAG:
            made = FLAG and note()
            Loop.kind_of = note

    def forward(self, batch):
        if self.runner.may(batch):
            return self.runner.step(batch)

def run():
    Worker(0, "wide").forward([1])
"""


@pytest.mark.parametrize(("flag", "expected"), [(True, "yes"), (False, "no")])
def test_a_statement_under_a_test_runs_when_the_calls_beside_it_do(flag: bool, expected: str) -> None:
    worker = CHOSEN_UNDER_TESTS.format(flag=flag)
    files = {f"sglang/srt/{name}.py": textwrap.dedent(text) for name, text in {**PROGRAM, "worker": worker}.items()}
    project = Project(MemorySources(files))
    entry = "sglang.srt.worker:run"
    reach = Reachability(link(project, [entry], kept_externals=("torch.cuda",)), [entry])
    found = {
        (site.form, site.api): reach.of_site(site)
        for site in find_sites(project).sites
        if site.scope.module.name.endswith("worker")
    }
    assert found["class-table", "rows"].reachable == expected
    assert found["picked", "rows[kind]"].reachable == expected
    assert found["rebound", "Loop.small"].reachable == expected
    # Nothing beside these is surely evaluated: neither answer is proved.
    open_ = ("unresolved", "whether FLAG holds was not evaluated")
    assert (found["rebound", "Loop.may"].reachable, found["rebound", "Loop.may"].why) == open_
    assert (found["rebound", "Loop.kind_of"].reachable, found["rebound", "Loop.kind_of"].why) == open_
