"""Whether captures are reached, and by what: calls that start them, and loops that a request turns."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.sites.search import find_sites

from .capturing_programs import TABLE
from .programs import MemorySources

STARTING = """
    ENABLED = {enabled}

    class Runner:
        def __init__(self):
            self.table = Table()
            self.table.record(1, print)

        def execute(self):
            self.table.again(1)

    def begin_graphs():
        if ENABLED:
            Runner().execute()

    def boot_graphs():
        begin_graphs()

    def run():
        boot_graphs()
"""


@pytest.mark.parametrize(("enabled", "expected"), [(True, "yes"), (False, "no")])
def test_a_call_that_starts_captures_is_reached_where_there_are_some(enabled: bool, expected: str) -> None:
    project = Project(MemorySources({"sglang/srt/server.py": TABLE + STARTING.format(enabled=enabled)}))
    entry = "sglang.srt.server:run"
    reach = Reachability(link(project, [entry], kept_externals=("torch.cuda",)), [entry])
    sites = find_sites(project).sites
    found = reach.settled_entries(sites, [reach.of_site(site) for site in sites])
    answers = {site.api: answer for site, answer in zip(sites, found, strict=True) if site.form == "entry"}
    assert {api: answer.reachable for api, answer in answers.items()} == {
        "begin_graphs": expected,
        "boot_graphs": expected,
    }
    assert all(answer.why == "what it calls captures nothing in this configuration" for answer in answers.values()) is (
        not enabled
    )
    assert {a.reachable for s, a in zip(sites, found, strict=True) if s.form == "constructor"} == {expected}


ENCODING = """
    import torch

    class Encoder:
        def __init__(self):
            self.graphs = {}

        def encode(self, shape):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                print(shape)
            self.graphs[shape] = graph

    def run_encoder():
        encoder = Encoder()
        while True:
            encoder.encode(1)

    def launch_encoder():
        run_encoder()
"""


def test_what_an_encoder_captures_in_its_loop_is_captured_by_a_request() -> None:
    project = Project(MemorySources({"sglang/srt/server.py": ENCODING}))
    entry = "sglang.srt.server:launch_encoder"
    reach = Reachability(link(project, [entry], kept_externals=("torch.cuda",)), [entry])
    found = {site.form: reach.of_site(site) for site in find_sites(project).sites if site.role == "capture"}
    assert {form: (answer.reachable, answer.trigger) for form, answer in found.items()} == {
        "constructor": ("yes", "request"),
        "context": ("yes", "request"),
    }
