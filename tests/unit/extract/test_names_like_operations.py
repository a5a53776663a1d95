"""Names that a program imports or declares may be spelled as the operations of facts are: nobody may take them for one."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.checkout.project import Module
from sgl_graph.analyzer.static.extract.lower import extract
from sgl_graph.analyzer.static.extract.shape import READ, shape_of
from sgl_graph.analyzer.static.sites.callees import leaves
from sgl_graph.analyzer.static.sites.scopes import scopes_of

OPERATIONS = [
    "n",
    "v",
    "a",
    "c",
    "s",
    "sl",
    "f",
    "l",
    "i",
    "bo",
    "u",
    "b",
    "cmp",
    "t",
    "L",
    "S",
    "d",
    "w",
    "C",
    "y",
    "yf",
    "aw",
    "x",
    "k",
    "e",
]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_body_that_imports_and_declares_such_names_is_read(name: str) -> None:
    source = f"""
def work(first):
    global {name}, {name}2
    import {name}
    import {name} as other
    from package import {name}
    from package import {name} as {name}2, first
    return {name}.attribute(first)

def alone():
    global {name}
"""
    module = Module("m", "m.py", False, extract(source.encode()))
    body = module.function_body(0)
    assert [item[2] for item in body if item[0] == "import"] == [[["as", name, None]], [["as", name, "other"]]]
    assert [item[4] for item in body if item[0] == "from"] == [
        [["as", name, None]],
        [["as", name, f"{name}2"], ["as", "first", None]],
    ]
    found = [leaf for leaf in leaves(["t", *body]) if leaf[0] != "l"]
    assert found == [["a", ["n", name], "attribute", 8], ["n", name], ["n", "first"]]
    assert list(leaves(["t", *module.function_body(1)])) == []
    work, alone = scopes_of(module).children
    assert work.globals == {name, f"{name}2"} and alone.globals == {name}
    assert work.imports == {
        name: ("package", name), "other": (name, None), f"{name}2": ("package", name), "first": ("package", "first"),
    }  # fmt: skip
    assert shape_of(module.facts, lambda position, index: READ).functions == [0, 1]


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_top_level_imports_is_known_by_its_name(name: str) -> None:
    source = f"""
import {name}, {name}.below as other
from {name} import {name} as renamed
try:
    from .near import {name}
except ImportError:
    pass
"""
    found = Module("package.m", "package/m.py", False, extract(source.encode())).imports()
    near = ["package.near", f"package.near.{name}"]
    assert sorted(found) == sorted([name, f"{name}.below", name, f"{name}.{name}", *near])
