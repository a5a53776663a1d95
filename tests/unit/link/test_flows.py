"""Who calls a function without a call in sight: rebinding, threads, generators, code outside, recursion."""

from __future__ import annotations

from pathlib import Path

from .programs import ENGINES, program, targets


def test_methods_rebound_on_instances_classes_and_modules(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import types
        import helpers

        class Owner:
            def work(self):
                pass

            def other(self):
                pass

        def replacement(self=None):
            pass

        def on_instance():
            owner = Owner()
            owner.other = types.MethodType(replacement, owner)
            owner.other()

        def by_setattr():
            setattr(Owner, "work", replacement)
            Owner().work()

        def on_module():
            helpers.assist = replacement
            helpers.assist()

        # file: helpers.py
        def assist():
            pass
        """,
        entries=("main:on_instance", "main:by_setattr", "main:on_module"),
    )
    assert targets(p.edges("main:on_instance")) == {"main:replacement", "main:Owner.other"}
    assert targets(p.edges("main:by_setattr")) == {"main:replacement", "main:Owner.work"}
    assert targets(p.edges("main:on_module")) == {"main:replacement", "helpers:assist"}


def test_threads_processes_and_executors(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import multiprocessing as mp
        import threading
        from concurrent.futures import ThreadPoolExecutor

        class Server:
            def start(self):
                self.use()

            def use(self):
                pass

        def serve(server, *, name):
            server.start()

        def run():
            process = mp.Process(target=serve, args=(Server(),), kwargs={"name": "a"})
            process.start()

        def thread():
            threading.Thread(target=Server().start).start()

        class Worker(threading.Thread):
            def run(self):
                self.work()

            def work(self):
                pass

        def subclass():
            Worker().start()

        def pooled():
            with ThreadPoolExecutor(2) as pool:
                pool.submit(serve, Server(), name="b")

        def spawned():
            context = mp.get_context("spawn")
            context.Process(target=serve, args=(Server(),)).start()
        """,
        entries=("main:run", "main:thread", "main:subclass", "main:pooled", "main:spawned"),
    )
    assert targets(p.edges("main:run")) == {"main:serve"}
    assert p.edges("main:serve") == {("main:Server.start", "type")}
    assert targets(p.edges("main:thread")) == {"main:Server.start"}
    assert targets(p.edges("main:subclass")) == {"main:Worker.run"}
    assert p.edges("main:Worker.run") == {("main:Worker.work", "type")}
    assert targets(p.edges("main:pooled")) == {"main:serve"}
    assert targets(p.edges("main:spawned")) == {"main:serve"}


def test_generators_and_coroutines(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import asyncio

        class Item:
            def use(self):
                pass

        def items():
            yield Item()
            yield from more()

        def more():
            yield Item()

        async def fetch():
            return Item()

        async def stream():
            yield Item()

        async def main():
            item = await fetch()
            item.use()
            async for each in stream():
                each.use()
            first, second = await asyncio.gather(fetch(), fetch())

        def run():
            for item in items():
                item.use()
            next(items()).use()
            [i.use() for i in items()]

        def start():
            asyncio.run(main())
        """,
        entries=("main:run", "main:start"),
    )
    assert p.edges("main:run") == {("main:items", "direct"), ("main:Item.use", "type")}
    assert p.edges("main:items") == {("main:more", "direct")}
    assert p.edges("main:start") == {("main:main", "direct")}
    assert p.edges("main:main") == {("main:fetch", "direct"), ("main:stream", "direct"), ("main:Item.use", "type")}


def test_functions_handed_to_code_outside_are_called_by_it(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import atexit
        import ext

        def stop():
            pass

        def key(item):
            pass

        def run(items):
            atexit.register(stop)
            ext.on_event(lambda: stop())
            return sorted(items, key=key)
        """,
    )
    assert targets(p.edges("main:run")) == {"main:stop", "main:run.<locals>.<lambda:12>", "main:key"}


def test_map_filter_and_reduce_call_their_function(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from functools import reduce

        class Item:
            def use(self):
                return self

        def use(item):
            return item.use()

        def add(a, b):
            return a

        def run():
            list(map(use, [Item()]))

        def reduced():
            reduce(add, [Item(), Item()]).use()
        """,
        entries=("main:run", "main:reduced"),
    )
    assert p.edges("main:run") == {("main:use", "direct")}
    assert p.edges("main:use") == {("main:Item.use", "type")}
    assert p.edges("main:reduced") == {("main:add", "direct"), ("main:Item.use", "type")}


def test_recursion_and_mutual_recursion_end(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        class Node:
            def __init__(self, below):
                self.below = below

            def walk(self):
                if self.below is not None:
                    self.below.walk()

        def nest(depth):
            if depth == 0:
                return Node(None)
            return Node(nest(depth - 1))

        def even(n):
            return True if n == 0 else odd(n - 1)

        def odd(n):
            return False if n == 0 else even(n - 1)

        def run(n):
            nest(n).walk()
            even(n)

        def grow(fn):
            return grow(lambda: fn())
        """,
        entries=("main:run", "main:grow"),
    )
    assert p.edges("main:Node.walk") == {("main:Node.walk", "type")}
    assert p.edges("main:nest") == {("main:nest", "direct"), ("main:Node.__init__", "direct")}
    assert p.edges("main:even") == {("main:odd", "direct")}
    assert p.edges("main:odd") == {("main:even", "direct")}
    assert p.edges("main:grow") == {("main:grow", "direct")}


def test_immutable_records_carry_what_their_own_maker_had(tmp_path: Path) -> None:
    """Two makers of one frozen class: what one stores does not come out of the other; a mutable class has no such claim."""
    p = program(
        tmp_path,
        ENGINES
        + """
        # file: main.py
        from dataclasses import dataclass
        from engines import Electric, Engine, Gas

        @dataclass(frozen=True)
        class Made:
            engine: Engine
            name: str

        @dataclass
        class Kept:
            engine: Engine

        def gas():
            return Made(Gas(), "gas")

        def electric():
            return Made(engine=Electric(), name="electric")

        def run():
            first, second = gas(), electric()
            first.engine.start()

        def run_second():
            electric().engine.start()

        def run_kept():
            Kept(Gas())
            Kept(Electric()).engine.start()
        """,
        entries=("main:run", "main:run_second", "main:run_kept"),
    )
    assert targets(p.edges("main:run")) >= {"engines:Gas.start"} and "engines:Electric.start" not in targets(
        p.edges("main:run")
    )
    assert "engines:Electric.start" in targets(p.edges("main:run_second"))
    assert "engines:Gas.start" not in targets(p.edges("main:run_second"))
    assert {"engines:Gas.start", "engines:Electric.start"} <= targets(p.edges("main:run_kept"))


def test_a_keyword_that_no_call_gives_is_in_no_dictionary_of_them(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import outside

        def special():
            pass

        def given(x, **options):
            if any(name in options for name in ("score", "bias")):
                special()

        def stored(**options):
            options["score"] = 1
            if "score" in options:
                special()

        def forwarded(**options):
            if "score" in options:
                special()

        def run():
            given(1, scale=2)
            stored()
            forwarded(**outside.options)
        """,
        kept=(),
    )
    assert p.edges("main:given") == set()
    assert p.edges("main:stored") == p.edges("main:forwarded") == {("main:special", "direct")}
