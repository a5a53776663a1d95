"""Source to libcst's tree, of which only what facts need is made.

Half of what libcst's parser does is making Python objects, and most of those stand for blanks, line ends and punctuation. It
looks up the class of each node in libcst's namespace, so for the time of a parse that namespace holds constructors of ours: they make
nodes of libcst's classes with the fields of `_FIELDS` alone, and one object of each other class for all of its nodes
(docs/adr/0004).
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from typing import Any

import libcst as cst

#: What the extractor reads of each class of node.
_FIELDS = {
    "Module": "body", "IndentedBlock": "body", "SimpleStatementSuite": "body", "SimpleStatementLine": "body",
    "FunctionDef": "name params body decorators returns asynchronous", "ClassDef": "name body bases keywords decorators",
    "Decorator": "decorator", "Annotation": "annotation", "Lambda": "params body",
    "Parameters": "params star_arg kwonly_params star_kwarg posonly_params", "Param": "name annotation default",
    "If": "test body orelse", "Else": "body", "For": "target iter body orelse", "While": "test body orelse",
    "With": "items body", "WithItem": "item asname", "AsName": "name", "Match": "subject cases", "MatchCase": "pattern body guard",
    "Try": "body handlers orelse finalbody", "TryStar": "body handlers orelse finalbody", "Finally": "body",
    "ExceptHandler": "body type name", "ExceptStarHandler": "body type name",
    "Expr": "value", "Return": "value", "Raise": "exc", "Assert": "test msg", "Del": "target", "NameItem": "name",
    "Global": "names", "Nonlocal": "names", "Import": "names", "ImportFrom": "module names relative", "ImportAlias": "name asname",
    "Assign": "targets value", "AssignTarget": "target", "AnnAssign": "target annotation value", "AugAssign": "target operator value",
    "Name": "value", "Attribute": "value attr", "Call": "func args", "Arg": "value keyword star", "Subscript": "value slice",
    "SubscriptElement": "slice", "Index": "value", "Slice": "lower upper step", "Integer": "value", "Float": "value",
    "SimpleString": "value", "ConcatenatedString": "left right", "FormattedString": "parts",
    "FormattedStringText": "value", "FormattedStringExpression": "expression", "IfExp": "test body orelse",
    "BooleanOperation": "left operator right", "BinaryOperation": "left operator right", "UnaryOperation": "operator expression",
    "Comparison": "left comparisons", "ComparisonTarget": "operator comparator", "NamedExpr": "target value",
    "Tuple": "elements", "List": "elements", "Set": "elements", "Dict": "elements", "Element": "value", "StarredElement": "value",
    "DictElement": "key value", "StarredDictElement": "value", "ListComp": "elt for_in", "SetComp": "elt for_in",
    "GeneratorExp": "elt for_in", "DictComp": "key value for_in", "CompFor": "target iter ifs inner_for_in", "CompIf": "test",
    "Yield": "value", "From": "item", "Await": "expression",
    "MatchValue": "value", "MatchSingleton": "value", "MatchClass": "cls patterns kwds", "MatchOr": "patterns",
    "MatchOrElement": "pattern", "MatchAs": "pattern name", "MatchList": "patterns", "MatchTuple": "patterns",
    "MatchSequenceElement": "value", "MatchStar": "name", "MatchMapping": "elements rest", "MatchMappingElement": "key pattern",
    "MatchKeywordElement": "key pattern",
}  # fmt: skip
#: While one thread has the constructors in place, another one finds no classes there: only who holds this uses libcst.
alone = threading.Lock()
Constructor = Callable[..., object]


def parse(source: bytes) -> cst.Module:
    """The tree of a file's bytes, with the fields of `_FIELDS` alone; to be called under `alone`.

    Raises:
        Exception: whatever `libcst.parse_module` raises.
    """
    with _in_place(_constructors()):
        return cst.parse_module(source)


@functools.cache
def _constructors() -> Mapping[str, Constructor]:
    """A constructor for each class of node; none where this libcst makes its nodes in another way."""
    found: dict[str, Constructor] = {}
    try:
        for name, kind in vars(cst).items():
            if isinstance(kind, type) and issubclass(kind, cst.CSTNode) and not inspect.isabstract(kind):
                found[name] = _constructor(kind, _FIELDS[name].split()) if name in _FIELDS else _constant(kind)
    except (AttributeError, KeyError, TypeError):
        return {}
    return found


@contextmanager
def _in_place(constructors: Mapping[str, Constructor]) -> Iterator[None]:
    namespace = vars(cst)
    held = {name: namespace[name] for name in constructors}
    namespace.update(constructors)
    try:
        yield
    finally:
        namespace.update(held)


def _constructor(kind: type[cst.CSTNode], names: Sequence[str]) -> Constructor:
    """A function of keywords that makes a node, past the checks that libcst makes of nodes which programs put together."""
    defaults = {field.name: field.default for field in fields(kind)}
    given: dict[str, Any] = {"new": object.__new__, "kind": kind}
    given |= {f"set_{name}": vars(kind)[name].__set__ for name in names}
    given |= {f"default_{name}": defaults[name] for name in names}
    parameters = [name if defaults[name] is MISSING else f"{name}=default_{name}" for name in names]
    parameters += [f"{name}=None" for name in defaults if name not in names]
    lines = [f"def make(*, {', '.join(parameters)}):", " node = new(kind)"]
    lines += [f" set_{name}(node, {name})" for name in names]
    exec("\n".join([*lines, " return node"]), given)  # noqa: S102 - a text of names of fields
    made: Constructor = given["make"]
    return made


def _constant(kind: type[cst.CSTNode]) -> Constructor:
    node = object.__new__(kind)
    return lambda **ignored: node
