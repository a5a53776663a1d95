"""Components of a path: what the code that it captures comes to, and by which call."""

from __future__ import annotations

from sgl_graph.analyzer.records.pathmap import PathEntry

from .linked_paths import RUNNERS, linked_paths

ENTRY = "sglang.srt.server:run"
BACKENDS = """
    class AttentionBackend:
        def init_cuda_graph_state(self, size): ...

        def forward(self, batch): ...

    class Paged(AttentionBackend):
        def init_cuda_graph_state(self, size):
            pass

        def forward(self, batch):
            pass

    class Flat(AttentionBackend):
        def forward(self, batch):
            pass

    class Switching(AttentionBackend):
        def __init__(self):
            self.inner = Flat()

        def forward(self, batch):
            return getattr(self.inner, batch.method)(batch)

    class ManySteps:
        def __init__(self):
            self.steps = [Paged(), Paged()]

        def init_cuda_graph_state(self, size):
            for step in self.steps:
                step.init_cuda_graph_state(size)
"""
COMMUNICATORS = """
    class Reducer:
        def all_reduce(self, tensor):
            return tensor

    class Queue:
        def broadcast(self, item):
            pass
"""
SERVER = """
    from sglang.srt.backends import Flat, ManySteps, Paged, Switching
    from sglang.srt.distributed.device_communicators.all import Queue, Reducer
    from sglang.srt.runners import DecodeGraphRunner

    SWITCHING = Switching()

    class PrefillGraphRunner(DecodeGraphRunner):
        def forward(self, size):
            SWITCHING.forward(size)

    class DraftGraphRunner(DecodeGraphRunner):
        def record_all(self):
            self.backend = ManySteps()
            self.backend.init_cuda_graph_state(2)
            super().record_all()

    class PlainGraphRunner(DecodeGraphRunner):
        def __init__(self, model_runner):
            self.attention = Paged()
            self.reducer = Reducer()
            super().__init__(model_runner)

        def forward(self, size):
            self.reducer.all_reduce(self.attention.forward(size))

    def run():
        queue = Queue()
        queue.broadcast(1)
        PrefillGraphRunner(None)
        DraftGraphRunner(None)
        PlainGraphRunner(None)
        PlainGraphRunner(None).step(1)
        Flat().forward(1)
"""


def _paths() -> dict[str, PathEntry]:
    modules = {
        "runners": RUNNERS,
        "backends": BACKENDS,
        "distributed__device_communicators__all": COMMUNICATORS,
        "server": SERVER,
    }
    return {path.runner: path for path in linked_paths(ENTRY, modules).values()}


def _components(path: PathEntry) -> list[tuple[str, str, str]]:
    """(kind, class, who calls it) of each component."""
    return [
        (c.kind, c.class_, c.reached_at.qualname.partition(":")[2] if c.reached_at is not None else "")
        for c in path.components
    ]


def test_a_path_has_the_components_that_its_own_runner_comes_to() -> None:
    assert _components(_paths()["PlainGraphRunner"]) == [
        ("attention", "Paged", "PlainGraphRunner.__init__"),
        ("communication", "Reducer", "PlainGraphRunner.__init__"),
    ]


def test_what_several_backends_of_attention_are_driven_as_is_one_of_them() -> None:
    # No base says so: what prepares captured batches does. Another runner's closures, handed to the same table, do not count.
    assert _components(_paths()["DraftGraphRunner"]) == [
        ("attention", "ManySteps", "DraftGraphRunner.record_all"),
        ("attention", "Paged", "ManySteps.__init__"),
    ]


def test_what_a_component_holds_and_calls_by_name_alone_is_one_too() -> None:
    found = _paths()["PrefillGraphRunner"]
    assert _components(found) == [
        ("attention", "Flat", "PrefillGraphRunner.forward"),
        ("attention", "Switching", "PrefillGraphRunner.forward"),
    ]
    (flat, switching) = found.components
    lines = SERVER.split("\n")
    assert switching.reached_at is not None
    assert lines[switching.reached_at.line - 1].strip() == "SWITCHING.forward(size)"
    assert (flat.file, flat.line) == ("sglang/srt/backends.py", 14)


def test_what_runs_outside_of_captures_is_no_component() -> None:
    assert not any(c.class_ == "Queue" for path in _paths().values() for c in path.components)


#: Two runners that keep their graphs themselves, of which one borrows the other's loop.
BORROWING = """
    import torch
    from sglang.srt.backends import ManySteps, Paged

    class CudaGraphRunner:
        def __init__(self):
            self.graphs = {}
            self.attention = Paged()
            self.capture()

        def capture(self):
            def all_sizes():
                for size in (1, 2):
                    self.graphs[size] = self.capture_one(size)

            all_sizes()

        def capture_one(self, size):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.attention.init_cuda_graph_state(size)
            return graph

        def replay(self, size):
            self.graphs[size].replay()

    class DraftCudaGraphRunner:
        def __init__(self):
            self.graphs = {}
            self.steps = ManySteps()
            self.capture()

        def capture(self):
            CudaGraphRunner.capture(self)

        def capture_one(self, size):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.steps.init_cuda_graph_state(size)
            return graph

        def replay(self, size):
            self.graphs[size].replay()

    def run():
        CudaGraphRunner().replay(1)
        DraftCudaGraphRunner().replay(1)
"""


def test_a_runner_that_borrows_a_loop_lends_its_components_to_nobody() -> None:
    found = linked_paths("sglang.srt.borrowing:run", {"backends": BACKENDS, "borrowing": BORROWING})
    held = {path.runner: [component.class_ for component in path.components] for path in found.values()}
    assert held == {"CudaGraphRunner": ["Paged"], "DraftCudaGraphRunner": ["ManySteps", "Paged"]}
