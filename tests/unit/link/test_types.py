"""What receivers are: annotations, constructors, factories, hierarchies, and the classes that the language generates."""

from __future__ import annotations

from pathlib import Path

from .programs import program

ENGINES = """
        # file: engines.py
        from abc import ABC, abstractmethod

        class Engine(ABC):
            @abstractmethod
            def start(self):
                ...

            def warm(self):
                self.start()

        class Gas(Engine):
            def start(self):
                pass

        class Electric(Engine):
            def start(self):
                pass

        class Idle(Engine):
            def start(self):
                pass
"""


def test_an_annotation_may_mean_any_subclass_that_exists(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from engines import Electric, Engine, Gas

        def run(engine: Engine):
            Gas(), Electric()
            engine.start()

        def exact():
            Gas().start()

        def base(engine: Engine):
            engine.warm()
        """,
        entries=("main:run", "main:exact", "main:base"),
    )
    # Idle is never made.
    assert p.edges("main:run") == {("engines:Gas.start", "override"), ("engines:Electric.start", "override")}
    assert p.edges("main:exact") == {("engines:Gas.start", "type")}
    assert p.edges("main:base") == {("engines:Engine.warm", "override")}
    assert p.edges("engines:Engine.warm") == {("engines:Gas.start", "type"), ("engines:Electric.start", "type")}


def test_a_value_that_flows_says_more_than_its_annotation(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from engines import Electric, Engine, Gas

        def use(engine: Engine):
            engine.start()

        def run():
            Electric()
            use(Gas())
        """,
    )
    assert p.edges("main:use") == {("engines:Gas.start", "type")}


def test_attribute_types_from_constructors_annotations_and_parameters(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from typing import Optional
        from engines import Electric, Engine, Gas

        class Car:
            declared: "Optional[Electric]"

            def __init__(self, given, annotated: Engine = None):
                self.made = Gas()
                self.given = given
                self.later = None

            def fit(self):
                self.later = Electric()

            def use_made(self):
                self.made.start()

            def use_given(self):
                self.given.start()

            def use_later(self):
                self.later.start()

            def use_declared(self):
                self.declared.start()

        def run():
            car = Car(Gas())
            car.fit()
            car.use_made()
            car.use_given()
            car.use_later()
            car.use_declared()
        """,
    )
    assert p.edges("main:Car.use_made") == {("engines:Gas.start", "type")}
    assert p.edges("main:Car.use_given") == {("engines:Gas.start", "type")}
    assert p.edges("main:Car.use_later") == {("engines:Electric.start", "type")}
    assert p.edges("main:Car.use_declared") == {("engines:Electric.start", "override")}
    assert p.linked.classes["main:Car"].attributes["made"] == {"engines:Gas"}


def test_containers_in_annotations(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from typing import Dict, List, Optional, Type
        from engines import Electric, Gas

        def run(engines: List[Gas], named: Dict[str, Electric], kind: Type[Gas], either: "Gas | Electric | None"):
            for engine in engines:
                engine.start()
            for engine in named.values():
                engine.start()

        def indexed(engines: list[Gas], named: dict[str, Electric]):
            engines[0].start()
            named["a"].start()
            for name, engine in named.items():
                engine.warm()

        def made(kind: type[Gas]):
            kind().start()

        def union(either: "Gas | Electric | None", maybe: Optional[Gas]):
            either.start()
        """,
        entries=("main:run", "main:indexed", "main:made", "main:union"),
    )
    both = {("engines:Gas.start", "override"), ("engines:Electric.start", "override")}
    assert p.edges("main:run") == both
    assert {target for target, _ in p.edges("main:indexed")} == {
        "engines:Gas.start",
        "engines:Electric.start",
        "engines:Engine.warm",
    }
    assert p.edges("main:made") == {("engines:Gas.start", "type")}
    assert p.edges("main:union") == both


def test_return_types_of_factories(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from engines import Electric, Engine, Gas

        def make(kind):
            if kind == "gas":
                return Gas()
            return Electric()

        def opaque(name) -> Gas:
            return eval(name)

        class Maker:
            def __call__(self):
                return Gas()

            @classmethod
            def default(cls):
                return cls()

        def run(kind):
            make(kind).start()

        def constant():
            make("gas").start()

        def declared(name):
            opaque(name).start()

        def called():
            Maker.default()().start()
        """,
        entries=("main:run", "main:declared", "main:called"),
    )
    assert p.edges("main:run") == {
        ("main:make", "direct"),
        ("engines:Gas.start", "type"),
        ("engines:Electric.start", "type"),
    }
    assert p.edges("main:declared") == {("main:opaque", "direct"), ("engines:Gas.start", "override")}
    assert p.edges("main:called") == {
        ("main:Maker.default", "direct"),
        ("main:Maker.__call__", "direct"),
        ("engines:Gas.start", "type"),
    }


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


def test_narrowing_by_isinstance(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from engines import Electric, Engine, Gas

        def run(engine: Engine):
            Gas(), Electric()
            if isinstance(engine, Gas):
                engine.start()

        def other(engine):
            if isinstance(engine, Electric):
                engine.start()

        def rest(kind):
            engine = Gas() if kind else Electric()
            if isinstance(engine, Gas):
                return
            engine.start()

        def several(kind):
            engine = Gas() if kind else None
            if not isinstance(engine, (Gas, Electric)):
                engine.never()
            else:
                engine.start()
        """,
        entries=("main:run", "main:other", "main:rest", "main:several"),
    )
    assert p.edges("main:run") == {("engines:Gas.start", "override")}
    assert p.edges("main:other") == {("engines:Electric.start", "override")}
    assert p.edges("main:rest") == {("engines:Electric.start", "type")}
    assert p.edges("main:several") == {("engines:Gas.start", "type")}


def test_methods_of_one_class_are_told_apart_by_their_receivers(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        class Base:
            def outer(self):
                self.inner()

            def inner(self):
                pass

        class Loud(Base):
            def inner(self):
                pass

        def run():
            Loud().outer()
        """,
    )
    assert p.edges("main:Base.outer") == {("main:Loud.inner", "type")}
    assert p.reached("main:Base.inner") == "no"
