"""Keys of captured graphs are read from where the graphs are filed."""

from __future__ import annotations

from sgl_graph.analyzer.static.sites.labels import Keys

from .programs import search


def key_of(module: str, class_name: str) -> tuple[str, str, int]:
    found = search(tables=module)
    key = Keys(found.owners).of_class(f"sglang.srt.tables:{class_name}")
    assert key is not None
    return key.key, key.expression, key.stored_at.line


def test_a_key_class_shows_its_fields() -> None:
    program = """
        import torch
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Shape:
            size: int
            variant: str | None = None

        class Table:
            def __init__(self):
                self.kept = {}

            def record(self, shape: Shape, fn):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    fn()
                self.kept[shape] = graph

            def again(self, shape):
                self.kept[shape].replay()
    """
    assert key_of(program, "Table") == ("Shape(size, variant)", "shape", 18)


def test_a_tuple_key_is_followed_through_the_function_that_makes_it() -> None:
    program = """
        import torch

        class Table:
            def __init__(self):
                self.kept = {}

            def name(self, x, layout):
                bounds = (layout.start, layout.end)
                return (x.shape[0], bounds)

            def run(self, x, layout):
                key = self.name(x, layout)
                if key not in self.kept:
                    self.record(key, x)
                self.kept[key].replay()

            def record(self, key, x):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    x.sum()
                self.kept[key] = graph
    """
    assert key_of(program, "Table") == ("(x.shape[0], (layout.start, layout.end))", "key", 22)


def test_a_graph_kept_in_a_record_has_the_key_of_the_record() -> None:
    program = """
        import torch

        class Table:
            def __init__(self):
                self.states = {}

            def run(self, key, fn):
                state = self.states.get(key)
                if state is None:
                    state = {"graph": None}
                    self.states[key] = state
                if state["graph"] is not None:
                    state["graph"].replay()
                    return
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    fn()
                state["graph"] = graph
                graph.replay()
    """
    key = key_of(program, "Table")
    assert key[1:] == ("key", 19)


def test_a_graph_kept_alone_has_no_key() -> None:
    program = """
        import torch

        class Single:
            def __init__(self):
                self.graph = None

            def record(self, fn):
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    fn()

            def again(self, batch):
                self.graph.replay()
    """
    found = search(tables=program)
    assert Keys(found.owners).of_class("sglang.srt.tables:Single") is None


def test_where_the_graph_is_filed_says_more_than_where_its_record_was_made() -> None:
    program = """
        import torch

        class Entry:
            number: int
            graph: torch.cuda.CUDAGraph | None = None

        class Table:
            def __init__(self, numbers):
                self.entries: dict[int, Entry] = {}
                for number in numbers:
                    self.entries[number] = Entry(number)

            def __call__(self, count, fn):
                entry = self.entries[count]
                if entry.graph is None:
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        fn()
                    entry.graph = graph
                    return
                entry.graph.replay()
    """
    assert key_of(program, "Table") == ("count", "count", 20)


#: Methods of a class that keeps its graphs itself.
CAPTURES_ONE = """
            def capture_one(self, size):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    print(size)
                return graph

            def replay(self, size):
                self.graphs[size].replay()
"""


def test_a_method_that_is_borrowed_from_another_class_files_the_graph() -> None:
    """`Runner.capture(self)`: the lender's loop files what the borrower's own method captures."""
    found = search(
        runner="""
        import torch

        class Runner:
            def __init__(self):
                self.graphs = {}

            def capture(self):
                for size in (1, 2):
                    self.graphs[size] = self.capture_one(size)
        """
        + CAPTURES_ONE,
        draft="""
        import torch
        from sglang.srt.runner import Runner

        class DraftRunner:
            def __init__(self):
                self.graphs = {}
                Runner.capture(self)
        """
        + CAPTURES_ONE,
    )
    key = Keys(found.owners).of_class("sglang.srt.draft:DraftRunner")
    assert key is not None
    assert (key.expression, key.stored_at.qualname) == ("size", "sglang.srt.runner:Runner.capture")


def test_a_key_of_two_forms_shows_both() -> None:
    found = search(
        runner="""
        import torch

        class Runner:
            def __init__(self):
                self.graphs = {}

            def capture(self, stream=None):
                for size in (1, 2):
                    graph = torch.cuda.CUDAGraph()
                    with torch.cuda.graph(graph):
                        print(size)
                    key = size if stream is None else f"{stream}_{size}"
                    self.graphs[key] = graph

            def replay(self, size):
                self.graphs[size].replay()
        """
    )
    key = Keys(found.owners).of_class("sglang.srt.runner:Runner")
    assert key is not None
    assert (key.key, key.expression) == ('size if stream is None else f"{stream}_{size}"', "key")
