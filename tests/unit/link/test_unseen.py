"""What code outside the checkout may call: overridden steps of its templates, callables that it was given to keep."""

from __future__ import annotations

from pathlib import Path

from .programs import program, targets


def test_a_default_stands_where_only_an_unseen_base_may_have_the_attribute(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import torch

        class Model(torch.nn.Module):
            def forward(self):
                self.step()

            def step(self):
                pass

        def run():
            model = Model()
            inner = getattr(model, "language_model", model)
            inner.step()
        """,
    )
    assert "main:Model.step" in targets(p.edges("main:run"))


def test_a_callable_that_an_unseen_object_keeps_may_be_called(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import elsewhere

        class Piece:
            def __call__(self, x):
                self.capture()

            def capture(self):
                pass

        class Plain:
            def work(self):
                pass

        def on_done():
            pass

        def run():
            registry = elsewhere.load()
            registry.table["a"] = Piece()
            registry.done = on_done
            registry.plain = Plain()

        def kept_by_ourselves():
            table = {}
            table["a"] = Piece()
        """,
        entries=("main:run", "main:kept_by_ourselves"),
    )
    assert targets(p.edges("main:run")) >= {"main:Piece.__call__", "main:on_done"}
    assert targets(p.edges("main:Piece.__call__")) == {"main:Piece.capture"}
    assert p.reached("main:Plain.work") == "no"
    assert "main:Piece.__call__" not in targets(p.edges("main:kept_by_ourselves"))


def test_an_interpreter_of_traced_graphs_runs_the_steps_that_a_subclass_overrides(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import torch

        class Compile(torch.fx.Interpreter):
            def call_module(self, target, args, kwargs):
                return make(target)

            def helper(self):
                pass

        class Quiet(torch.fx.Interpreter):
            def call_module(self, target, args, kwargs):
                return idle()

        def make(target):
            pass

        def idle():
            pass

        def run(graph):
            Compile(graph).run(1)
            Quiet(graph)
        """,
    )
    assert "main:Compile.call_module" in targets(p.edges("main:run"))
    assert p.reached("main:make") == "true"
    for name in ("main:Compile.helper", "main:Quiet.call_module", "main:idle"):
        assert p.reached(name) == "no"


def test_a_function_that_is_only_looked_at_is_not_called(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import inspect
        import elsewhere

        def seen(given=None):
            pass

        def called():
            pass

        def run():
            if "given" in inspect.signature(seen).parameters:
                elsewhere.later(called)
        """,
    )
    assert (p.reached("main:seen"), p.reached("main:called")) == ("no", "true")
