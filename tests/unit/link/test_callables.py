"""How callables travel: partials, decorators, closures, context managers, tables."""

from __future__ import annotations

from pathlib import Path

from .programs import program, targets


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
