"""Whatever parses, links: no exception, an end, and a result that hangs together. And the same result each time."""

from __future__ import annotations

import ast
import random
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.extract.facts import ModuleFacts
from sgl_graph.analyzer.static.extract.lower import extract
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.linked import Linked, Truth

from .programs import FolderSources

#: Interpretations of function bodies beyond which a program of this size does not end for any practical purpose.
_MOST_INTERPRETATIONS = 60_000
_REPOSITORY = Path(__file__).parents[3]


class Texts:
    """`Sources` of a dictionary."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files

    def paths(self) -> list[str]:
        return sorted(self._files)

    def text(self, path: str) -> bytes:
        return self._files[path].encode()

    def lost(self) -> dict[str, str]:
        return {}

    def problem(self, path: str) -> str | None:
        return None

    def digest(self, path: str) -> str:
        return path

    def facts(self, path: str) -> ModuleFacts:
        return extract(self.text(path))

    def prefetch(self, paths: Iterable[str]) -> None:
        pass


def linked(files: dict[str, str], entries: Iterable[str] = ("main:<module>",), survey: Iterable[str] = ()) -> Linked:
    """Link, and fail rather than go on for ever."""

    def on_progress(count: int) -> None:
        assert count < _MOST_INTERPRETATIONS, "too many interpretations"

    return link(Project(Texts(files)), list(entries), survey=survey, kept_externals=("torch",), on_progress=on_progress)


def check(result: Linked) -> None:
    """What holds of every result."""
    modules = {f"{module.name}:<module>" for module in result.project.loaded()}
    known = set(result.definitions) | modules
    for caller, callee, data in result.graph.edges(data=True):
        assert caller in known and callee in result.definitions
        assert data["line"] >= 0 and data["file"].endswith(".py")
        assert all(guard.text for guard in data["guards"])
    assert set(result.reached) <= known
    for caller, calls in result.calls.items():
        for call in calls:
            assert call.caller == caller
            assert call.targets <= set(result.definitions)
            assert call.constructs <= set(result.classes)


_NAMES = st.sampled_from(["a", "b", "f", "g", "C", "D", "self", "x", "other"])
_ATTRIBUTES = st.sampled_from(["p", "q", "run", "__call__", "__get__", "__getattr__", "__iter__", "append", "items"])
_LITERALS = st.sampled_from(["None", "True", "0", "1", "-2", "'s'", "'a.b'", "()", "[]", "{}", "1.5", "..."])
_OPERATORS = st.sampled_from(["+", "-", "*", "%", "|", "<<", "and", "or", "==", "is", "in", "not in", "<", "//"])


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{0}.{1}".format, inner, _ATTRIBUTES),
        st.builds("{0}({1})".format, inner, inner),
        st.builds("{0}(*{1}, **{2})".format, inner, inner, inner),
        st.builds("{0}({1}, p={2})".format, inner, inner, inner),
        st.builds("{0}[{1}]".format, inner, inner),
        st.builds("{0}[{1}:]".format, inner, inner),
        st.builds("({0} {1} {2})".format, inner, _OPERATORS, inner),
        st.builds("({0} if {1} else {2})".format, inner, inner, inner),
        st.builds("(lambda x=None, *y: {0})".format, inner),
        st.builds("[{0}, *{1}]".format, inner, inner),
        st.builds("({0}, {1})".format, inner, inner),
        st.builds("{{{0}: {1}, **{2}}}".format, inner, inner, inner),
        st.builds("[{0} for x in {1} if {2}]".format, inner, inner, inner),
        st.builds("{{x: {0} for x in {1}}}".format, inner, inner),
        st.builds("(other := {0})".format, inner),
        st.builds("getattr({0}, {1}, {2})".format, inner, inner, inner),
        st.builds("functools.partial({0}, {1})".format, inner, inner),
        st.builds("super().{0}".format, _ATTRIBUTES),
        st.builds("property({0})".format, inner),
        st.builds("type({0})".format, inner),
        st.builds("isinstance({0}, {1})".format, inner, inner),
        st.builds("map({0}, {1})".format, inner, inner),
        st.builds("collections.defaultdict({0})".format, inner),
        st.builds("types.MethodType({0}, {1})".format, inner, inner),
        st.builds('f"{{{0}}}.{{{1}}}"'.format, _NAMES, _NAMES),
    )


EXPRESSIONS = st.recursive(st.one_of(_NAMES, _LITERALS), _compound, max_leaves=5)


def _indented(text: str) -> str:
    return textwrap.indent(text, "    ")


_TARGETS = st.one_of(
    _NAMES,
    st.builds("{0}.{1}".format, _NAMES, _ATTRIBUTES),
    st.builds("{0}[{1}]".format, _NAMES, EXPRESSIONS),
    st.just("a, *b"),
    st.just("(a, b), x"),
)
_SIMPLE = st.one_of(
    st.builds("{0} = {1}".format, _TARGETS, EXPRESSIONS),
    st.builds("{0} += {1}".format, _NAMES, EXPRESSIONS),
    st.builds("{0}: {1} = {2}".format, _NAMES, EXPRESSIONS, EXPRESSIONS),
    st.builds("{0}".format, EXPRESSIONS),
    st.builds("setattr({0}, {1}, {2})".format, EXPRESSIONS, EXPRESSIONS, EXPRESSIONS),
    st.builds("assert {0}".format, EXPRESSIONS),
    st.builds("raise {0}".format, EXPRESSIONS),
    st.builds("del {0}".format, _NAMES),
    st.sampled_from(
        ["pass", "import pkg.one", "from pkg.one import *", "from pkg import one as a", "from main import f as g",
         "from . import pkg", "import torch.cuda as C", "import main"]
    ),
)  # fmt: skip


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, min_size=1, max_size=3).map("\n".join).map(_indented)
    decorators = st.sampled_from(
        ["", "@staticmethod\n", "@classmethod\n", "@property\n", "@f\n", "@g(1)\n", "@contextlib.contextmanager\n",
         "@functools.wraps(f)\n", "@functools.lru_cache\n", "@dataclasses.dataclass\n"]
    )  # fmt: skip
    parameters = st.sampled_from(["", "self", "x", "x, y=f", "*a, **b", "self, x, *, p=None", "x: C", "x: 'D | None'"])
    returns = st.builds("\n    return {0}".format, EXPRESSIONS)
    yields = st.builds("\n    yield {0}".format, EXPRESSIONS)
    ends = st.one_of(st.just(""), returns, yields)
    return st.one_of(
        st.builds("{0}def {1}({2}):\n{3}{4}".format, decorators, _NAMES, parameters, body, ends),
        st.builds("async def {0}({1}):\n{2}\n    await {3}".format, _NAMES, parameters, body, EXPRESSIONS),
        st.builds("{0}class {1}({2}):\n{3}".format, decorators, _NAMES, st.sampled_from(["", "C", "D", "dict", "enum.Enum", "C, D", "torch.nn.Module", "typing.NamedTuple", "metaclass=C"]), body),
        st.builds("if {0}:\n{1}\nelse:\n{2}".format, EXPRESSIONS, body, body),
        st.builds("for {0} in {1}:\n{2}".format, _TARGETS, EXPRESSIONS, body),
        st.builds("while {0}:\n{1}\n    break".format, EXPRESSIONS, body),
        st.builds("with {0} as {1}:\n{2}".format, EXPRESSIONS, _NAMES, body),
        st.builds("try:\n{0}\nexcept {1}:\n{2}\nfinally:\n{3}".format, body, EXPRESSIONS, body, body),
        st.builds("match {0}:\n    case {1}:\n{2}\n    case _:\n        pass".format, EXPRESSIONS, st.sampled_from(["x", "1 | 2", "C()", "C(p=x)", "[x, *a]", "{'p': x, **a}", "(1, x)", "None"]), body.map(_indented)),
    )  # fmt: skip


STATEMENTS = st.recursive(_SIMPLE, _blocks, max_leaves=8)
MODULES = st.lists(STATEMENTS, min_size=1, max_size=5).map("\n".join)
_PREAMBLE = "import collections, contextlib, dataclasses, enum, functools, types, typing, torch\n"

#: Programs that once made the linker recurse, grow without bound or fail.
HARD = [
    "import functools\ndef f(): pass\np = functools.partial(f)\np = functools.partial(p)\np()",
    "import functools\nclass C:\n    def m(self): self.p = functools.partial(self.p); self.p()\nC().m()",
    "class C: pass\nC.__call__ = C()\nC()()",
    "class C: pass\nC.__get__ = C()\nclass D:\n    x = C()\nD().x()",
    "class C: pass\nC.__iter__ = C()\nfor x in C(): x()",
    "class C:\n    def __getattr__(self, n): return getattr(self, n)\nC().anything()",
    "class C:\n    @property\n    def p(self): return self.p\nC().p()",
    "def f(x): return f(x * x)\nf(2)",
    "def f(x): return f(x + x)\nf('ab')",
    'def f(x): return f(f"{x}{x}")\nf("ab")',
    "def f(x): return f(x.replace('a', 'aaaaaaaa'))\nf('a')",
    "def f(x): return f(x % 5)\nf('%999999999d')",
    "def f(x): return f(x << 60)\nf(1)",
    "def f(x): return f((x, x))\nf(1)",
    "def f(x): return f([x])\nf(1)",
    "def f(x): return f(lambda: x())\nf(print)",
    "import types\ndef f(x): return f(types.MethodType(f, x))\nf(1)",
    "def f(x): return f(property(x))\nf(f)",
    "def f():\n    class C:\n        def m(self): return f()().m()\n    return C\nf()().m()",
    "x = x\nx()",
    "from main import *\nfrom main import y\ny()",
    "import main\nmain.main.main.f()\ndef f(): main.f()",
    "class A(B): pass\nclass B(A): pass\nA().m()",
    "class A(A): pass\nA()",
    "lambda: (yield)",
    "d = {}\nd[d] = d\nd[d][d]()",
    "l = []\nl.append(l)\nfor x in l:\n    for y in x: y()",
    "def f(*a, **k): return f(*a, f, **k, g=f)\nf(1, x=f)",
    "float('nan') == float('nan')\nint('9' * 5000)\nint(float('inf'))",
    "x = ''.join\nx(x)\n'a'.split('')\n'a'.center(10 ** 9)",
    "[1, 2, 3][::0]\n'abc'[::0]\n'abc'[-10:10:-1]()",
]


@pytest.mark.parametrize("text", HARD)
def test_hard_programs_end(text: str) -> None:
    files = {"main.py": text}
    check(linked(files, survey=("main",)))


_QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=_QUIET)
@given(main=MODULES, one=MODULES)
@example(main="from pkg.one import *\nf()", one="from main import *\ndef f(): g()")
def test_generated_programs_link(main: str, one: str) -> None:
    """Most texts that the grammar yields parse; one that does not is a file that cannot be read, and links too."""
    files = {"main.py": _PREAMBLE + main, "pkg/one.py": _PREAMBLE + one}
    check(linked(files, survey=("main", "pkg.one")))


def _real_files() -> list[Path]:
    return sorted((_REPOSITORY / "analyzer" / "static" / "link").glob("*.py"))


@pytest.mark.parametrize("seed", range(4))
def test_mutilated_real_files_link(seed: int) -> None:
    chosen = random.Random(seed)
    files: dict[str, str] = {}
    for path in chosen.sample(_real_files(), 3):
        lines = path.read_text().splitlines()
        if not lines:
            continue
        for _ in range(40):
            candidate = list(lines)
            place = chosen.randrange(len(candidate))
            if chosen.random() < 0.5:
                del candidate[place]
            else:
                other = chosen.randrange(len(candidate))
                candidate[place], candidate[other] = candidate[other], candidate[place]
            try:
                ast.parse("\n".join(candidate))
            except (SyntaxError, ValueError):
                continue
            lines = candidate
        files[f"sgl_graph/analyzer/static/link/{path.name}"] = "\n".join(lines)
    modules = [path.removesuffix(".py").replace("/", ".") for path in files]
    check(linked(files, [f"{name}:<module>" for name in modules], modules))


def _content(result: Linked) -> object:
    edges = [
        (caller, callee, data["file"], data["line"], data["known"], data["guards"])
        for caller, callee, data in result.graph.edges(data=True)
    ]
    calls = {
        caller: [(c.line, c.text, sorted(c.targets), sorted(c.constructs), sorted(c.externals), sorted(c.receivers),
                  c.known, c.entered, c.guards, c.active) for c in items]
        for caller, items in result.calls.items()
    }  # fmt: skip
    classes = {name: (info.ancestors, info.methods, info.attributes) for name, info in result.classes.items()}
    return sorted(edges, key=repr), calls, classes, result.reached, sorted(result.definitions), result.problems


def test_two_links_of_one_program_are_equal(tmp_path: Path) -> None:
    """The extractor of this repository, linked twice: a program of real size."""
    package = tmp_path / "sgl_graph" / "analyzer" / "static"
    package.mkdir(parents=True)
    rooms = {
        "extract": ("facts", "lower", "lower_expressions", "lower_patterns", "positions", "text"),
        "checkout": ("project", "sources"),
    }
    for room, names in rooms.items():
        (package / room).mkdir()
        for name in names:
            (package / room / f"{name}.py").write_bytes(
                (_REPOSITORY / "analyzer" / "static" / room / f"{name}.py").read_bytes()
            )
    entry = "sgl_graph.analyzer.static.extract.lower:extract"
    survey = ("sgl_graph.analyzer.static.extract.text", "sgl_graph.analyzer.static.checkout.project")
    first = link(Project(FolderSources(tmp_path)), [entry], survey=survey)
    check(first)
    held = [object() for _ in range(1000)]  # so that nothing lies where it lay
    second = link(Project(FolderSources(tmp_path)), [entry], survey=survey)
    assert held and _content(first) == _content(second)
    # Handlers in a table by type, called through `dict.get`.
    assert first.reached["sgl_graph.analyzer.static.extract.lower_expressions:ExpressionLowering._walrus"] is Truth.TRUE
    assert "sgl_graph.analyzer.static.extract.text:render" not in first.reached
