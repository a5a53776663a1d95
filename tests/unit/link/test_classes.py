"""Classes: the order of bases, and the methods that the language calls or generates."""

from __future__ import annotations

from pathlib import Path

from .programs import ENGINES, program


def test_super_chains_follow_the_receivers_order(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        class Base:
            def __init__(self):
                self.value = 1

            def work(self):
                pass

        class Left(Base):
            def __init__(self):
                super().__init__()

            def work(self):
                super().work()

        class Right(Base):
            def work(self):
                super(Right, self).work()

        class Both(Left, Right):
            def work(self):
                super().work()

        def run():
            Both().work()

        def left():
            Left().work()
        """,
    )
    assert p.edges("main:run") == {("main:Left.__init__", "direct"), ("main:Both.work", "type")}
    assert p.edges("main:Both.work") == {("main:Left.work", "type")}
    assert p.edges("main:Left.work") == {("main:Right.work", "type")}
    assert p.edges("main:Right.work") == {("main:Base.work", "type")}
    assert p.edges("main:Left.__init__") == {("main:Base.__init__", "type")}
    assert p.linked.classes["main:Both"].ancestors == ("main:Both", "main:Left", "main:Right", "main:Base")


def test_super_of_a_class_from_outside_is_an_access_path(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import torch

        class Graph(torch.cuda.CUDAGraph):
            def replay(self):
                super().replay()

        def run():
            graph = Graph()
            graph.replay()
            graph.reset()
        """,
    )
    assert p.edges("main:run") == {("main:Graph.replay", "type")}
    assert p.call("main:run", "Graph").constructs == {"main:Graph"}
    assert p.linked.classes["main:Graph"].ancestors == ("main:Graph", "torch.cuda.CUDAGraph")
    assert p.call("main:Graph.replay", "super().replay").externals == {"torch.cuda.CUDAGraph().replay"}
    assert p.call("main:run", "graph.reset").externals == {"torch.cuda.CUDAGraph().reset"}


def test_properties_with_setters_and_cached_ones(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from functools import cached_property
        from engines import Electric, Gas

        class Car:
            def __init__(self):
                self._engine = Gas()

            @property
            def engine(self):
                return self._engine

            @engine.setter
            def engine(self, value):
                self.check(value)
                self._engine = value

            @cached_property
            def spare(self):
                return Electric()

            def check(self, value):
                pass

        def read():
            Car().engine.start()

        def run():
            car = Car()
            car.engine = Electric()

        def cached():
            Car().spare.start()
        """,
        entries=("main:run", "main:cached"),
    )
    assert p.edges("main:run") == {("main:Car.__init__", "direct"), ("main:Car.engine", "direct")}
    assert p.edges("main:Car.engine") == {("main:Car.check", "type")}
    assert p.edges("main:cached") == {
        ("main:Car.__init__", "direct"),
        ("main:Car.spare", "direct"),
        ("engines:Electric.start", "type"),
    }


def test_dataclasses_named_tuples_and_enumerations(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from dataclasses import dataclass, field
        from enum import Enum
        from typing import NamedTuple
        from engines import Electric, Gas

        @dataclass
        class Car:
            engine: object
            spare: object = field(default_factory=Electric)
            wheels: int = 4

            def __post_init__(self):
                self.prepare()

            def prepare(self):
                pass

        @dataclass
        class Van(Car):
            load: object = None

        class Pair(NamedTuple):
            first: object
            second: object = None

            def go(self):
                self.first.start()

        class Colour(Enum):
            RED = "red"
            BLUE = "blue"

            @property
            def warm(self):
                return self is Colour.RED

            def paint(self):
                pass

            @classmethod
            def default(cls):
                return cls.RED

        def run():
            car = Car(Gas())
            car.engine.start()

        def spare():
            Car(engine=Gas()).spare.start()

        def inherited():
            Van(Gas(), load=Electric()).load.start()

        def pair():
            p = Pair(Gas(), Electric())
            p.go()
            a, b = p
            b.start()
            p[0].warm()

        def colours(name):
            Colour.RED.paint()
            Colour("blue").paint()
            Colour[name].paint()
            if Colour.default().warm:
                for colour in Colour:
                    colour.paint()
        """,
        entries=("main:run", "main:spare", "main:inherited", "main:pair", "main:colours"),
    )
    assert p.edges("main:run") == {("main:Car.__post_init__", "direct"), ("engines:Gas.start", "type")}
    assert p.edges("main:Car.__post_init__") == {("main:Car.prepare", "type")}
    assert p.edges("main:spare") == {("main:Car.__post_init__", "direct"), ("engines:Electric.start", "type")}
    assert p.edges("main:inherited") == {("main:Car.__post_init__", "direct"), ("engines:Electric.start", "type")}
    assert p.edges("main:pair") == {
        ("main:Pair.go", "type"),
        ("engines:Electric.start", "type"),
        ("engines:Engine.warm", "type"),
    }
    assert p.edges("main:Pair.go") == {("engines:Gas.start", "type")}
    assert p.edges("main:colours") == {
        ("main:Colour.paint", "type"),
        ("main:Colour.default", "direct"),
        ("main:Colour.warm", "direct"),
    }


def test_objects_that_are_called_indexed_iterated_and_entered(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from engines import Electric, Gas

        class Rack:
            def __getitem__(self, key):
                return Gas()

            def __setitem__(self, key, value):
                value.start()

            def __iter__(self):
                yield Electric()

            def __enter__(self):
                return Gas()

            def __exit__(self, *info):
                self.close()

            def close(self):
                pass

        def run():
            Rack()["a"].start()

        def store():
            Rack()["a"] = Electric()

        def loop():
            for engine in Rack():
                engine.start()

        def enter():
            with Rack() as engine:
                engine.start()
        """,
        entries=("main:run", "main:store", "main:loop", "main:enter"),
    )
    assert p.edges("main:run") == {("main:Rack.__getitem__", "direct"), ("engines:Gas.start", "type")}
    assert p.edges("main:store") == {("main:Rack.__setitem__", "direct")}
    assert p.edges("main:Rack.__setitem__") == {("engines:Electric.start", "type")}
    assert p.edges("main:loop") == {("main:Rack.__iter__", "direct"), ("engines:Electric.start", "type")}
    assert p.edges("main:enter") == {
        ("main:Rack.__enter__", "direct"),
        ("main:Rack.__exit__", "direct"),
        ("engines:Gas.start", "type"),
    }
    assert p.edges("main:Rack.__exit__") == {("main:Rack.close", "type")}


def test_a_torch_module_that_is_called_runs_forward(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import torch
        from torch import nn

        class Layer(nn.Module):
            def forward(self, x):
                return x

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer() for _ in range(4)])
                self.head = Layer()

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)

        class Tail(nn.Module):
            def __init__(self):
                super().__init__()
                self.steps = nn.Sequential(Layer(), nn.ReLU())

            def forward(self, x):
                return self.steps(x)

        def run(x):
            Model()(x)
            Tail()(x)
        """,
    )
    assert p.edges("main:run") == {
        ("main:Model.__init__", "direct"),
        ("main:Model.forward", "direct"),
        ("main:Tail.__init__", "direct"),
        ("main:Tail.forward", "direct"),
    }
    assert p.edges("main:Tail.forward") == {("main:Layer.forward", "type")}
    assert p.edges("main:Model.forward") == {("main:Layer.forward", "direct"), ("main:Layer.forward", "type")}


def test_a_model_of_transformers_is_a_module_too(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from transformers import PreTrainedModel, PreTrainedTokenizer

        class Tower(PreTrainedModel):
            def forward(self, x):
                return x

        class Words(PreTrainedTokenizer):
            def forward(self, x):
                return x

        def run(x):
            Tower(x)(x)
            Words(x)(x)
        """,
    )
    assert p.edges("main:run") == {("main:Tower.forward", "direct")}
