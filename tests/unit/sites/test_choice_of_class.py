"""Who decides of which class a runner or a table is."""

from __future__ import annotations

import textwrap

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.sites.classify import Classifier
from sgl_graph.analyzer.static.sites.search import find_sites

from .deciding_program import PROGRAM, lines_of, names_of
from .programs import MemorySources, search, sites


def test_a_factory_gives_one_of_several_tables_and_is_a_site_where_it_is_called() -> None:
    assert names_of("factory") == {"table_for"}
    assert lines_of("chosen-by") == {("Loop.__init__", "table_for")}


def test_a_table_of_classes_and_the_row_that_is_taken() -> None:
    assert lines_of("class-table") == {("Worker.__init__", "rows")}
    assert lines_of("picked") == {("Worker.__init__", "rows[kind]")}


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
