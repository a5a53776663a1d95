"""What receivers are: annotations, constructors, factories and tests that narrow them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import ENGINES, program


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


def test_what_is_not_known_is_what_a_plain_annotation_says_beside_what_flows(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from typing import Optional
        import outside

        class Batch:
            sums = False

        def sums():
            pass

        def use(batch: Batch):
            if batch.sums:
                sums()

        def maybe(batch: Optional[Batch]):
            if batch is None:
                sums()

        def run():
            use(Batch())
            use(outside.batch())
            maybe(Batch())
            maybe(outside.batch())
        """,
        kept=(),
    )
    assert p.edges("main:use") == set()
    assert p.edges("main:maybe") == {("main:sums", "direct")}


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


def test_a_union_of_classes_tells_instances_apart(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        class A: ...
        class B: ...
        class C: ...
        class D: ...

        def among():
            pass

        def outside():
            pass

        def pick(item):
            if isinstance(item, A | B | C):
                return among()
            return outside()

        def run():
            pick(D())
        """,
    )
    assert p.reached("main:among") == "no"
    assert p.reached("main:outside") == "true"


@pytest.mark.parametrize("made", ["Dense()", "Dense(), Experts()"])
def test_a_table_of_classes_handles_modules_of_which_some_are_made(tmp_path: Path, made: str) -> None:
    p = program(
        tmp_path,
        f"""
        # file: main.py
        import outside
        import torch

        class Dense(torch.nn.Module):
            pass

        class Experts(torch.nn.Module):
            pass

        class DenseAdapter:
            def __init__(self, layer):
                pass

        class ExpertsAdapter:
            def __init__(self, layer):
                pass

        def adapt(layer):
            adapters = {{Dense: DenseAdapter, Experts: ExpertsAdapter}}
            for kind, adapter in adapters.items():
                if isinstance(layer, kind):
                    return adapter(layer)

        def run():
            {made}
            adapt(outside.layer())
        """,
        kept=(),
    )
    assert p.reached("main:DenseAdapter.__init__") == "true"
    assert p.reached("main:ExpertsAdapter.__init__") == ("true" if "Experts" in made else "no")
