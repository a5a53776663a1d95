"""A segmented graph whose segments the checkout launches itself is not in torch's sight."""

from __future__ import annotations

import pytest

from .capturing_programs import SEGMENTS
from .linked_paths import linked_paths

ENTRY = "sglang.srt.scheduler:run"
#: Executables that are shared between graphs that are alike, launched through cuda-python.
SHARED = """
    from cuda.bindings import runtime as rt

    class Shared:
        def __init__(self, graph):
            self.executables = Executables(graph)

        def replay(self):
            self.executables.replay(self)

    class Executables:
        def __init__(self, graph):
            self.executable = rt.cudaGraphInstantiate(graph.raw_cuda_graph(), 0)

        def replay(self, graph):
            rt.cudaGraphLaunch(self.executable, 0)
"""
SCHEDULER = """
    from sglang.srt.segments import Table

    class DecodeGraphRunner:
        def __init__(self):
            self.table = Table()
            for size in (1, 2):
                self.table.record(size, lambda: None)

        def step(self, size):
            self.table.again(size)

    def run():
        DecodeGraphRunner().step(1)
"""


@pytest.mark.parametrize(("share", "expected"), [("False", "lifetime-inspectable"), ("True", "partial")])
def test_segments_that_the_checkout_launches_itself_make_a_path_partial(share: str, expected: str) -> None:
    sharing = SEGMENTS.replace(
        "self.whole.parts.append(self.open)",
        f"self.whole.parts.append(Shared(self.open) if {share} else self.open)",
    ).replace("import torch\n", "import torch\n    from sglang.srt.shared import Shared\n", 1)
    found = linked_paths(ENTRY, {"segments": sharing, "shared": SHARED, "scheduler": SCHEDULER})
    path = found["target:decode"]
    assert (path.runner, path.backend, path.inspectability) == ("DecodeGraphRunner", "Table", expected)
    if share == "True":
        assert any("cuda-python" in reason.text for reason in path.reasons)
