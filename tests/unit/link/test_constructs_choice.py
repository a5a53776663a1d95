"""Constructs 6 to 10 of the twenty that linking a serving checkout rests on: callees that depend on a batch, an algorithm, an override."""

from __future__ import annotations

from pathlib import Path

from .programs import program


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
