"""Names across files: every way in which one module's name becomes another's."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from .programs import program

#: Ways of naming `pkg.work:work` in `main`, each used as `work()`.
WAYS = {
    "from": "from pkg.work import work",
    "renamed": "from pkg.work import work as other\nwork = other",
    "module": "import pkg.work\n\ndef work():\n    return pkg.work.work()",
    "module renamed": "import pkg.work as w\nwork = w.work",
    "from package": "from pkg import work as module\nwork = module.work",
    "re-export": "from pkg.exported import work",
    "re-export renamed": "from pkg.exported import labour as work",
    "star": "from pkg.work import *",
    "star of star": "from pkg.starred import *",
    "relative in the package": "from pkg.relative import work",
    "through a lazy module attribute": "from pkg.lazy import work",
    "try": "try:\n    from nowhere import work\nexcept ImportError:\n    from pkg.work import work",
    "conditional": "import sys\nif sys.platform == 'linux':\n    from pkg.work import work\nelse:\n    work = None",
    "import_module": "import importlib\nwork = importlib.import_module('pkg.work').work",
    "import_module relative": "from pkg.dynamic import work",
    "__import__": "work = __import__('pkg.work', fromlist=['work']).work",
}

PACKAGE = """
        # file: pkg/__init__.py
        # file: pkg/work.py
        def work():
            pass

        def _private():
            pass

        # file: pkg/exported.py
        from pkg.work import work, work as labour

        # file: pkg/starred.py
        from pkg.work import *

        # file: pkg/relative.py
        from .work import work
        from . import work as module

        # file: pkg/lazy.py
        def __getattr__(name):
            if name == "work":
                from pkg.work import work
                return work
            raise AttributeError(name)

        # file: pkg/dynamic.py
        import importlib
        work = importlib.import_module(".work", __package__).work
"""


@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_found_whichever_way_it_is_imported(tmp_path: Path, way: str) -> None:
    main = f"# file: main.py\n{WAYS[way]}\n\n\ndef run():\n    work()\n"
    p = program(tmp_path, textwrap.dedent(PACKAGE) + main)
    reached = "main:work" if way == "module" else "main:run"
    # A module's `__getattr__` is called by the import statement itself.
    lazily = {("pkg.lazy:__getattr__", "direct")} if "lazy" in way else set()
    assert p.edges(reached) == {("pkg.work:work", "direct")} | lazily


def test_lazy_import_inside_a_function_binds_there_only(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        def work():
            pass

        def run():
            from other import work
            work()

        def elsewhere():
            work()

        # file: other.py
        def work():
            pass
        """,
        entries=("main:run", "main:elsewhere"),
    )
    assert p.edges("main:run") == {("other:work", "direct")}
    assert p.edges("main:elsewhere") == {("main:work", "direct")}


def test_module_that_only_an_excluded_branch_imports_is_not_read(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        DEBUG = False

        def run():
            if DEBUG:
                from heavy import work
                work()

        # file: heavy.py
        def work():
            pass
        """,
    )
    assert p.edges("main:run") == set()
    assert p.modules == ["main.py"]


def test_type_checking_import_serves_annotations(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from __future__ import annotations
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from engines import Engine

        def run(engine: Engine):
            engine.start()

        def quoted(engine: "Engine | None"):
            engine.start()

        # file: engines.py
        class Engine:
            def start(self):
                pass
        """,
        entries=("main:run", "main:quoted"),
    )
    assert p.edges("main:run") == {("engines:Engine.start", "override")}
    assert p.edges("main:quoted") == {("engines:Engine.start", "override")}


def test_namespace_packages_need_no_init_file(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import space.inner.work
        from space.inner import other

        def run():
            space.inner.work.work()
            other.work()

        # file: space/inner/work.py
        def work():
            pass

        # file: space/inner/other.py
        from .work import work as original

        def work():
            original()
        """,
    )
    assert p.edges("main:run") == {("space.inner.work:work", "direct"), ("space.inner.other:work", "direct")}
    assert p.edges("space.inner.other:work") == {("space.inner.work:work", "direct")}


def test_star_import_leaves_private_names_and_honours_all(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from pkg import *

        def hidden():
            pass

        def run():
            shown()
            hidden()

        # file: pkg/__init__.py
        from .inside import *
        from .inside import hidden

        __all__ = ["shown"]

        # file: pkg/inside.py
        def shown():
            pass

        def hidden():
            pass
        """,
    )
    assert p.edges("main:run") == {("pkg.inside:shown", "direct"), ("main:hidden", "direct")}


def test_modules_that_import_each_other(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from left import left

        def run():
            left(3)

        # file: left.py
        import right

        def left(n):
            return right.right(n - 1)

        # file: right.py
        from left import left

        def right(n):
            return left(n - 1) if n else None
        """,
    )
    assert p.edges("left:left") == {("right:right", "direct")}
    assert p.edges("right:right") == {("left:left", "direct")}


def test_code_outside_the_program_is_an_access_path(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import torch
        import torch.nn as nn
        from torch.cuda import CUDAGraph as Graph, graph

        def run(pool):
            g = Graph()
            with graph(g, pool=pool):
                nn.functional.relu(1)
            g.replay()
            torch.cuda.graphs.graph_pool_handle()
        """,
    )
    assert p.externals("main:run") == {
        "torch.cuda.CUDAGraph",
        "torch.cuda.graph",
        "torch.nn.functional.relu",
        "torch.cuda.CUDAGraph().replay",
        "torch.cuda.graphs.graph_pool_handle",
    }
    assert [c.text for c in p.linked.calls["main:run"] if c.entered] == ["graph"]
    assert p.call("main:run", "g.replay").receivers == {"torch.cuda.CUDAGraph()"}


def test_registrants_imported_only_for_effect_are_found(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        import registrants.first
        import registrants.unrelated
        from registry import TABLE

        def run(name):
            TABLE[name]()

        # file: registry.py
        TABLE = {}

        def register(name):
            def decorator(fn):
                TABLE[name] = fn
                return fn
            return decorator

        # file: registrants/first.py
        from registry import register

        @register("first")
        def first():
            pass

        # file: registrants/unrelated.py
        def unrelated():
            pass

        # file: registrants/never.py
        from registry import register

        @register("never")
        def never():
            pass
        """,
    )
    assert p.edges("main:run") == {("registrants.first:first", "registry")}
    assert "registrants/unrelated.py" not in p.modules
    assert "registrants/never.py" not in p.modules


def test_registrants_imported_by_a_package_for_effect(tmp_path: Path) -> None:
    p = program(
        tmp_path,
        """
        # file: main.py
        from backends.registry import create

        def run(name):
            create(name).start()

        # file: backends/__init__.py
        from backends import triton_backend
        from .flash import Flash

        # file: backends/registry.py
        CLASSES = {}

        def register(name):
            def wrap(cls):
                CLASSES[name] = cls
                return cls
            return wrap

        def create(name):
            return CLASSES[name]()

        # file: backends/triton_backend.py
        from backends.registry import register

        @register("triton")
        class Triton:
            def start(self):
                pass

        # file: backends/flash.py
        from .registry import register

        @register("flash")
        class Flash:
            def start(self):
                pass
        """,
    )
    assert p.edges("main:run") == {
        ("backends.registry:create", "direct"),
        ("backends.triton_backend:Triton.start", "type"),
        ("backends.flash:Flash.start", "type"),
    }
