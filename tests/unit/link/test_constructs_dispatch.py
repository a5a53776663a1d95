"""Constructs 1 to 5 of the twenty that linking a serving checkout rests on: classes chosen by tables, strings and wrappers."""

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
