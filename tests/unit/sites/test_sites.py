"""Primitives are found by what code does with values, not by its names."""

from __future__ import annotations

from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings

from .programs import search, sites

BACKEND = """
    import torch
    from contextlib import contextmanager
    from sglang.srt.base import Table

    class Whole(Table):
        def __init__(self, owner):
            self._kept = {}
            self._pool = None
            self._device = owner.device_module

        @contextmanager
        def session(self, stream):
            self._pool = self._device.graph_pool_handle()
            self._stream = stream
            yield

        def record(self, key, fn):
            thing = torch.cuda.CUDAGraph()
            with self._device.graph(thing, pool=self._pool):
                fn()
            self._kept[key] = thing

        def again(self, key, batch):
            self._kept[key].replay()
"""
BASE = """
    from abc import ABC, abstractmethod

    class Table(ABC):
        @abstractmethod
        def session(self, stream): ...

        @abstractmethod
        def record(self, key, fn): ...

        @abstractmethod
        def again(self, key, batch): ...
"""
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
    found = sites(backend=BACKEND, base=BASE, runner=RUNNER, worker=WORKER)
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


SEGMENTS = """
    import contextvars
    import torch

    current: contextvars.ContextVar["Recording | None"] = contextvars.ContextVar("current", default=None)

    def split(fn):
        def wrapper(*args):
            recording = current.get()
            if recording is None:
                return fn(*args)
            recording.finish()
            out = fn(*args)
            recording.whole.between.append(lambda: fn(*args))
            recording.start()
            return out
        return wrapper

    class Segments:
        def __init__(self):
            self.parts = []
            self.between = []

        def run_all(self):
            for i, part in enumerate(self.parts):
                part.replay()
                if i < len(self.between):
                    self.between[i]()

    class Recording:
        def __init__(self, whole: Segments, pool=None):
            self.whole = whole
            self.pool = pool

        def __enter__(self):
            self.start()
            return self

        def __exit__(self, *args):
            self.finish()

        def start(self):
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(pool=self.pool)
            self.open = graph

        def finish(self):
            self.open.capture_end()
            self.whole.parts.append(self.open)

    @split
    def eager_part(x):
        return x

    class Table:
        def __init__(self):
            self.kept = {}

        def record(self, key, fn):
            whole = Segments()
            with Recording(whole):
                fn()
            self.kept[key] = whole

        def again(self, key):
            self.kept[key].run_all()
"""


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


def classes(**modules: str) -> dict[tuple[int, str], str]:
    found = search(**modules)
    classifier = Classifier(found.owners, found.sites)
    return {(site.line, site.role): classifier.classify(site, Surroundings("cuda"))[0] for site in found.sites}


def test_segments_are_inspectable_their_container_is_partial() -> None:
    found = classes(segments=SEGMENTS)
    assert found[43, "capture"] == found[44, "capture"] == found[48, "capture"] == "lifetime-inspectable"
    assert found[26, "replay"] == "lifetime-inspectable"
    assert found[66, "replay"] == "partial"
    assert found[28, "break"] == "unsupported"


def test_an_executable_behind_torch_is_partial() -> None:
    program = """
        from cuda.bindings import runtime as rt

        class Proxy:
            def __init__(self, raw, home):
                self.raw = raw
                self.home = home

            def replay(self, stream=None):
                self.home.launch(self, stream)

        class Home:
            def take(self, raw):
                self.exec = rt.cudaGraphInstantiateWithFlags(raw, 0)
                return Proxy(raw, self)

            def launch(self, proxy, stream):
                rt.cudaGraphExecUpdate(self.exec, proxy.raw)
                rt.cudaGraphLaunch(self.exec, stream)
    """
    found = classes(execs=program)
    assert found[10, "replay"] == found[19, "replay"] == "partial"
    assert {role for _, role in found} == {"replay", "update"}
    assert all(value == "partial" for value in found.values())


def test_other_devices_are_unsupported_also_by_the_test_they_stand_under() -> None:
    program = """
        import torch

        def on_xpu():
            return hasattr(torch, "xpu") and torch.xpu.is_available()

        IS_XPU = on_xpu()

        def begin(pool):
            kind = torch.xpu.XPUGraph if IS_XPU else torch.cuda.CUDAGraph
            graph = kind()
            if IS_XPU:
                graph.capture_begin(pool)
            else:
                graph.capture_begin(pool=pool)
            return graph

        class Ascend:
            def make(self):
                self.graph = torch.npu.NPUGraph()

            def again(self, key):
                self.graph.replay()
    """
    found = classes(devices=program)
    assert found[13, "capture"] == "unsupported"
    assert found[15, "capture"] == "lifetime-inspectable"
    assert found[20, "capture"] == found[23, "replay"] == "unsupported"


def test_a_replay_is_only_observable_where_nodes_cannot_be_read() -> None:
    found = search(backend=BACKEND, base=BASE)
    classifier = Classifier(found.owners, found.sites)
    kinds = {classifier.classify(site, Surroundings("hip"))[0] for site in found.sites if site.role == "replay"}
    assert kinds == {"replay-observable-only"}


def test_the_memory_saver_makes_a_capture_partial_only_when_in_force() -> None:
    program = """
        import torch
        import torch_memory_saver

        class Saver:
            def cuda_graph(self, **kwargs):
                return torch_memory_saver.cuda_graph(**kwargs)

        def take(saver: Saver | None):
            graph = torch.cuda.CUDAGraph()
            context = saver.cuda_graph if saver is not None else torch.cuda.graph
            with context(graph):
                pass
            return graph
    """
    found = search(saver=program)
    classifier = Classifier(found.owners, found.sites)
    entered = next(site for site in found.sites if site.line == 12)
    assert classifier.classify(entered, Surroundings("cuda"))[0] == "lifetime-inspectable"
    assert classifier.classify(entered, Surroundings("cuda", saver_active=True))[0] == "partial"


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
    found = search(lazy=lazy, backend=BACKEND, base=BASE).owners
    assert found.on_demand() == {"sglang.srt.lazy:Lazy"}
    assert "sglang.srt.backend:Whole" in found.tables
