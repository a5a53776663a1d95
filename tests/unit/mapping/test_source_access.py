"""Who in the analyser reads texts, decodes bodies and goes through functions: a stored map has to know of all of it."""

from __future__ import annotations

import ast
from pathlib import Path


def test_only_the_questions_read_text_and_only_modules_decode_bodies() -> None:
    """A stored map cannot tell what is read past them, so nothing in the analyser does it."""
    reading, decoding = set(), set()
    for path in (Path(__file__).parents[3] / "analyzer" / "static").rglob("*.py"):
        tree = ast.parse(path.read_text())
        named = {alias.asname or alias.name for node in ast.walk(tree) for alias in _from_facts(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "text" and "sources" in ast.unparse(node.value):
                reading.add(path.name)
            if (
                isinstance(node, ast.Attribute)
                and node.attr == "statements"
                and ast.unparse(node.value) in ("f", "facts")
            ):
                decoding.add(path.name)
        if {"statements", "_body_decoder"} & named:
            decoding.add(path.name)
    assert reading == {"project.py", "textindex.py", "preflight.py"}  # the last counts functions, for `stats`
    assert decoding == {"project.py", "shape.py"}


def test_who_goes_through_the_functions_of_a_module_says_so() -> None:
    """A stored map holds over new functions only where nobody did."""
    going = set()
    for path in (Path(__file__).parents[3] / "analyzer" / "static").rglob("*.py"):
        for text in _gone_through(ast.parse(path.read_text())) if path.parent.name != "extract" else ():
            if text.endswith(("facts.functions", "facts.classes")):
                going.add(path.name)
    # The linker marks a module and `function_named` a name; the evaluation marks the packages that it searches.
    assert going == {"effects.py", "project.py", "unevaluated.py"}


def _gone_through(tree: ast.AST) -> list[str]:
    """What loops, comprehensions and calls such as `len` and `enumerate` go through."""
    found = [node.iter for node in ast.walk(tree) if isinstance(node, (ast.For, ast.comprehension))]
    found += [
        argument
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        for argument in node.args
    ]
    return [ast.unparse(node) for node in found]


def _from_facts(node: ast.AST) -> list[ast.alias]:
    return (
        node.names if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("static.extract.facts") else []
    )
