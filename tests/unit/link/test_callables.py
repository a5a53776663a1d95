"""How callables travel: partials, decorators, closures, context managers, tables, threads, generators."""

from __future__ import annotations

from pathlib import Path

from .programs import program


def targets(edges: set[tuple[str, str]]) -> set[str]:
    return {target for target, _ in edges}


def test_partials_carry_arguments(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from functools import partial, partialmethod

        def apply(fn, *, finish=None):
            fn()
            if finish is not None:
                finish()

        def work():
            pass

        def done():
            pass

        class Tool:
            def use(self, how):
                how()

            quick = partialmethod(use, work)

        def run():
            once = partial(apply, work)
            twice = partial(once, finish=done)
            twice()

        def method():
            partial(Tool().use, work)()

        def method_of_class():
            Tool().quick()
        """,
        entries=("main:run", "main:method", "main:method_of_class"),
    )
    assert p.edges("main:run") == {("main:apply", "direct")}
    assert p.edges("main:apply") == {("main:work", "direct"), ("main:done", "direct")}
    assert targets(p.edges("main:method")) == {"main:Tool.use"}
    assert targets(p.edges("main:method_of_class")) == {"main:Tool.use"}
    assert p.edges("main:Tool.use") == {("main:work", "direct")}


def test_decorators_with_and_without_arguments(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import functools

        def plain(fn):
            @functools.wraps(fn)
            def wrapper(*args, **kwargs):
                before()
                return fn(*args, **kwargs)
            return wrapper

        def named(name):
            def decorator(fn):
                def wrapper(*args):
                    return fn(*args)
                return wrapper
            return decorator

        def before():
            pass

        def helper(x):
            return x

        @plain
        def first(x):
            return helper(x)

        @named("b")
        @plain
        def second(x):
            return helper(x)

        class Box:
            @plain
            def method(self):
                return self.inner()

            def inner(self):
                pass

        @functools.lru_cache(maxsize=None)
        def cached():
            return helper(1)

        @functools.cache
        def cached_plainly():
            return helper(2)

        def run():
            first(1)

        def nested():
            second(2)

        def of_method():
            Box().method()

        def of_cached():
            cached()
            cached_plainly()
        """,
        entries=("main:run", "main:nested", "main:of_method", "main:of_cached"),
    )
    plain = "main:plain.<locals>.wrapper"
    named = "main:named.<locals>.decorator.<locals>.wrapper"
    assert p.edges("main:run") == {(plain, "direct")}
    assert p.edges("main:nested") == {(named, "direct")}
    assert p.edges(named) == {(plain, "direct")}
    assert targets(p.edges("main:of_method")) == {plain}
    assert targets(p.edges(plain)) == {"main:before", "main:first", "main:second", "main:Box.method"}
    assert p.edges("main:Box.method") == {("main:Box.inner", "type")}
    assert p.edges("main:of_cached") == {("main:cached", "direct"), ("main:cached_plainly", "direct")}


def test_closures_see_what_was_bound_around_them(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        def one():
            pass

        def two():
            pass

        def make(fn):
            def call():
                fn()
            return call

        def counter():
            chosen = one

            def swap():
                nonlocal chosen
                chosen = two

            def use():
                chosen()

            swap()
            use()

        def run():
            make(one)()

        def other():
            make(two)()
        """,
        entries=("main:run", "main:other", "main:counter"),
    )
    assert p.edges("main:make.<locals>.call") == {("main:one", "direct"), ("main:two", "direct")}
    assert p.edges("main:counter.<locals>.use") == {("main:one", "direct"), ("main:two", "direct")}
    assert p.edges("main:run") == {("main:make", "direct"), ("main:make.<locals>.call", "direct")}


def test_context_managers_written_as_generators(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import contextlib
        from contextlib import ExitStack, contextmanager, nullcontext
        import torch

        class Pool:
            def use(self):
                pass

            @contextmanager
            def opened(self):
                self.open()
                try:
                    yield self
                finally:
                    self.close()

            def open(self):
                pass

            def close(self):
                pass

        @contextlib.contextmanager
        def pooled(pool):
            with pool.opened() as inner:
                yield inner

        def run():
            with pooled(Pool()) as pool:
                pool.use()

        def maybe(flag):
            context = pooled(Pool()) if flag else nullcontext()
            with context as pool:
                pool.use()

        def stacked(graph):
            with ExitStack() as stack:
                pool = stack.enter_context(pooled(Pool()))
                pool.use()
                stack.enter_context(torch.cuda.graph(graph))
        """,
        entries=("main:run", "main:maybe", "main:stacked"),
    )
    assert p.edges("main:run") == {("main:pooled", "direct"), ("main:Pool.use", "type")}
    assert p.edges("main:pooled") == {("main:Pool.opened", "type")}
    assert p.edges("main:Pool.opened") == {("main:Pool.open", "type"), ("main:Pool.close", "type")}
    assert p.edges("main:maybe") == {("main:pooled", "direct"), ("main:Pool.use", "type")}
    assert p.edges("main:stacked") == {("main:pooled", "direct"), ("main:Pool.use", "type")}
    assert p.call("main:run", "pooled").entered
    assert p.call("main:stacked", "torch.cuda.graph").entered
    assert not p.call("main:run", "pool.use").entered


def test_tables_of_functions_lambdas_and_bound_methods(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        def one():
            pass

        def two():
            pass

        TABLE = {"one": one, "two": two}
        LISTED = [one, two]

        class Owner:
            def __init__(self):
                self.table = {"a": self.a, "b": lambda: two()}

            def a(self):
                pass

            def by_key(self):
                self.table["a"]()

            def by_name(self, name):
                handler = self.table.get(name)
                if handler is not None:
                    handler()

            def dispatch(self, name):
                getattr(self, f"handle_{name}")()

            def handle_x(self):
                pass

            def handle_y(self):
                pass

            def other(self):
                pass

        def run(name):
            TABLE[name]()

        def fixed():
            TABLE["two"]()

        def listed():
            LISTED[1]()

        def looped():
            for fn in LISTED:
                fn()

        def owner(name):
            o = Owner()
            o.by_key()
            o.by_name(name)
            o.dispatch(name)
        """,
        entries=("main:run", "main:fixed", "main:listed", "main:looped", "main:owner"),
    )
    assert p.edges("main:run") == {("main:one", "registry"), ("main:two", "registry")}
    assert p.edges("main:fixed") == {("main:two", "registry")}
    assert p.edges("main:listed") == {("main:two", "registry")}
    assert p.edges("main:looped") == {("main:one", "direct"), ("main:two", "direct")}
    assert p.edges("main:Owner.by_key") == {("main:Owner.a", "registry")}
    assert targets(p.edges("main:Owner.by_name")) == {"main:Owner.a", "main:Owner.__init__.<locals>.<lambda:12>"}
    assert targets(p.edges("main:Owner.dispatch")) == {"main:Owner.handle_x", "main:Owner.handle_y"}


def test_an_attribute_named_by_a_constant_string(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import helpers

        class Owner:
            def on_start(self):
                pass

            def on_stop(self):
                pass

        def run():
            event = "start"
            getattr(Owner(), "on_" + event)()
            getattr(Owner(), f"on_{event}")()

        def of_module():
            getattr(helpers, "assist")()

        def with_default():
            getattr(Owner(), "missing", fallback)()

        def fallback():
            pass

        # file: helpers.py
        def assist():
            pass
        """,
        entries=("main:run", "main:of_module", "main:with_default"),
    )
    assert targets(p.edges("main:run")) == {"main:Owner.on_start"}
    assert targets(p.edges("main:of_module")) == {"helpers:assist"}
    assert targets(p.edges("main:with_default")) == {"main:fallback"}


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
