"""Paths inside paths: what captures or replays in the region that another path captures."""

from __future__ import annotations

import pytest

from .capturing_programs import SEGMENTS
from .linked_paths import linked_paths

ENTRY = "sglang.srt.server:run"
INNER = """
    import torch

    def eager(batch):
        pass

    class VisionGraphs:
        def __init__(self):
            self.kept = {}

        def run(self, batch):
            %s
            if batch not in self.kept:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    eager(batch)
                self.kept[batch] = graph
            self.kept[batch].replay()
"""
OUTER = """
    import os
    import torch
    from sglang.srt.inner import VisionGraphs

    class DecodeGraphs:
        def __init__(self):
            self.kept = {}
            self.vision = VisionGraphs()

        def capture(self, key, fn):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                fn()
            self.kept[key] = graph

        def replay(self, key):
            self.kept[key].replay()

    class DecodeGraphRunner:
        def __init__(self):
            self.graphs = DecodeGraphs()
            self.vision = VisionGraphs()
            self.capture_all()

        def capture_all(self):
            %s
            for size in (1, 2):
                self.graphs.capture(size, lambda: self.forward(size))

        def forward(self, size):
            %s

        def step(self, size):
            self.graphs.replay(size)
"""
SERVER = """
    from sglang.srt.outer import DecodeGraphRunner

    def run():
        runner = DecodeGraphRunner()
        runner.vision.run(0)
        runner.step(1)
"""


def nested(*, inside: str = "pass", before: str = "pass", asks: str = "pass") -> dict[str, str | None]:
    """Path to the path around it, when the captured function does `inside`, and what precedes the captures `before`."""
    modules = {"inner": INNER % asks, "outer": OUTER % (before, inside), "server": SERVER}
    return {name: path.nested_in for name, path in linked_paths(ENTRY, modules).items()}


PREFILL = """
    class PrefillGraphRunner(DecodeGraphRunner):
        pass
"""
OUTSIDE = {"target:decode": None, "target:vit": None}


def test_graphs_that_a_captured_function_replays_are_nested_in_its_path() -> None:
    around = "target:decode:DecodeGraphRunner:DecodeGraphs"
    assert nested(inside="self.vision.run(size)") == {"target:decode": None, "target:vit": around}


def test_what_two_runners_share_nests_neither_in_the_other() -> None:
    shared = SERVER.replace("    def run():\n", PREFILL + "\n    def run():\n        PrefillGraphRunner().step(1)\n")
    assert "PrefillGraphRunner" in shared
    modules = {"inner": INNER % "pass", "outer": OUTER % ("pass", "self.graphs.replay(size)"), "server": shared}
    found = linked_paths(ENTRY, modules)
    assert {name: path.nested_in for name, path in found.items()} == {**OUTSIDE, "target:prefill-full": None}
    assert found["target:prefill-full"].backend == found["target:decode"].backend == "DecodeGraphs"


@pytest.mark.parametrize(
    "program",
    [
        {"before": "self.vision.run(0)"},
        # Whether it runs there is not settled, or it is settled that it does not.
        {"inside": "os.path.exists('x') and self.vision.run(size)"},
        {"inside": "if os.environ.get('x'): self.vision.run(size)"},
        {"inside": "if False: self.vision.run(size)"},
        {"inside": "self.vision.run(size)", "asks": "if torch.cuda.is_current_stream_capturing(): return eager(batch)"},
    ],
)
def test_what_may_run_elsewhere_is_nested_in_nothing(program: dict[str, str]) -> None:
    assert nested(**program) == OUTSIDE


SPLIT = """
    import torch
    from sglang.srt.segments import Table, split

    kept = {}

    def tune(work):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            work()
        kept[0] = graph
        kept[0].replay()

    def layer():
        pass

    tuned = split(%s)

    class PrefillGraphRunner:
        def __init__(self):
            self.table = Table()
            self.table.record(1, lambda: tuned(layer))

        def step(self):
            self.table.again(1)

    def run():
        tune(layer)
        PrefillGraphRunner().step()
"""


@pytest.mark.parametrize(
    ("handed", "around"), [("tune", "target:prefill-breakable:PrefillGraphRunner:Table"), ("layer", None)]
)
def test_what_is_handed_to_a_split_point_captures_inside_the_segmented_path(handed: str, around: str | None) -> None:
    found = linked_paths(ENTRY, {"segments": SEGMENTS, "server": SPLIT % handed})
    assert {name: path.nested_in for name, path in found.items()} == {
        "target:prefill-breakable": None, "target:other": around,
    }  # fmt: skip
