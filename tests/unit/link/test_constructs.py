"""The twenty constructs that linking a serving checkout rests on: one small program each, and its exact edges."""

from __future__ import annotations

from pathlib import Path

from .programs import program


def test_01_missing_key_of_a_defaultdict_calls_the_factory(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from collections import defaultdict
        from runners import CpuRunner, NpuRunner
        from owner import Owner

        def run(device):
            owner = Owner(device)
            table = defaultdict(owner.runner_class, {"cpu": CpuRunner, "npu": NpuRunner})
            kind = table[device]
            runner = kind(owner)
            runner.replay()

        def fixed():
            owner = Owner("npu")
            table = defaultdict(owner.runner_class, {"cpu": CpuRunner, "npu": NpuRunner})
            table["npu"](owner).replay()

        # file: owner.py
        class Owner:
            def __init__(self, device):
                self.device = device

            def runner_class(self):
                from runners import CudaRunner
                return CudaRunner

        # file: runners.py
        class CudaRunner:
            def __init__(self, owner):
                self.owner = owner

            def replay(self):
                return self.owner.device

        class CpuRunner(CudaRunner):
            pass

        class NpuRunner(CudaRunner):
            def replay(self):
                return None
        """,
        entries=("main:run", "main:fixed"),
    )
    assert p.edges("main:run") == {
        ("owner:Owner.__init__", "direct"),
        ("owner:Owner.runner_class", "registry"),
        ("runners:CudaRunner.__init__", "direct"),
        ("runners:CudaRunner.replay", "type"),
        ("runners:NpuRunner.replay", "type"),
    }
    assert p.call("main:run", "kind").constructs == {"runners:CudaRunner", "runners:CpuRunner", "runners:NpuRunner"}
    # A key that is in the table makes nothing.
    assert p.edges("main:fixed") == {
        ("owner:Owner.__init__", "direct"),
        ("runners:CudaRunner.__init__", "registry"),
        ("runners:NpuRunner.replay", "type"),
    }


def test_02_backend_by_string_dispatch_with_lazy_imports_and_a_plugin_hook(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from platform_hooks import current

        def resolve(name, device):
            if device == "npu":
                from npu import NpuBackend
                return NpuBackend
            if name == "full":
                from full import FullBackend
                return FullBackend
            elif name == "breakable":
                from breakable import BreakableBackend
                return BreakableBackend
            hooked = current.backend_class()
            if hooked is not None:
                return hooked
            raise ValueError(name)

        def run(name):
            backend = resolve(name, "cuda")()
            backend.capture_one()

        # file: platform_hooks.py
        class Platform:
            def backend_class(self):
                return None

        current = Platform()

        # file: full.py
        class FullBackend:
            def capture_one(self):
                pass

        # file: breakable.py
        class BreakableBackend:
            def capture_one(self):
                pass

        # file: npu.py
        class NpuBackend:
            def capture_one(self):
                pass
        """,
    )
    assert p.edges("main:run") == {
        ("main:resolve", "direct"),
        ("full:FullBackend.capture_one", "type"),
        ("breakable:BreakableBackend.capture_one", "type"),
    }
    assert p.edges("main:resolve") == {("platform_hooks:Platform.backend_class", "type")}
    assert "npu.py" not in p.modules  # the excluded device's module is never read


def test_03_registry_filled_by_a_decorator_with_several_classes_under_one_name(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from registry import BACKENDS

        def run(runner):
            backend = BACKENDS["dsv4"](runner)
            backend.plan()

        def any_of(name, runner):
            BACKENDS[name](runner).plan()

        # file: registry.py
        import torch

        BACKENDS = {}

        def register(name):
            def decorator(fn):
                BACKENDS[name] = fn
                return fn
            return decorator

        @register("triton")
        def create_triton(runner):
            from kinds import Triton
            return Triton(runner)

        @register("dsv4")
        def create_dsv4(runner):
            if torch.version.hip:
                from kinds import Hip
                return Hip(runner)
            from kinds import Cuda
            return Cuda(runner)

        # file: kinds.py
        class Triton:
            def __init__(self, runner):
                self.runner = runner
            def plan(self):
                pass

        class Hip(Triton):
            def plan(self):
                pass

        class Cuda(Triton):
            def plan(self):
                pass
        """,
        entries=("main:run", "main:any_of"),
    )
    assert p.edges("main:run") == {
        ("registry:create_dsv4", "registry"),
        ("kinds:Hip.plan", "type"),
        ("kinds:Cuda.plan", "type"),
    }
    assert p.edges("main:any_of") == {
        ("registry:create_dsv4", "registry"),
        ("registry:create_triton", "registry"),
        ("kinds:Hip.plan", "type"),
        ("kinds:Cuda.plan", "type"),
        ("kinds:Triton.plan", "type"),
    }
    assert p.guards("registry:create_dsv4", "kinds:Triton.__init__") == [
        (("torch.version.hip", "unknown"),),
        (("not (torch.version.hip)", "unknown"),),
    ]


def test_04_wrapper_chosen_by_config_class_and_class_named_by_a_string(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from wrap import wrap
        from base import Full
        from config import LinearConfig, PlainConfig

        def run():
            wrap(LinearConfig(), Full()).plan()

        def plain():
            wrap(PlainConfig(), Full()).plan()

        # file: config.py
        class PlainConfig:
            pass

        class LinearConfig:
            backend = "linear.backend.LinearBackend"

        # file: base.py
        class Full:
            def plan(self):
                pass

        # file: wrap.py
        import importlib
        from config import LinearConfig
        from hybrid import Hybrid

        def import_class(dotted):
            module_path, name = dotted.rsplit(".", 1)
            module = importlib.import_module(module_path)
            return getattr(module, name)

        def wrap(config, full):
            if isinstance(config, LinearConfig):
                kind = import_class(config.backend)
                return Hybrid(full, kind())
            return full

        # file: hybrid.py
        class Hybrid:
            def __init__(self, full, linear):
                self.full = full
                self.linear = linear

            def plan(self):
                self.full.plan()
                self.linear.plan()

        # file: linear/backend.py
        class LinearBackend:
            def plan(self):
                pass
        """,
        entries=("main:run", "main:plain"),
    )
    assert p.edges("hybrid:Hybrid.plan") == {("base:Full.plan", "type"), ("linear.backend:LinearBackend.plan", "type")}
    assert p.edges("wrap:wrap") == {("wrap:import_class", "direct"), ("hybrid:Hybrid.__init__", "direct")}
    assert p.call("wrap:wrap", "kind").constructs == {"linear.backend:LinearBackend"}
    assert ("hybrid:Hybrid.plan", "type") in p.edges("main:run")


def test_05_creator_lambda_called_three_times_and_names_forwarded_by_getattr(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from tbo import Tbo
        from triton_backend import Triton

        def run(size):
            backend = Tbo.init_new(lambda: Triton(size))
            backend.plan()
            backend.only_in_triton()
            for child in backend.children:
                child.plan()

        # file: tbo.py
        class Tbo:
            def __init__(self, primary, children):
                self.primary = primary
                self.children = children

            @classmethod
            def init_new(cls, creator):
                return cls(primary=creator(), children=[creator() for _ in range(2)])

            def plan(self):
                self.primary.plan()

            def __getattr__(self, name):
                if name == "primary":
                    raise AttributeError(name)
                return getattr(self.primary, name)

        # file: triton_backend.py
        class Triton:
            def __init__(self, size):
                self.size = size
            def plan(self):
                pass
            def only_in_triton(self):
                pass
        """,
    )
    assert p.edges("main:run") == {
        ("tbo:Tbo.init_new", "direct"),
        ("tbo:Tbo.plan", "type"),
        ("tbo:Tbo.__getattr__", "direct"),
        ("triton_backend:Triton.only_in_triton", "type"),
        ("triton_backend:Triton.plan", "type"),
    }
    assert p.edges("tbo:Tbo.init_new") == {("tbo:Tbo.__init__", "direct"), ("main:run.<locals>.<lambda:5>", "direct")}
    assert p.edges("tbo:Tbo.plan") == {("triton_backend:Triton.plan", "type")}


def test_06_callee_that_depends_on_the_batch(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from modes import Mode
        from hybrid import Hybrid, Prefill, Decode

        def run(mode: Mode):
            Hybrid(Prefill(), Decode()).forward(mode)

        def decode_only():
            Hybrid(Prefill(), Decode()).forward(Mode.DECODE)

        # file: modes.py
        from enum import IntEnum, auto

        class Mode(IntEnum):
            EXTEND = auto()
            DECODE = auto()

            def is_decode(self):
                return self == Mode.DECODE

        # file: hybrid.py
        class Prefill:
            def forward(self):
                pass

        class Decode:
            def forward(self):
                pass

        class Hybrid:
            def __init__(self, prefill, decode):
                self.prefill = prefill
                self.decode = decode

            def _select(self, mode):
                if mode.is_decode():
                    return self.decode
                return self.prefill

            def forward(self, mode):
                self._select(mode).forward()
        """,
        entries=("main:run", "main:decode_only"),
    )
    assert p.edges("hybrid:Hybrid.forward") == {
        ("hybrid:Hybrid._select", "type"),
        ("hybrid:Prefill.forward", "type"),
        ("hybrid:Decode.forward", "type"),
    }
    assert p.edges("hybrid:Hybrid._select") == {("modes:Mode.is_decode", "type")}


def test_07_dict_of_bound_methods_that_return_a_pair(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from factory import Factory

        def run(name):
            stamp, backend = Factory(name).create()
            backend.plan()

        def fixed():
            stamp, backend = Factory("fa3").create()
            backend.plan()

        # file: factory.py
        class Factory:
            def __init__(self, name):
                self.name = name

            def create(self):
                table = {
                    "triton": self._triton,
                    "fa3": self._fa3,
                    "nsa": self._triton,
                }
                return self._create(table)

            def _create(self, table):
                if self.name not in table:
                    raise ValueError(self.name)
                return table[self.name]()

            def _triton(self):
                from kinds import Triton
                return "triton", Triton()

            def _fa3(self):
                from kinds import Fa3
                return "fa3", Fa3()

        # file: kinds.py
        class Triton:
            def plan(self):
                pass

        class Fa3:
            def plan(self):
                pass
        """,
    )
    assert p.edges("factory:Factory._create") == {
        ("factory:Factory._triton", "registry"),
        ("factory:Factory._fa3", "registry"),
    }
    assert p.edges("main:run") == {
        ("factory:Factory.__init__", "direct"),
        ("factory:Factory.create", "type"),
        ("kinds:Triton.plan", "type"),
        ("kinds:Fa3.plan", "type"),
    }


def test_08_device_to_class_dict_read_inside_a_lambda(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from worker import Worker

        def run(device):
            Worker(device).capture()

        # file: worker.py
        from runners import CudaRunner, NpuRunner

        def select(builtin, plugged=None):
            if plugged is not None:
                return plugged()
            return builtin()

        class Worker:
            def __init__(self, device):
                self.device = device

            def capture(self):
                table = {"cuda": CudaRunner, "musa": CudaRunner, "npu": NpuRunner}
                kind = select(builtin=lambda: table[self.device])
                runner = kind(self)
                runner.capture()

        # file: runners.py
        class CudaRunner:
            def __init__(self, worker):
                self.worker = worker
            def capture(self):
                pass

        class NpuRunner:
            def __init__(self, worker):
                self.worker = worker
            def capture(self):
                pass
        """,
    )
    assert p.edges("worker:Worker.capture") == {
        ("worker:select", "direct"),
        ("runners:CudaRunner.__init__", "direct"),
        ("runners:NpuRunner.__init__", "direct"),
        ("runners:CudaRunner.capture", "type"),
        ("runners:NpuRunner.capture", "type"),
    }
    assert p.edges("worker:select") == {("worker:Worker.capture.<locals>.<lambda:14>", "direct")}


def test_09_worker_class_by_algorithm_enum_lazy_imports_and_registered_plugins(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from spec import Algorithm

        def run(name: str):
            algorithm = Algorithm.from_string(name)
            kind = algorithm.create_worker()
            kind().draft()

        def eagle():
            Algorithm.from_string("EAGLE").create_worker()().draft()

        # file: spec.py
        from enum import Enum
        from plugins import PLUGINS

        class Algorithm(Enum):
            EAGLE = "EAGLE"
            NGRAM = "NGRAM"

            @classmethod
            def from_string(cls, name):
                if name in PLUGINS:
                    return PLUGINS[name]
                return cls[name.upper()]

            def is_eagle(self):
                return self == Algorithm.EAGLE

            def create_worker(self):
                if self.is_eagle():
                    from eagle import EagleWorker
                    return EagleWorker
                elif self is Algorithm.NGRAM:
                    from ngram import NgramWorker
                    return NgramWorker
                raise ValueError(self)

        # file: plugins.py
        PLUGINS = {}

        class CustomAlgorithm:
            def __init__(self, name, factory):
                self.name = name
                self.factory = factory

            def create_worker(self):
                return self.factory()

        def register(name):
            def wrap(factory):
                PLUGINS[name] = CustomAlgorithm(name, factory)
                return factory
            return wrap

        @register("FROZEN")
        def frozen():
            from frozen import FrozenWorker
            return FrozenWorker

        # file: eagle.py
        class EagleWorker:
            def draft(self):
                pass

        # file: ngram.py
        class NgramWorker:
            def draft(self):
                pass

        # file: frozen.py
        class FrozenWorker:
            def draft(self):
                pass
        """,
        entries=("main:run", "main:eagle"),
    )
    assert {target for target, _ in p.edges("main:run")} == {
        "spec:Algorithm.from_string",
        "spec:Algorithm.create_worker",
        "plugins:CustomAlgorithm.create_worker",
        "eagle:EagleWorker.draft",
        "ngram:NgramWorker.draft",
        "frozen:FrozenWorker.draft",
    }
    assert p.edges("plugins:CustomAlgorithm.create_worker") == {("plugins:frozen", "type")}


def test_10_subclass_without_super_init_and_an_override_that_the_inherited_method_calls(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from draft import DraftRunner

        def run(backend):
            DraftRunner(backend).capture()

        # file: decode.py
        from keys import Key
        from backends import Full

        class DecodeRunner:
            def __init__(self, model):
                self.model = model
                self.backend = Full()
                self.capture()

            def make_key(self, size, stream=None):
                return Key(size, stream)

            def capture(self):
                key = self.make_key(1)
                self.backend.capture_one(key)
                self.warm_up()

            def warm_up(self):
                self.model.forward()

        # file: draft.py
        from decode import DecodeRunner
        from keys import Key
        from backends import Draft

        class DraftRunner(DecodeRunner):
            def __init__(self, worker):
                self.worker = worker
                self.backend = Draft()

            def make_key(self, size):
                return Key(size, None)

            def warm_up(self):
                pass

        # file: keys.py
        from dataclasses import dataclass

        @dataclass(frozen=True)
        class Key:
            size: int
            stream: int | None = None

        # file: backends.py
        class Full:
            def capture_one(self, key):
                pass

        class Draft:
            def capture_one(self, key):
                pass
        """,
    )
    assert p.edges("main:run") == {("draft:DraftRunner.__init__", "direct"), ("decode:DecodeRunner.capture", "type")}
    assert p.edges("draft:DraftRunner.__init__") == set()
    assert p.edges("decode:DecodeRunner.capture") == {
        ("draft:DraftRunner.make_key", "type"),
        ("backends:Draft.capture_one", "type"),
        ("draft:DraftRunner.warm_up", "type"),
    }
    assert p.reached("decode:DecodeRunner.make_key") == "no"
    assert p.reached("decode:DecodeRunner.warm_up") == "no"


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


def test_15_forward_of_an_instance_replaced_by_a_closure(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from model import Model
        from runner import Runner

        def run(tokens):
            model = Model()
            runner = Runner(model)
            runner.install()
            model.forward(tokens)

        # file: model.py
        class Layers:
            def forward(self, tokens):
                return tokens

        class Model:
            def __init__(self):
                self.layers = Layers()

            def forward(self, tokens):
                return self.layers.forward(tokens)

        # file: runner.py
        class Runner:
            def __init__(self, model):
                self.layer_model = model.layers

            def install(self):
                original = self.layer_model.forward

                def replayed(tokens):
                    if tokens is None:
                        return original(tokens)
                    return self.replay(tokens)

                self.layer_model.forward = replayed

            def replay(self, tokens):
                pass
        """,
    )
    replayed = "runner:Runner.install.<locals>.replayed"
    assert p.edges("model:Model.forward") == {("model:Layers.forward", "type"), (replayed, "type")}
    # Installing twice would find the closure itself under the name.
    assert p.edges(replayed) == {
        ("model:Layers.forward", "direct"), ("runner:Runner.replay", "type"), (replayed, "direct"),
    }  # fmt: skip


def test_16_method_shadowed_on_the_instance(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from runner import Runner

        def run(variants):
            Runner(variants).key()

        # file: variants.py
        class Variants:
            def select(self, batch):
                return "a"

        # file: runner.py
        from variants import Variants

        class Runner:
            def __init__(self, enabled):
                if enabled:
                    variants = Variants()
                    self._resolve = variants.select

            def _resolve(self, batch):
                return None

            def key(self):
                return self._resolve(1)
        """,
    )
    assert p.edges("runner:Runner.key") == {("variants:Variants.select", "type"), ("runner:Runner._resolve", "type")}


def test_17_module_attribute_and_class_method_patched(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import compile_decoration
        from streams import Stream, install
        import torch

        def run():
            compile_decoration.patch_model()
            Stream().wait()

        def patched():
            from npu import patch_all
            patch_all()
            install()
            compile_decoration.patch_model()
            Stream().wait()
            torch.cuda.Stream.wait_stream(None)

        # file: compile_decoration.py
        def patch_model():
            pass

        # file: npu.py
        import compile_decoration

        def patch_model_npu():
            pass

        def patch_all():
            compile_decoration.patch_model = patch_model_npu

        # file: streams.py
        import torch

        class Stream:
            def wait(self):
                pass

        def hooked(self):
            original(self)

        original = None

        def install():
            global original
            original = Stream.wait
            Stream.wait = hooked
            torch.cuda.Stream.wait_stream = hooked
        """,
        entries=("main:patched",),
    )
    assert p.edges("main:patched") == {
        ("npu:patch_all", "direct"),
        ("streams:install", "direct"),
        ("compile_decoration:patch_model", "direct"),
        ("npu:patch_model_npu", "direct"),
        ("streams:Stream.wait", "type"),
        ("streams:hooked", "type"),
        ("streams:hooked", "direct"),
    }
    assert p.edges("streams:hooked") == {("streams:Stream.wait", "direct"), ("streams:hooked", "direct")}
    assert p.call("main:patched", "torch.cuda.Stream.wait_stream").externals == {"torch.cuda.Stream.wait_stream"}


def test_18_hook_lists_filled_elsewhere_and_run_in_the_body(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from runner import Runner
        from worker import Worker

        def run():
            runner = Runner()
            Worker(runner)
            runner.capture()

        # file: runner.py
        class Runner:
            def __init__(self):
                self.before = []
                self.after = {}

            def add_before(self, hook):
                self.before.append(hook)

            def capture(self):
                for hook in self.before:
                    hook(self)
                for name, hook in self.after.items():
                    hook(name)

        # file: worker.py
        class Worker:
            def __init__(self, runner):
                runner.add_before(self.prepare)
                runner.add_before(lambda r: self.extra())
                runner.after["late"] = finish

            def prepare(self, runner):
                pass

            def extra(self):
                pass

        def finish(name):
            pass
        """,
    )
    assert p.edges("runner:Runner.capture") == {
        ("worker:Worker.prepare", "direct"),
        ("worker:Worker.__init__.<locals>.<lambda:4>", "direct"),
        ("worker:finish", "direct"),
    }
    assert p.edges("worker:Worker.__init__.<locals>.<lambda:4>") == {("worker:Worker.extra", "type")}


def test_19_configuration_in_bags_behind_getattr(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from context import get_exec, publish
        from backends import Full, Breakable

        def run(name):
            publish(name)
            if get_exec().graph.backend == "full":
                backend = Full()
            else:
                backend = Breakable()
            backend.capture()
            get_exec().graph.describe()

        # file: context.py
        from settings import Graph

        class Bag:
            def __init__(self, **values):
                self._values = dict(values)

            def __getattr__(self, name):
                if name.startswith("_"):
                    raise AttributeError(name)
                return self._values[name]

        class Holder:
            def __init__(self):
                self.bag = None

        _holder = Holder()

        def publish(name):
            _holder.bag = Bag(graph=Graph(name))

        def get_exec():
            if _holder.bag is None:
                raise ValueError("not published")
            return _holder.bag

        # file: settings.py
        class Graph:
            def __init__(self, backend):
                self.backend = backend
            def describe(self):
                pass

        # file: backends.py
        class Full:
            def capture(self):
                pass

        class Breakable:
            def capture(self):
                pass
        """,
    )
    assert p.edges("main:run") == {
        ("context:publish", "direct"),
        ("context:get_exec", "direct"),
        ("context:Bag.__getattr__", "direct"),
        ("backends:Full.capture", "type"),
        ("backends:Breakable.capture", "type"),
        ("settings:Graph.describe", "type"),
    }


SCAN = """
        # file: registry.py
        import importlib
        import pkgutil

        class Registry:
            def __init__(self):
                self.models = {}

            def register(self, package):
                self.models.update(import_classes(package))

            def resolve(self, name):
                return self.models[name]

        def import_classes(package_name):
            found = {}
            package = importlib.import_module(package_name)
            for _, name, is_package in pkgutil.iter_modules(package.__path__, package_name + "."):
                if is_package:
                    continue
                try:
                    module = importlib.import_module(name)
                except ImportError:
                    continue
                if hasattr(module, "EntryClass"):
                    entry = module.EntryClass
                    if isinstance(entry, list):
                        for each in entry:
                            found[each.__name__] = each
                    else:
                        found[entry.__name__] = entry
            return found

        registry = Registry()
        registry.register("models")

        # file: models/__init__.py
        # file: models/llama.py
        class Llama:
            def forward(self):
                pass

        EntryClass = Llama

        # file: models/qwen.py
        class Qwen:
            def forward(self):
                pass

        class QwenVision:
            def forward(self):
                pass

        EntryClass = [Qwen, QwenVision]
"""


def test_20_classes_by_package_scan_entry_points_and_a_swapped_attribute(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        SCAN
        + """
        # file: main.py
        from collections import defaultdict
        from importlib.metadata import entry_points
        from registry import registry
        from runners import Draft, Vision, Other

        def run():
            model = registry.resolve("QwenVision")()
            model.forward()

        class Worker:
            def __init__(self):
                self.runner = Draft()

            def adapt(self, steps):
                self.runner = Other() if steps else self.runner

            def step(self):
                self.runner.replay()

        def adaptive(steps):
            worker = Worker()
            worker.adapt(steps)
            worker.step()

        def vision(name):
            table = defaultdict(lambda: Vision, {"npu": Other})
            table[name]().replay()

        def fallback():
            pass

        def platform():
            for point in entry_points(group="platforms"):
                activate = point.load()
                activate()
            fallback()

        # file: runners.py
        class Draft:
            def replay(self):
                pass

        class Vision:
            def replay(self):
                pass

        class Other:
            def replay(self):
                pass
        """,
        entries=("main:run", "main:adaptive", "main:vision", "main:platform"),
    )
    assert p.edges("main:run") == {("registry:Registry.resolve", "type"), ("models.qwen:QwenVision.forward", "type")}
    assert "models/llama.py" not in p.modules
    assert p.edges("main:Worker.step") == {("runners:Draft.replay", "type"), ("runners:Other.replay", "type")}
    assert {target for target, _ in p.edges("main:vision")} == {
        "main:vision.<locals>.<lambda:26>",
        "runners:Vision.replay",
        "runners:Other.replay",
    }
    # What a plug-in would be is not known, and nothing is made up for it.
    assert p.edges("main:platform") == {("main:fallback", "direct")}
    assert p.externals("main:platform") == {"importlib.metadata.entry_points"}


def test_20b_model_class_unknown_is_recorded_as_such(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        SCAN
        + """
        # file: main.py
        from registry import registry

        def run(architecture):
            kind = registry.resolve(architecture)
            kind().forward()
        """,
    )
    assert p.edges("main:run") == {("registry:Registry.resolve", "type")}
    assert "models/llama.py" not in p.modules
    assert p.edges("registry:import_classes") == set()
