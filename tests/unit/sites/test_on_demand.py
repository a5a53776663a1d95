"""Which tables capture when they are asked to run and find no graph, and which are captured by a loop of somebody else."""

from __future__ import annotations

from .capturing_programs import BASE, TABLE_OF_BASE
from .programs import search

TABLES = """
    import torch

    class Lazy:
        def __init__(self):
            self.graphs = {}

        def run(self, key, x):
            if key not in self.graphs:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    self.forward(x)
                self.graphs[key] = graph
            self.graphs[key].replay()

    class Piece:
        def __init__(self, function):
            self.graphs = {}
            self.function = function

        def __call__(self, x):
            if x.shape not in self.graphs:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    self.function(x)
                self.graphs[x.shape] = graph
            self.graphs[x.shape].replay()

    class Eager:
        def __init__(self, keys):
            self.graphs = {}
            for key in keys:
                self.capture(key)

        def capture(self, key):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                pass
            self.graphs[key] = graph

        def replay(self, key):
            self.graphs[key].replay()
"""


def test_tables_that_capture_when_they_are_asked_to_run() -> None:
    owners = search(tables=TABLES).owners
    assert {"sglang.srt.tables:Lazy", "sglang.srt.tables:Piece", "sglang.srt.tables:Eager"} <= set(
        owners.tables.effects
    )
    assert owners.on_demand() == {"sglang.srt.tables:Lazy"}


def test_a_table_that_captures_what_a_replay_misses_does_so_on_demand() -> None:
    lazy = """
        import torch

        class Lazy:
            def __init__(self):
                self.graphs = {}

            def make(self, key, fn):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    fn()
                self.graphs[key] = graph

            def run(self, key, fn):
                if key not in self.graphs:
                    self.make(key, fn)
                self.graphs[key].replay()
    """
    found = search(lazy=lazy, backend=TABLE_OF_BASE, base=BASE).owners
    assert found.on_demand() == {"sglang.srt.lazy:Lazy"}
    assert "sglang.srt.backend:Whole" in found.tables
