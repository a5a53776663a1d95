"""Whether split points are reached: where a wrapper is made says nothing, where it is called does."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.records.pathmap import Reach
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.linked import Truth
from sgl_graph.analyzer.static.paths.reach import Reachability, Reached
from sgl_graph.analyzer.static.paths.splits import settled_splits
from sgl_graph.analyzer.static.sites.families import family_of_site
from sgl_graph.analyzer.static.sites.search import find_sites

from .capturing_programs import SEGMENTS
from .programs import MemorySources

MODEL = """
    from sglang.srt.segments import split

    def _used(x):
        return x

    def _unused(x):
        return x

    used = split(_used)
    spare = split(_unused)

    @split
    def decorated(x):
        return x

    @split
    def idle(x):
        return x

    class Layer:
        attend = split(_used)
        rest = split(_unused)

        def forward(self, x):
            return self.attend(x)

    def run():
        decorated(used(1))
        Layer().forward(2)
"""


def test_a_split_point_is_reached_where_its_wrapper_is_called() -> None:
    files = {"sglang/srt/segments.py": SEGMENTS, "sglang/srt/model.py": MODEL}
    project = Project(MemorySources(files))
    entry = "sglang.srt.model:run"
    reach = Reachability(link(project, [entry]), [entry])
    lines = MODEL.split("\n")
    found = {
        lines[site.line - 1].strip(): reach.of_site(site).reachable
        for site in find_sites(project).sites
        if site.role == "break" and site.scope.module.name.endswith("model")
    }
    assert found == {
        "used = split(_used)": "yes",
        "spare = split(_unused)": "no",
        "def decorated(x):": "yes",
        "def idle(x):": "no",
        "attend = split(_used)": "yes",
        "rest = split(_unused)": "no",
    }


def test_a_split_point_that_only_doubtful_code_calls_is_open() -> None:
    files = {"sglang/srt/segments.py": SEGMENTS, "sglang/srt/model.py": MODEL}
    project = Project(MemorySources(files))
    entry = "sglang.srt.model:run"
    linked = link(project, [entry])
    # Making the wrappers is certain; what calls them is not.
    linked.reached |= dict.fromkeys((entry, "sglang.srt.model:Layer.forward"), Truth.UNKNOWN)
    reach = Reachability(linked, [entry])
    lines = MODEL.split("\n")
    found = {
        lines[site.line - 1].strip(): reach.of_site(site).reachable
        for site in find_sites(project).sites
        if site.role == "break" and site.scope.module.name.endswith("model")
    }
    assert {answer for answer in found.values() if answer != "no"} == {"unresolved"}
    assert found["used = split(_used)"] == found["attend = split(_used)"] == "unresolved"


CHOOSING = """
    from sglang.srt.segments import Recording, Segments, current, split

    def _used(x):
        return x

    def _unused(x):
        return x

    usual = split(_used)
    special = split(_unused)

    class Shape:
        def __init__(self):
            self.special = False

    def run(shape: Shape = Shape()):
        operation = special if shape.special else usual
        return operation(1)

    def record():
        recording = Recording(Segments())
        current.set(recording)
        with recording:
            run()
"""


#: The same, with an object in the place of what is wrapped.
OBJECTS = (
    SEGMENTS.replace("        return wrapper\n", "        return Splitting(wrapper, fn)\n")
    + """
    class Splitting:
        def __init__(self, call, plain):
            self._call = call
            self._plain = plain

        def __call__(self, *args):
            return self._call(*args)
"""
)


def answers(entry: str, text: str, segments: str = SEGMENTS) -> dict[str, tuple[str, str]]:
    """Answer and reason for each split point of a program that stands on `SEGMENTS`, by the line that makes it."""
    project = Project(MemorySources({"sglang/srt/segments.py": segments, "sglang/srt/model.py": text}))
    entry = f"sglang.srt.model:{entry}"
    reach = Reachability(link(project, [entry]), [entry])
    sites = find_sites(project).sites
    found = settled_splits(sites, [reach.of_site(site) for site in sites])
    lines = text.split("\n")
    return {
        lines[site.line - 1].strip(): (answer.reachable, answer.why)
        for site, answer in zip(sites, found, strict=True)
        if site.role == "break" and site.scope.module.name.endswith("model")
    }


@pytest.mark.parametrize("segments", [SEGMENTS, OBJECTS])
def test_a_split_point_is_reached_where_its_wrapper_is_chosen_and_then_called(segments: str) -> None:
    assert answers("record", CHOOSING, segments) == {
        "usual = split(_used)": ("yes", "called from the worker's entry"),
        "special = split(_unused)": ("no", "nothing that runs calls it: only its wrapper is made"),
    }


def test_nothing_is_split_where_no_segmented_graph_is_recorded() -> None:
    answer, why = answers("run", CHOOSING)["usual = split(_used)"]
    assert answer == "no"
    assert why.startswith("its wrapper splits no graph: ")


@pytest.mark.parametrize("end", ["unresolved", "no"])
def test_what_a_wrapper_does_between_segments_rests_on_whether_it_ends_one(end: Reach) -> None:
    sites = find_sites(Project(MemorySources({"sglang/srt/segments.py": SEGMENTS}))).sites
    given = [Reached(end if site.form == "segment-end" else "yes", "startup", site.form) for site in sites]
    found = {site.form: answer.reachable for site, answer in zip(sites, settled_splits(sites, given), strict=True)}
    assert {found[form] for form in ("segment-end", "break-record", "break-point", "eager-between")} == {end}
    assert found["replay"] == "yes"


REGISTRY = """
    import ext

    OPERATORS = []

    def register_split_op():
        def register(operator):
            ext.define(operator)
            OPERATORS.append(operator.__name__)
            return operator
        return register

    class Cuts:
        def __init__(self):
            self.names = list(OPERATORS)
"""
OPERATORS = """
    from sglang.srt.registry import Cuts, register_split_op

    @register_split_op()
    def attend(x):
        return x

    @register_split_op()
    def idle(x):
        return x

    def eager():
        attend(1)

    def compiled(config):
        if config.pieces:
            Cuts()
        attend(1)

    def cut():
        Cuts()
        attend(1)

    def cut_by_choice(request):
        Cuts()
        apply = idle if False else attend
        apply(request)
"""


@pytest.mark.parametrize(("entry", "expected"), [("cut", "yes"), ("cut_by_choice", "yes"), ("eager", "no")])
def test_an_operator_cuts_a_graph_where_what_is_registered_is_read(entry: str, expected: str) -> None:
    """Its module mentions no graph, and is found all the same."""
    project = Project(MemorySources({"sglang/srt/registry.py": REGISTRY, "sglang/srt/model.py": OPERATORS}))
    home = "sglang.srt.model:"
    reach = Reachability(link(project, [home + entry]), [home + entry])
    found = {site.scope.name: reach.of_site(site) for site in find_sites(project).sites if site.role == "break"}
    assert {name: answer.reachable for name, answer in found.items()} == {
        home + "attend": expected,
        home + "idle": "no",
    }
    if expected == "no":
        unread = "no graph is cut at operators: nothing that runs reads which are registered"
        assert found[home + "attend"].why == unread


def test_an_operator_is_open_where_only_doubtful_code_reads_what_is_registered() -> None:
    project = Project(MemorySources({"sglang/srt/registry.py": REGISTRY, "sglang/srt/model.py": OPERATORS}))
    home = "sglang.srt.model:"
    linked = link(project, [home + "cut"])
    linked.reached["sglang.srt.registry:Cuts.__init__"] = Truth.UNKNOWN
    reach = Reachability(linked, [home + "cut"])
    found = {site.scope.name: reach.of_site(site) for site in find_sites(project).sites if site.role == "break"}
    assert found[home + "attend"].reachable == "unresolved"


LISTED = """
    class Config:
        def __init__(self):
            self.split_ops = ["ours.attend", "ours.idle"]
"""
CALLING = """
    import torch
    from sglang.srt.listed import Config

    def attend(x):
        torch.ops.ours.attend(x)
        torch.ops.ours.other(x)
        torch.ops.ours.idle(x) if False else None

    def eager():
        attend(1)

    def cut():
        Config()
        attend(1)
"""


@pytest.mark.parametrize(("entry", "expected"), [("cut", "yes"), ("eager", "no")])
def test_operators_that_a_list_names_cut_a_graph_where_they_are_called(entry: str, expected: str) -> None:
    project = Project(MemorySources({"sglang/srt/listed.py": LISTED, "sglang/srt/model.py": CALLING}))
    start = f"sglang.srt.model:{entry}"
    reach = Reachability(link(project, [start]), [start])
    sites = [site for site in find_sites(project).sites if site.role == "break"]
    assert {site.api: reach.of_site(site).reachable for site in sites} == {
        "torch.ops.ours.attend": expected,
        "torch.ops.ours.idle": "no",
    }
    assert {family_of_site(site) for site in sites} == {"prefill-piecewise"}
