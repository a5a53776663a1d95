"""Primitives are found by what code does with values, not by its names."""

from __future__ import annotations

from .capturing_programs import BASE, SEGMENTS, TABLE_OF_BASE
from .programs import search, sites

RUNNER = """
    import torch
    from sglang.srt.backend import Whole

    class Loop:
        def __init__(self, model):
            self.device_module = torch.get_device_module(model.device)
            self.table = Whole(self)
            self.fill()

        def fill(self):
            with self.table.session(None):
                for size in (1, 2):
                    self.table.record(size, lambda: size)

        def step(self, batch):
            return self.table.again(len(batch), batch)
"""
WORKER = """
    from sglang.srt.runner import Loop

    class Worker:
        def __init__(self, model):
            self.model = model
            self.loop = None

        def init_graphs(self):
            self.loop = Loop(self.model)

        def serve(self, batch):
            return self.loop.step(batch)
"""


def test_a_table_its_runner_and_the_worker_above() -> None:
    found = sites(backend=TABLE_OF_BASE, base=BASE, runner=RUNNER, worker=WORKER)
    assert found == [
        ("backend", 13, "capture", "session"),
        ("backend", 14, "pool", "handle"),
        ("backend", 19, "capture", "constructor"),
        ("backend", 20, "capture", "context"),
        ("backend", 22, "dispatch", "store"),
        ("backend", 25, "replay", "replay"),
        ("runner", 12, "capture", "session"),
        ("runner", 14, "capture", "table-capture"),
        ("runner", 17, "replay", "table-replay"),
        ("worker", 10, "capture", "runner"),
        ("worker", 13, "replay", "runner-replay"),
    ]


def test_abstract_methods_comments_and_other_replays_are_no_sites() -> None:
    decoys = """
        import torch

        class Adapter:
            '''graph.replay() is called with torch.cuda.graph(g).'''

            def replay(self) -> None:
                self.mode = 1  # torch.cuda.CUDAGraph() is not made here

        class User:
            def __init__(self):
                self.adapter = Adapter()

            def go(self):
                self.adapter.replay()
    """
    assert sites(decoys=decoys, base=BASE, graphs="import torch\n\ndef f():\n    return 'CUDAGraph'\n") == []


def test_a_class_bound_to_a_local_and_a_context_in_a_local() -> None:
    program = """
        import torch
        from functools import partial

        ON_XPU = False

        def take(adapter, stream):
            kind = torch.xpu.XPUGraph if ON_XPU else torch.cuda.CUDAGraph
            graph = kind()
            if adapter is not None:
                context = partial(adapter.cuda_graph, tag="graphs")
            else:
                context = torch.cuda.graph
            with context(graph, stream=stream):
                pass
            return graph
    """
    assert sites(local=program) == [
        ("local", 8, "capture", "chosen"),
        ("local", 9, "capture", "constructor"),
        ("local", 13, "dispatch", "chosen"),
        ("local", 14, "capture", "context"),
    ]


def test_pools_are_found_where_nothing_else_of_graphs_stands() -> None:
    found = sites(
        shared="""
            import torch

            def shared_pool():
                return torch.cuda.graph_pool_handle()
        """,
        allocator="""
            current = None

            def note(handle):
                global current
                current = handle

            def show(handle):
                print(handle)
        """,
        compiled="""
            from sglang.srt.allocator import note, show
            from sglang.srt.shared import shared_pool

            def prepare(model):
                pool = shared_pool()
                note(pool)
                show(pool)
        """,
    )
    assert ("compiled", 6, "pool", "pool-of") in found
    assert [item for item in found if item[0] == "compiled" and item[3] != "pool-of"] == [
        ("compiled", 7, "pool", "pool-bind")
    ]


def test_a_segmented_graph_with_its_split_points() -> None:
    found = sites(segments=SEGMENTS)
    assert [item for item in found if item[2] == "break"] == [
        ("segments", 12, "break", "segment-end"),
        ("segments", 14, "break", "break-record"),
        ("segments", 28, "break", "eager-between"),
        ("segments", 52, "break", "break-point"),
    ]
    assert ("segments", 26, "replay", "replay") in found
    assert ("segments", 60, "capture", "container") in found
    assert ("segments", 61, "capture", "container-context") in found
    assert ("segments", 66, "replay", "container-replay") in found


def test_memory_allocated_for_graphs_before_the_capture_is_found_at_its_outermost_function() -> None:
    manager = """
        import torch

        class Scratch:
            def init_cuda_graph_row_buffers(self, rows):
                self.rows = torch.empty(rows)

        class Nothing:
            def init_cuda_graph_row_buffers(self, rows):
                pass

        def init_model_cuda_graph_row_buffers(scratch, rows):
            scratch.init_cuda_graph_row_buffers(rows)

        def init_cuda_graph_name_buffers(names):
            return [name for name in names]
    """
    found = [(s.scope.qualname, s.role) for s in search(manager=manager).sites if s.form == "preallocation"]
    assert found == [("init_model_cuda_graph_row_buffers", "pool")]
