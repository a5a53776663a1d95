"""What ends graphs, or changes what a capture or a replay does."""

from __future__ import annotations

from sgl_graph.analyzer.static.sites.classify import Classifier

from .deciding_program import DRESSING, PROGRAM, RUNNERS, TABLES, lines_of
from .programs import search


def test_a_context_that_gives_what_is_captured_and_what_is_put_in_its_place() -> None:
    assert lines_of("body") == {("dressed", "dressing.dressed"), ("Loop.fill", "dressing.dressed")}
    put = """def other():
        dressing.dressed = dressing.bare
        dressing.elsewhere = dressing.bare
        elsewhere.dressed = dressing.bare

    def prefers_plain"""
    changes = {"runners": RUNNERS.replace("def prefers_plain", put)}
    assert lines_of("rebound", **changes) == {("other", "dressing.dressed")}
    assert ("bare", "bare") in lines_of("body", **changes)


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
    assert lines_of("mode", **changes) == {("turned", "turned")}


def test_a_table_that_lets_its_graphs_go_and_who_tells_it_to() -> None:
    assert lines_of("dropped") == {("Whole.forget", "self._kept.clear")}
    tables = (
        TABLES + "\n    def stop(table: Whole):\n        table.size()\n        table.forget()\n        other.forget()\n"
    )
    assert lines_of("ended", tables=tables) == {("stop", "table.forget")}


def test_only_an_event_that_outlives_the_capture_is_armed_anew_by_replays() -> None:
    assert lines_of("rearmed") == {("Loop.one.body", "self.mark.record")}


def test_a_method_of_the_device_library_that_the_checkout_replaces() -> None:
    tables = TABLES + (
        "\n    def quiet(self, other): ...\n"
        "\n    def install():\n        torch.cuda.Stream.wait_stream = quiet\n        torch.cuda.Stream.note = 1\n"
    )
    found = search(**{**PROGRAM, "tables": tables})
    replaced = [site for site in found.sites if site.form == "replaced"]
    assert [(site.role, site.api) for site in replaced] == [("update", "torch.cuda.Stream.wait_stream")]
    assert Classifier(found.owners, found.sites).classify(replaced[0])[0] == "partial"
