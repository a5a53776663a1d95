"""Constructs 11 to 14 of the twenty that linking a serving checkout rests on: capture contexts, graph classes, segments and break points."""

from __future__ import annotations

from pathlib import Path

from .programs import program


def test_11_capture_context_in_a_local(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from functools import partial
        import torch
        from saver import Adapter

        class Backend:
            def __init__(self, enabled):
                self.enabled = enabled
                self.adapter = Adapter()
                self.device = torch.get_device_module()

            def capture_one(self, forward):
                graph = torch.cuda.CUDAGraph()
                if self.enabled:
                    context = partial(self.adapter.cuda_graph, tag="graph")
                else:
                    context = self.device.graph
                with context(cuda_graph=graph, pool=None):
                    forward()
                graph.replay()

        def body():
            pass

        def run(enabled):
            Backend(enabled).capture_one(body)

        # file: saver.py
        from contextlib import contextmanager
        import torch

        class Adapter:
            @contextmanager
            def cuda_graph(self, cuda_graph, pool, tag):
                self.mark(tag)
                with torch.cuda.graph(cuda_graph, pool=pool):
                    yield

            def mark(self, tag):
                pass
        """,
    )
    capture = "main:Backend.capture_one"
    assert p.edges(capture) == {("saver:Adapter.cuda_graph", "direct"), ("main:body", "direct")}
    assert p.edges("saver:Adapter.cuda_graph") == {("saver:Adapter.mark", "type")}
    entered = [call for call in p.linked.calls[capture] if call.entered]
    assert [call.text for call in entered] == ["context"]
    assert entered[0].externals == {"torch.get_device_module().graph"}
    assert p.call(capture, "graph.replay").externals == {"torch.cuda.CUDAGraph().replay"}
    assert p.call("saver:Adapter.cuda_graph", "torch.cuda.graph").entered


def test_12_class_in_a_local_by_a_conditional_expression(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import torch
        from dedup import Deduped

        def run(dedup):
            kind = Deduped if dedup else torch.cuda.CUDAGraph
            graph = kind()
            graph.replay()

        def never():
            kind = Deduped if False else torch.cuda.CUDAGraph
            kind().replay()

        # file: dedup.py
        class Deduped:
            def __init__(self):
                self.graph = None
            def replay(self):
                pass
        """,
        entries=("main:run", "main:never"),
    )
    assert p.edges("main:run") == {("dedup:Deduped.__init__", "direct"), ("dedup:Deduped.replay", "type")}
    call = p.call("main:run", "kind")
    assert (call.constructs, call.externals) == ({"dedup:Deduped"}, {"torch.cuda.CUDAGraph"})
    assert p.call("main:run", "graph.replay").externals == {"torch.cuda.CUDAGraph().replay"}
    assert p.edges("main:never") == set()
    assert p.externals("main:never") == {"torch.cuda.CUDAGraph", "torch.cuda.CUDAGraph().replay"}


def test_13_segments_of_either_class_and_a_mixin_that_finds_state_with_getattr(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from breakable import Breakable

        def run(dedup):
            graph = Breakable(dedup)
            graph.capture()
            graph.replay()

        # file: breakable.py
        import torch
        from mixin import DedupMixin, Deduped

        class Breakable(DedupMixin):
            def __init__(self, dedup):
                self.dedup = dedup
                self.segments = []

            def capture(self):
                graph = torch.cuda.CUDAGraph()
                self.segments.append(Deduped(graph) if self.dedup else graph)
                self._mark()

            def replay(self):
                for segment in self.segments:
                    segment.replay()
                self.tables().clear_all()

        # file: mixin.py
        import torch

        class Table:
            def clear_all(self):
                pass

        class Deduped:
            def __init__(self, graph):
                self.executable = graph

            def replay(self):
                torch.cuda.cudart().cudaGraphLaunch(self.executable)

        class DedupMixin:
            def _mark(self):
                self._tables = Table()

            def tables(self):
                found = getattr(self, "_tables", None)
                if found is None:
                    found = self._tables = Table()
                return found
        """,
    )
    replay = p.call("breakable:Breakable.replay", "segment.replay")
    assert replay.targets == {"mixin:Deduped.replay"}
    assert replay.externals == {"torch.cuda.CUDAGraph().replay"}
    assert replay.receivers == {"mixin:Deduped", "torch.cuda.CUDAGraph()"}
    assert p.edges("breakable:Breakable.replay") == {
        ("mixin:Deduped.replay", "type"),
        ("mixin:DedupMixin.tables", "type"),
        ("mixin:Table.clear_all", "type"),
    }
    assert p.externals("mixin:Deduped.replay") == {"torch.cuda.cudart", "torch.cuda.cudart().cudaGraphLaunch"}


EAGER = """
        # file: eager.py
        import functools
        from contextvars import ContextVar

        class Capture:
            def end_segment(self):
                pass

        current = ContextVar("current", default=None)

        def begin():
            current.set(Capture())

        class Callable:
            def __init__(self, graph_call, eager_call):
                self.graph_call = graph_call
                self.eager_call = eager_call

            def __call__(self, *args, **kwargs):
                return self.graph_call(*args, **kwargs)

            def run_eager(self, *args, **kwargs):
                return self.eager_call(*args, **kwargs)

            def __get__(self, instance, owner=None):
                if instance is None:
                    return self
                return Callable(
                    functools.partial(self.graph_call, instance),
                    functools.partial(self.eager_call, instance),
                )

        def eager_on_graph(fn=None, capture_stub=None, *, enable=None):
            if isinstance(fn, bool):
                enable, fn = fn, None
            if enable is False:
                return lambda inner: inner

            def decorator(inner):
                @functools.wraps(inner)
                def wrapper(*args, **kwargs):
                    capture = current.get()
                    if capture is None:
                        return inner(*args, **kwargs)
                    capture.end_segment()
                    if capture_stub is not None:
                        return capture_stub(*args, **kwargs)
                    return inner(*args, **kwargs)
                return Callable(wrapper, inner)

            if fn is not None:
                return decorator(fn)
            return decorator
"""

WRAPPER = "eager:eager_on_graph.<locals>.decorator.<locals>.wrapper"


def test_14_break_decorator_in_each_of_its_forms(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        EAGER
        + """
        # file: main.py
        from eager import begin, eager_on_graph
        from layers import bare, parametrised, Layer

        def run():
            begin()
            bare(1)

        def run_eager():
            bare.run_eager(1)

        def run_parametrised():
            parametrised(2)

        def run_method():
            Layer().attend(3)

        def run_assigned():
            Layer().assigned(4)

        # file: layers.py
        from eager import eager_on_graph

        @eager_on_graph
        def bare(x):
            return x

        def stub(x):
            return None

        @eager_on_graph(True)
        def parametrised(x):
            return x

        def plain(self, x):
            return x

        class Layer:
            @eager_on_graph
            def attend(self, x):
                return self.inner(x)

            def inner(self, x):
                return x

            assigned = eager_on_graph(plain, capture_stub=stub)
        """,
        entries=("main:run", "main:run_eager", "main:run_parametrised", "main:run_method", "main:run_assigned"),
    )
    assert p.edges("main:run") == {("eager:begin", "direct"), ("eager:Callable.__call__", "direct")}
    assert p.edges("main:run_eager") == {("eager:Callable.run_eager", "type")}
    assert p.edges("main:run_parametrised") == {("eager:Callable.__call__", "direct")}
    assert {target for target, _ in p.edges("main:run_method")} == {
        "eager:Callable.__get__",
        "eager:Callable.__call__",
    }
    assert {target for target, _ in p.edges("eager:Callable.__call__")} == {WRAPPER}
    inner = {"layers:bare", "layers:parametrised", "layers:Layer.attend", "layers:plain", "layers:stub"}
    assert {target for target, _ in p.edges(WRAPPER)} == {*inner, "eager:Capture.end_segment"}
    assert p.edges("layers:Layer.attend") == {("layers:Layer.inner", "type")}
    guards = p.guards(WRAPPER, "eager:Capture.end_segment")
    assert guards == [(("not (capture is None)", "unknown"),)]
