"""Constructs 19 to 20 of the twenty that linking a serving checkout rests on: configuration bags, package scans, plug-ins."""

from __future__ import annotations

from pathlib import Path

from .programs import program


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
