"""Idioms of real serving code, in small: singletons, accessors, class-level tables, generics, late binding."""

from __future__ import annotations

from pathlib import Path

import pytest

from .programs import program

ENGINE = """
        # file: engine.py
        class Engine:
            def start(self):
                pass

            def stop(self):
                pass
"""

#: Bodies of `run` or whole modules; each leads to `engine:Engine.start` and to nothing else of it.
IDIOMS = {
    "module singleton behind an accessor": """
        _current = None

        def set_current(engine):
            global _current
            _current = engine

        def get_current() -> "Engine":
            assert _current is not None
            return _current

        def run():
            set_current(Engine())
            get_current().start()
        """,
    "lazily made singleton": """
        _current = None

        def get_current():
            global _current
            if _current is None:
                _current = Engine()
            return _current

        def run():
            get_current().start()
        """,
    "singleton by __new__": """
        class Holder:
            _instance = None

            def __new__(cls):
                if cls._instance is None:
                    cls._instance = super().__new__(cls)
                    cls._instance.engine = Engine()
                return cls._instance

        def run():
            Holder().engine.start()
        """,
    "class-level table of methods": """
        class Owner:
            def __init__(self):
                self.engine = Engine()

            def go(self):
                self.engine.start()

            TABLE = {"go": go}

            def call(self, name):
                self.TABLE[name](self)

        def run(name):
            Owner().call(name)
        """,
    "own class through the object": """
        class Owner:
            @staticmethod
            def make():
                return Engine()

            @classmethod
            def built(cls):
                return cls.make()

            def go(self):
                self.__class__.make()
                type(self).built().start()

        def run():
            Owner().go()
        """,
    "generic base": """
        from typing import Generic, TypeVar

        T = TypeVar("T")

        class Box(Generic[T]):
            def __init__(self, item: T):
                self.item = item

            def get(self) -> T:
                return self.item

        class EngineBox(Box[Engine]):
            pass

        def run():
            EngineBox(Engine()).get().start()
        """,
    "protocol in an annotation": """
        from typing import Protocol

        class Startable(Protocol):
            def start(self): ...

        def use(it: Startable):
            it.start()

        def run():
            use(Engine())
        """,
    "default arguments of lambdas": """
        def run():
            calls = []
            for engine in [Engine()]:
                calls.append(lambda e=engine: e.start())
            for call in calls:
                call()
        """,
    "default factory of a dataclass": """
        from dataclasses import dataclass, field

        @dataclass
        class Holder:
            engine: Engine = field(default_factory=lambda: Engine())

        def run():
            Holder().engine.start()
        """,
    "cast and copy": """
        import copy
        from typing import Any, cast

        def run():
            engine: Any = copy.copy(Engine())
            cast(Engine, engine).start()
        """,
    "attribute set by keyword loop": """
        class Owner:
            def __init__(self, **parts):
                for name, part in parts.items():
                    setattr(self, name, part)
                self.engine = parts["engine"]

        def run():
            Owner(engine=Engine()).engine.start()
        """,
    "nested class": """
        class Outer:
            class Inner:
                def __init__(self):
                    self.engine = Engine()

            def go(self):
                self.Inner().engine.start()

        def run():
            Outer().go()
        """,
    "class made in a function": """
        def make_class(base):
            class Derived(base):
                def go(self):
                    self.start()
            return Derived

        def run():
            make_class(Engine)().go()
        """,
    "mixin that calls what its sibling has": """
        class Mixin:
            def go(self):
                self.start()

        class Both(Mixin, Engine):
            pass

        def run():
            Both().go()
        """,
    "list of tuples": """
        def run():
            for name, engine in [("a", Engine()), ("b", Engine())]:
                engine.start()
        """,
    "zip and enumerate": """
        def run():
            for index, (name, engine) in enumerate(zip(["a"], [Engine()])):
                engine.start()
        """,
    "dictionary comprehension": """
        def run(names):
            engines = {name: Engine() for name in names}
            for name in names:
                engines[name].start()
        """,
    "setdefault": """
        def run(name):
            engines = {}
            engines.setdefault(name, Engine()).start()
        """,
    "walrus in a loop": """
        def run():
            queue = [Engine()]
            while (engine := queue.pop() if queue else None) is not None:
                engine.start()
        """,
    "starred arguments": """
        def use(first, *rest, **named):
            rest[0].start()

        def run():
            args = (1, Engine())
            use(*args, x=1)
        """,
    "keyword arguments handed on": """
        def inner(*, engine):
            engine.start()

        def outer(**kwargs):
            inner(**kwargs)

        def run():
            outer(engine=Engine())
        """,
    "weak reference": """
        import weakref

        def run():
            reference = weakref.ref(Engine())
            reference().start()
        """,
    "namespace": """
        from types import SimpleNamespace

        def run():
            space = SimpleNamespace(engine=Engine())
            space.engine.start()
        """,
    "thread local": """
        import threading

        local = threading.local()

        def run():
            local.engine = Engine()
            local.engine.start()
        """,
    "queue": """
        import queue

        def run():
            waiting = queue.Queue()
            waiting.put(Engine())
            waiting.get().start()
        """,
    "conditional class in an attribute": """
        class Owner:
            kind = None

            def __init__(self, flag):
                self.kind = Engine if flag else None

            def go(self):
                if self.kind is not None:
                    self.kind().start()

        def run(flag):
            Owner(flag).go()
        """,
    "or with a default": """
        def run(given=None):
            engine = None or Engine()
            engine.start()
        """,
    "chained assignment and swap": """
        def run():
            a = b = Engine()
            c, d = None, a
            c, d = d, c
            c.start()
        """,
    "exception that carries an object": """
        class Failure(Exception):
            def __init__(self, engine):
                super().__init__("failed")
                self.engine = engine

            def recover(self):
                self.engine.start()

        def run():
            Failure(Engine()).recover()
        """,
    "async with and await": """
        import asyncio

        class Session:
            async def __aenter__(self):
                return Engine()

            async def __aexit__(self, *info):
                pass

        async def main():
            async with Session() as engine:
                engine.start()

        def run():
            asyncio.run(main())
        """,
}


@pytest.mark.parametrize("idiom", IDIOMS)
def test_idiom(tmp_path: Path, idiom: str) -> None:
    p = program(tmp_path, ENGINE + "\n        # file: main.py\n        from engine import Engine\n" + IDIOMS[idiom])
    assert p.reached("engine:Engine.start") == "true"
    assert p.reached("engine:Engine.stop") == "no"
    assert not p.linked.problems
