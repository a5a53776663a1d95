"""Registries, plug-ins and package scans: what fills them, from where, and what stays unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program, targets


def test_registry_object_with_a_method_as_decorator(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from registry import backends
        import plugins.alpha
        import plugins.beta

        def run(name):
            backends.create(name).start()

        def fixed():
            backends.create("beta").start()

        # file: registry.py
        class Registry:
            def __init__(self):
                self._classes = {}

            def register(self, name):
                def wrap(cls):
                    self._classes[name] = cls
                    return cls
                return wrap

            def create(self, name):
                if name not in self._classes:
                    raise KeyError(name)
                return self._classes[name]()

        backends = Registry()

        # file: plugins/alpha.py
        from registry import backends

        @backends.register("alpha")
        class Alpha:
            def start(self):
                pass

        # file: plugins/beta.py
        from registry import backends

        @backends.register("beta")
        class Beta:
            def start(self):
                pass
        """,
    )
    assert p.edges("main:run") == {
        ("registry:Registry.create", "type"),
        ("plugins.alpha:Alpha.start", "type"),
        ("plugins.beta:Beta.start", "type"),
    }
    create = p.call("registry:Registry.create", "self._classes[name]")
    assert create.constructs == {"plugins.alpha:Alpha", "plugins.beta:Beta"}


def test_classes_registered_by_init_subclass(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        class Base:
            kinds = {}

            def __init_subclass__(cls, name=None, **kwargs):
                Base.kinds[name] = cls

        class Left(Base, name="left"):
            def go(self):
                pass

        class Right(Base, name="right"):
            def go(self):
                pass

        def run():
            Base.kinds["left"]().go()
        """,
    )
    assert p.edges("main:run") == {("main:Left.go", "type")}


def test_registration_by_a_plain_call_at_module_level(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import handlers
        import parts

        def run(name):
            for handler in handlers.HANDLERS:
                handler()
            handlers.BY_NAME.get(name, handlers.fallback)()

        # file: handlers.py
        HANDLERS = []
        BY_NAME = {}

        def add(fn, name=None):
            HANDLERS.append(fn)
            BY_NAME.setdefault(name, fn)

        def fallback():
            pass

        # file: parts/__init__.py
        from . import one

        # file: parts/one.py
        from handlers import add

        def one():
            pass

        add(one, name="one")
        """,
    )
    assert targets(p.edges("main:run")) == {"parts.one:one", "handlers:fallback"}


def test_effects_of_modules_imported_in_functions_and_for_type_checking(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from typing import TYPE_CHECKING
        from registry import TABLE

        if TYPE_CHECKING:
            import typed

        def load():
            import loaded

        def run(name):
            load()
            TABLE[name]()

        # file: registry.py
        TABLE = {}

        def register(fn):
            TABLE[fn.__name__] = fn
            return fn

        # file: loaded.py
        from registry import register

        @register
        def loaded():
            pass

        # file: typed.py
        from registry import register

        @register
        def typed():
            pass
        """,
    )
    assert p.edges("main:run") == {("main:load", "direct"), ("loaded:loaded", "registry")}
    assert "typed.py" not in p.modules


def test_a_module_that_patches_another_when_imported(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import target
        import patches

        def run():
            target.work()

        # file: target.py
        def work():
            pass

        # file: patches.py
        import target

        def better():
            pass

        target.work = better
        """,
    )
    assert p.edges("main:run") == {("target:work", "direct"), ("patches:better", "direct")}


def test_registries_that_nobody_reads_load_nothing(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from registry import helper
        import registrants

        def run():
            helper()

        # file: registry.py
        TABLE = {}

        def register(fn):
            TABLE[fn.__name__] = fn
            return fn

        def helper():
            pass

        # file: registrants.py
        from registry import register

        @register
        def one():
            pass
        """,
    )
    assert p.edges("main:run") == {("registry:helper", "direct")}
    assert "registrants.py" not in p.modules


def test_entry_points_are_outside_and_their_results_unknown(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from importlib.metadata import entry_points
        from platforms import Cuda

        def discover():
            for point in entry_points(group="platforms"):
                return point.load()()
            return None

        def run():
            found = discover()
            platform = found if found is not None else Cuda()
            platform.start()

        # file: platforms.py
        class Cuda:
            def start(self):
                pass
        """,
    )
    assert p.edges("main:run") == {("main:discover", "direct"), ("platforms:Cuda.start", "type")}
    assert p.call("main:run", "platform.start").receivers == {"platforms:Cuda", "?"}


@pytest.mark.parametrize("name", ["info[1]", "info.name"])
def test_scanned_package_with_a_known_name_reads_that_module_only(tmp_path: Path, name: str) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import importlib
        import pkgutil

        def load(package_name):
            package = importlib.import_module(package_name)
            found = {}
            for info in pkgutil.iter_modules(package.__path__):
                module = importlib.import_module(f"{package_name}.{NAME}")
                found[module.EntryClass.__name__] = module.EntryClass
            return found

        def run():
            load("zoo")["Lion"]().roar()

        # file: zoo/__init__.py
        # file: zoo/lion.py
        class Lion:
            def roar(self):
                pass

        EntryClass = Lion

        # file: zoo/mouse.py
        class Mouse:
            def roar(self):
                pass

        EntryClass = Mouse
        """.replace("NAME", name),
    )
    assert targets(p.edges("main:run")) == {"main:load", "zoo.lion:Lion.roar"}
    assert "zoo/mouse.py" not in p.modules
