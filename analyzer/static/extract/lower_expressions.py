"""Expressions of libcst's tree to facts, with the names that they bind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import libcst as cst
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.positions import Lines, StatementLines

BINARY = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "FloorDivide": "//", "Modulo": "%", "Power": "**",
    "MatrixMultiply": "@", "LeftShift": "<<", "RightShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^",
}  # fmt: skip
_UNARY = {"Not": "not", "Minus": "-", "Plus": "+", "BitInvert": "~"}
_COMPARE = {
    "Equal": "==", "NotEqual": "!=", "LessThan": "<", "LessThanEqual": "<=", "GreaterThan": ">",
    "GreaterThanEqual": ">=", "In": "in", "NotIn": "not in", "Is": "is", "IsNot": "is not",
}  # fmt: skip
_SMALL_INTEGER_DIGITS = 18
_LONG_STRING = 4096
_CONSTANTS = {"True": True, "False": False, "None": None}


class Scope:
    """Names bound in one function body, and whether it yields."""

    __slots__ = ("bound", "declared", "nests", "yields")

    def __init__(self) -> None:
        self.bound: dict[str, None] = {}
        self.declared: set[str] = set()
        self.yields = False
        self.nests = False


class ExpressionLowering:
    """State of one pass over a module, and its expressions."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._at = StatementLines(1, ())
        self._functions: list[f.FunctionFacts | None] = []
        self._classes: list[f.ClassFacts | None] = []
        self._names: list[str] = []
        self._lambdas: dict[str, int] = {}
        self._scopes: list[Scope] = [Scope()]

    def _qualified(self, name: str) -> str:
        return ".".join([*self._names, name])

    def _parameters(self, node: cst.Parameters) -> list[f.Parameter]:
        groups: list[tuple[str, Sequence[cst.Param]]] = [("p", node.posonly_params), ("n", node.params)]
        if isinstance(node.star_arg, cst.Param):
            groups.append(("*", [node.star_arg]))
        groups.append(("k", node.kwonly_params))
        if node.star_kwarg is not None:
            groups.append(("**", [node.star_kwarg]))
        result = []
        for kind, items in groups:
            for item in items:
                annotation = self._expr(item.annotation.annotation) if item.annotation else None
                default = self._expr(item.default) if item.default else None
                result.append(f.Parameter(item.name.value, kind, default, annotation))
        return result

    def _lambda(self, node: cst.Lambda) -> f.Expression:
        line = self._at.next("l", node)
        self._scopes[-1].nests = True
        parameters = self._parameters(node.params)
        index = len(self._functions)
        self._functions.append(None)
        scope = Scope()
        scope.bound.update((parameter.name, None) for parameter in parameters)
        self._scopes.append(scope)
        body = [["return", line, self._expr(node.body)]]
        self._scopes.pop()
        qualname = self._qualified(f"<lambda:{line}>")
        count = self._lambdas[qualname] = self._lambdas.get(qualname, 0) + 1
        if count > 1:
            qualname = self._qualified(f"<lambda:{line}.{count}>")
        flags = f.LAMBDA | (f.GENERATOR if scope.yields else 0) | (f.NESTS if scope.nests else 0)
        self._functions[index] = f.FunctionFacts(
            "<lambda>", qualname, line, line, parameters, None, [], flags, list(scope.bound), f.encode_body(body)
        )
        return ["l", index, line]

    def _expr(self, node: Any) -> f.Expression:
        return self._LOWERED.get(type(node), _unknown)(self, node)

    def _target(self, node: Any) -> f.Expression:
        if isinstance(node, cst.Name):
            self._bind(node.value)
        elif isinstance(node, (cst.Tuple, cst.List)):
            return ["t", [self._target_item(item) for item in node.elements]]
        return self._expr(node)

    def _target_item(self, item: cst.BaseElement) -> f.Expression:
        target = self._target(item.value)
        return ["*", target] if isinstance(item, cst.StarredElement) else target

    def _bind(self, name: str) -> None:
        self._scopes[-1].bound[name] = None

    def _name(self, node: cst.Name) -> f.Expression:
        value = node.value
        if value in _CONSTANTS:
            return ["v", _CONSTANTS[value]]
        return ["n", value]

    def _attribute(self, node: cst.Attribute) -> f.Expression:
        line = self._at.next("a", node)
        return ["a", self._expr(node.value), node.attr.value, line]

    def _call(self, node: cst.Call) -> f.Expression:
        line = self._at.next("c", node)
        function = self._expr(node.func)
        arguments: list[f.Expression] = []
        for argument in node.args:
            value = self._expr(argument.value)
            if argument.keyword is not None:
                arguments.append(["k", argument.keyword.value, value])
            elif argument.star:
                arguments.append([argument.star, value])
            else:
                arguments.append(value)
        return ["c", function, arguments, line]

    def _subscript(self, node: cst.Subscript) -> f.Expression:
        line = self._at.next("s", node)
        value = self._expr(node.value)
        return ["s", value, [self._expr(item.slice) for item in node.slice], line]

    def _slice(self, node: cst.Slice) -> f.Expression:
        return ["sl", *(self._expr(part) if part is not None else None for part in (node.lower, node.upper, node.step))]

    def _string(self, node: cst.SimpleString) -> f.Expression:
        raw = node.value
        if len(raw) > _LONG_STRING:
            return ["x"]
        if raw[0] in "'\"" and raw[1:2] != raw[0] and "\\" not in raw:
            return ["v", raw[1:-1]]
        try:
            value = node.evaluated_value
        except (ValueError, SyntaxError):
            return ["x"]
        text = value if isinstance(value, str) else _encodable(value)
        return ["v", text] if _is_text(text) else ["x"]

    def _concatenated(self, node: cst.ConcatenatedString) -> f.Expression:
        left, right = self._expr(node.left), self._expr(node.right)
        if left[0] == right[0] == "v" and isinstance(left[1], str) and isinstance(right[1], str):
            return ["v", left[1] + right[1]]
        parts: list[f.Expression] = []
        for side in (left, right):
            parts += side[1] if side[0] == "f" else [side]
        return ["f", parts]

    def _format(self, node: cst.FormattedString) -> f.Expression:
        parts: list[f.Expression] = []
        held = self._at
        self._at = StatementLines(held.current, None)
        for part in node.parts:
            if isinstance(part, cst.FormattedStringText):
                parts.append(["v", part.value])
            elif isinstance(part, cst.FormattedStringExpression):
                parts.append(self._expr(part.expression))
        self._at = held
        return ["f", parts]

    def _integer(self, node: cst.Integer) -> f.Expression:
        value = node.evaluated_value
        return ["v", value] if len(str(value)) <= _SMALL_INTEGER_DIGITS else ["x"]

    def _float(self, node: cst.Float) -> f.Expression:
        return ["v", node.evaluated_value]

    def _if_exp(self, node: cst.IfExp) -> f.Expression:
        body = self._expr(node.body)
        test = self._expr(node.test)
        return ["i", test, body, self._expr(node.orelse)]

    def _boolean(self, node: cst.BooleanOperation) -> f.Expression:
        left = self._expr(node.left)
        return ["bo", "and" if isinstance(node.operator, cst.And) else "or", left, self._expr(node.right)]

    def _unary(self, node: cst.UnaryOperation) -> f.Expression:
        value = self._expr(node.expression)
        operator = _UNARY.get(type(node.operator).__name__, "?")
        if operator == "-" and value[0] == "v" and type(value[1]) in (int, float):
            return ["v", -value[1]]
        return ["u", operator, value]

    def _binary(self, node: cst.BinaryOperation) -> f.Expression:
        left = self._expr(node.left)
        return ["b", BINARY.get(type(node.operator).__name__, "?"), left, self._expr(node.right)]

    def _comparison(self, node: cst.Comparison) -> f.Expression:
        left = self._expr(node.left)
        rest = [[_COMPARE.get(type(x.operator).__name__, "?"), self._expr(x.comparator)] for x in node.comparisons]
        return ["cmp", left, rest]

    def _tuple(self, node: cst.Tuple) -> f.Expression:
        return ["t", [self._element(item) for item in node.elements]]

    def _list(self, node: cst.List) -> f.Expression:
        return ["L", [self._element(item) for item in node.elements]]

    def _set(self, node: cst.Set) -> f.Expression:
        return ["S", [self._element(item) for item in node.elements]]

    def _element(self, node: cst.BaseElement) -> f.Expression:
        value = self._expr(node.value)
        return ["*", value] if isinstance(node, cst.StarredElement) else value

    def _starred(self, node: cst.StarredElement) -> f.Expression:
        return ["*", self._expr(node.value)]

    def _dict(self, node: cst.Dict) -> f.Expression:
        items: list[list[f.Expression | None]] = []
        for item in node.elements:
            if isinstance(item, cst.DictElement):
                key = self._expr(item.key)
                items.append([key, self._expr(item.value)])
            else:
                items.append([None, self._expr(item.value)])
        return ["d", items]

    def _walrus(self, node: cst.NamedExpr) -> f.Expression:
        name = node.target.value if isinstance(node.target, cst.Name) else "_"
        # A walrus inside a comprehension binds in the enclosing function, which is this scope too.
        self._bind(name)
        return ["w", name, self._expr(node.value)]

    def _comp_list(self, node: cst.ListComp) -> f.Expression:
        return self._comprehension("L", [node.elt], node.for_in)

    def _comp_set(self, node: cst.SetComp) -> f.Expression:
        return self._comprehension("S", [node.elt], node.for_in)

    def _comp_generator(self, node: cst.GeneratorExp) -> f.Expression:
        return self._comprehension("G", [node.elt], node.for_in)

    def _comp_dict(self, node: cst.DictComp) -> f.Expression:
        return self._comprehension("D", [node.key, node.value], node.for_in)

    def _comprehension(self, kind: str, elements: list[cst.BaseExpression], loop: cst.CompFor | None) -> f.Expression:
        lowered = [self._expr(element) for element in elements]
        loops = []
        while loop is not None:
            target = self._expr(loop.target)
            iterable = self._expr(loop.iter)
            loops.append([target, iterable, [self._expr(test.test) for test in loop.ifs]])
            loop = loop.inner_for_in
        return ["C", kind, lowered, loops]

    def _yield(self, node: cst.Yield) -> f.Expression:
        self._scopes[-1].yields = True
        if isinstance(node.value, cst.From):
            return ["yf", self._expr(node.value.item)]
        return ["y", self._expr(node.value) if node.value is not None else None]

    def _await(self, node: cst.Await) -> f.Expression:
        return ["aw", self._expr(node.expression)]

    def _index(self, node: cst.Index) -> f.Expression:
        return self._expr(node.value)

    #: Of the class, not of its objects: those would hold themselves, and the trees, until a collection.
    _LOWERED: ClassVar[dict[type, Callable[[Any, Any], f.Expression]]] = {
        cst.Name: _name, cst.Attribute: _attribute, cst.Call: _call, cst.Subscript: _subscript,
        cst.SimpleString: _string, cst.ConcatenatedString: _concatenated, cst.FormattedString: _format,
        cst.Integer: _integer, cst.Float: _float, cst.Lambda: _lambda, cst.IfExp: _if_exp,
        cst.BooleanOperation: _boolean, cst.UnaryOperation: _unary, cst.BinaryOperation: _binary,
        cst.Comparison: _comparison, cst.Tuple: _tuple, cst.List: _list, cst.Set: _set, cst.Dict: _dict,
        cst.NamedExpr: _walrus, cst.ListComp: _comp_list, cst.SetComp: _comp_set,
        cst.GeneratorExp: _comp_generator, cst.DictComp: _comp_dict, cst.Yield: _yield,
        cst.Await: _await, cst.StarredElement: _starred, cst.Slice: _slice, cst.Index: _index,
    }  # fmt: skip


def _unknown(lowering: object, node: object) -> f.Expression:
    return ["x"]


def _encodable(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _is_text(value: str) -> bool:
    """Whether facts can hold it: half of a surrogate pair, which a literal may spell, is no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
