"""Constructs 15 to 18 of the twenty that linking a serving checkout rests on: methods replaced, names patched, hooks."""

from __future__ import annotations

from pathlib import Path

from .programs import program


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
