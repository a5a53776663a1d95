"""The extractor: libcst tree of one module to facts. Line numbers are aligned from the standard parser (see `positions`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import libcst as cst
from sgl_graph.analyzer.static import facts as f
from sgl_graph.analyzer.static.positions import Lines, StatementLines

_BINARY = {
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


def extract(source: bytes) -> f.ModuleFacts:
    """Facts of one file's bytes. Never raises for bad source: the facts then carry the reason."""
    if b"\0" in source:
        return f.failed("holds NUL bytes: not Python source")
    try:
        tree = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        return f.failed(f"line {error.raw_line}: {error.message}")
    except (UnicodeDecodeError, LookupError, SyntaxError) as error:
        return f.failed(f"cannot be decoded: {error}")
    except RecursionError:
        return f.failed("nested too deeply for the parser")
    except Exception as error:  # noqa: BLE001 - whatever a parser does to a bad file is the file's record
        return f.failed(f"parser failed: {type(error).__name__}: {error}")
    try:
        return _Lowering(Lines.of(source, tree)).module(tree)
    except RecursionError:
        return f.failed("nested too deeply for the extractor")


class _Scope:
    """Names bound in one function body, and whether it yields."""

    __slots__ = ("bound", "declared", "nests", "yields")

    def __init__(self) -> None:
        self.bound: dict[str, None] = {}
        self.declared: set[str] = set()
        self.yields = False
        self.nests = False


class _Lowering:
    """One pass over one module."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._at = StatementLines(1, ())
        self._functions: list[f.FunctionFacts | None] = []
        self._classes: list[f.ClassFacts | None] = []
        self._names: list[str] = []
        self._lambdas: dict[str, int] = {}
        self._scopes: list[_Scope] = [_Scope()]
        self._expressions: dict[type, Callable[[Any], f.Expression]] = {
            cst.Name: self._name, cst.Attribute: self._attribute, cst.Call: self._call, cst.Subscript: self._subscript,
            cst.SimpleString: self._string, cst.ConcatenatedString: self._concatenated, cst.FormattedString: self._format,
            cst.Integer: self._integer, cst.Float: self._float, cst.Imaginary: _unknown, cst.Ellipsis: _unknown,
            cst.Lambda: self._lambda, cst.IfExp: self._if_exp, cst.BooleanOperation: self._boolean,
            cst.UnaryOperation: self._unary, cst.BinaryOperation: self._binary, cst.Comparison: self._comparison,
            cst.Tuple: self._tuple, cst.List: self._list, cst.Set: self._set, cst.Dict: self._dict,
            cst.NamedExpr: self._walrus, cst.ListComp: self._comp_list, cst.SetComp: self._comp_set,
            cst.GeneratorExp: self._comp_generator, cst.DictComp: self._comp_dict, cst.Yield: self._yield,
            cst.Await: self._await, cst.StarredElement: self._starred, cst.Slice: self._slice,
            cst.Index: lambda node: self._expr(node.value),
        }  # fmt: skip
        self._simple: dict[type, Callable[[Any, int], f.Statement | None]] = {
            cst.Assign: self._assign, cst.AnnAssign: self._ann_assign, cst.AugAssign: self._aug_assign,
            cst.Expr: self._expression_statement, cst.Return: self._return, cst.Raise: self._raise,
            cst.Assert: self._assert, cst.Del: self._del, cst.Global: self._global, cst.Nonlocal: self._nonlocal,
            cst.Import: self._import, cst.ImportFrom: self._import_from, cst.Pass: lambda node, line: None,
            cst.Break: lambda node, line: ["break", line], cst.Continue: lambda node, line: ["continue", line],
        }  # fmt: skip

    # -- modules, classes, functions

    def module(self, tree: cst.Module) -> f.ModuleFacts:
        body = self._block(tree.body, self._lines.statements)
        return f.ModuleFacts(
            error=None,
            body=body,
            functions=[item for item in self._functions if item is not None],
            classes=[item for item in self._classes if item is not None],
            lines=self._lines.count,
        )

    def _qualified(self, name: str) -> str:
        return ".".join([*self._names, name])

    def _function(self, node: cst.FunctionDef, line: int, tree: ast.stmt | None) -> f.Statement:
        name = node.name.value
        self._bind(name)
        self._scopes[-1].nests = True
        decorators = [self._expr(item.decorator) for item in node.decorators]
        parameters = self._parameters(node.params)
        returns = self._expr(node.returns.annotation) if node.returns else None
        index = len(self._functions)
        self._functions.append(None)
        qualname = self._qualified(name)
        scope = _Scope()
        scope.bound.update((parameter.name, None) for parameter in parameters)
        self._names += [name, "<locals>"]
        self._scopes.append(scope)
        body = self._suite(node.body, _children(tree, "body"))
        self._scopes.pop()
        del self._names[-2:]
        flags = (
            (f.ASYNC if node.asynchronous else 0)
            | (f.GENERATOR if scope.yields else 0)
            | (f.NESTS if scope.nests else 0)
        )
        own = getattr(tree, "lineno", line)
        end = getattr(tree, "end_lineno", None) or _last_line(body, own)
        bound = [bound for bound in scope.bound if bound not in scope.declared]
        self._functions[index] = f.FunctionFacts(
            name, qualname, own, end, parameters, returns, decorators, flags, bound, f.encode_body(body)
        )
        return ["def", own, index]

    def _lambda(self, node: cst.Lambda) -> f.Expression:
        line = self._at.next("l", node)
        self._scopes[-1].nests = True
        parameters = self._parameters(node.params)
        index = len(self._functions)
        self._functions.append(None)
        scope = _Scope()
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

    def _class(self, node: cst.ClassDef, line: int, tree: ast.stmt | None) -> f.Statement:
        name = node.name.value
        self._bind(name)
        self._scopes[-1].nests = True
        decorators = [self._expr(item.decorator) for item in node.decorators]
        bases, keywords = [], []
        for argument in [*node.bases, *node.keywords]:
            if argument.keyword is not None:
                keywords.append((argument.keyword.value, self._expr(argument.value)))
            elif not argument.star:
                bases.append(self._expr(argument.value))
        index = len(self._classes)
        self._classes.append(None)
        qualname = self._qualified(name)
        self._names.append(name)
        self._scopes.append(_Scope())
        body = self._suite(node.body, _children(tree, "body"))
        self._scopes.pop()
        self._names.pop()
        own = getattr(tree, "lineno", line)
        end = getattr(tree, "end_lineno", None) or _last_line(body, own)
        self._classes[index] = f.ClassFacts(name, qualname, own, end, bases, keywords, decorators, body)
        return ["class", own, index]

    # -- statements

    def _suite(self, node: cst.BaseSuite, trees: Sequence[ast.stmt] | None) -> list[f.Statement]:
        if isinstance(node, cst.SimpleStatementSuite):
            return self._block([cst.SimpleStatementLine(body=node.body)], trees, synthetic=True)
        assert isinstance(node, cst.IndentedBlock)
        return self._block(node.body, trees)

    def _block(
        self, nodes: Sequence[cst.BaseStatement], trees: Sequence[ast.stmt] | None, synthetic: bool = False
    ) -> list[f.Statement]:
        result: list[f.Statement] = []
        cursor: Iterator[ast.stmt] | None = iter(trees) if trees is not None else None
        for node in nodes:
            if isinstance(node, cst.SimpleStatementLine):
                for small in node.body:
                    tree = next(cursor, None) if cursor else None
                    self._at = self._lines.enter(small, tree)
                    lowered = self._simple.get(type(small), _skip)(small, self._at.line)
                    if lowered is not None:
                        result.append(lowered)
            else:
                tree = next(cursor, None) if cursor else None
                self._at = self._lines.enter(node, tree)
                lowered = self._compound(node, self._at.line, tree)
                if lowered is not None:
                    result.append(lowered)
        return result

    def _compound(self, node: cst.BaseStatement, line: int, tree: ast.stmt | None) -> f.Statement | None:
        if isinstance(node, cst.FunctionDef):
            return self._function(node, line, tree)
        if isinstance(node, cst.ClassDef):
            return self._class(node, line, tree)
        if isinstance(node, cst.If):
            return self._if(node, line, tree)
        if isinstance(node, cst.For):
            iterable_first = self._target(node.target)
            iterable = self._expr(node.iter)
            body = self._suite(node.body, _children(tree, "body"))
            return ["for", line, iterable_first, iterable, body, self._orelse(node.orelse, tree)]
        if isinstance(node, cst.While):
            test = self._expr(node.test)
            body = self._suite(node.body, _children(tree, "body"))
            return ["while", line, test, body, self._orelse(node.orelse, tree)]
        if isinstance(node, cst.With):
            items = []
            for item in node.items:
                value = self._expr(item.item)
                items.append([value, self._target(item.asname.name) if item.asname else None])
            return ["with", line, items, self._suite(node.body, _children(tree, "body"))]
        if isinstance(node, (cst.Try, cst.TryStar)):
            return self._try(node, line, tree)
        if isinstance(node, cst.Match):
            return self._match(node, line, tree)
        return None

    def _if(self, node: cst.If, line: int, tree: ast.stmt | None) -> f.Statement:
        test = self._expr(node.test)
        body = self._suite(node.body, _children(tree, "body"))
        orelse: list[f.Statement] = []
        if isinstance(node.orelse, cst.If):
            inner = _children(tree, "orelse")
            branch = inner[0] if inner else None
            self._at = self._lines.enter(node.orelse, branch)
            orelse = [self._if(node.orelse, self._at.line, branch)]
        elif node.orelse is not None:
            orelse = self._suite(node.orelse.body, _children(tree, "orelse"))
        return ["if", line, test, body, orelse]

    def _orelse(self, node: cst.Else | None, tree: ast.stmt | None) -> list[f.Statement]:
        return self._suite(node.body, _children(tree, "orelse")) if node is not None else []

    def _try(self, node: cst.Try | cst.TryStar, line: int, tree: ast.stmt | None) -> f.Statement:
        body = self._suite(node.body, _children(tree, "body"))
        trees = list(getattr(tree, "handlers", ())) if tree is not None else []
        handlers = []
        handler_nodes: Sequence[cst.ExceptHandler | cst.ExceptStarHandler] = node.handlers
        for position, handler in enumerate(handler_nodes):
            own = trees[position] if position < len(trees) else None
            self._at = self._lines.enter(handler, own)
            at = self._at.line
            kind = self._expr(handler.type) if handler.type is not None else None
            name = handler.name.name.value if handler.name and isinstance(handler.name.name, cst.Name) else None
            if name:
                self._bind(name)
            handlers.append([kind, name, self._suite(handler.body, getattr(own, "body", None)), at])
        orelse = self._orelse(node.orelse, tree)
        final = self._suite(node.finalbody.body, _children(tree, "finalbody")) if node.finalbody else []
        return ["try", line, body, handlers, orelse, final]

    def _match(self, node: cst.Match, line: int, tree: ast.stmt | None) -> f.Statement:
        subject = self._expr(node.subject)
        trees = list(getattr(tree, "cases", ())) if tree is not None else []
        cases = []
        for position, case in enumerate(node.cases):
            own = trees[position] if position < len(trees) else None
            at = getattr(getattr(own, "pattern", None), "lineno", line)
            self._at = StatementLines(at, None)
            lowered = self._case(case.pattern, subject, at)
            guard = self._expr(case.guard) if case.guard else None
            body = self._suite(case.body, getattr(own, "body", None))
            cases.append([lowered.pattern, _both(lowered.test, guard), [*lowered.bindings, *body]])
        return ["match", line, subject, cases]

    def _case(self, node: cst.MatchPattern, subject: f.Expression, line: int) -> _Case:
        if isinstance(node, (cst.MatchValue, cst.MatchSingleton)):
            return _Case(self._expr(node.value))
        if isinstance(node, cst.MatchClass):
            refutable = ["x"] if node.patterns or node.kwds else None
            return _Case(["isinstance", self._expr(node.cls)], refutable, self._captures(node, line))
        if isinstance(node, cst.MatchOr):
            parts = [self._case(item.pattern, subject, line) for item in node.patterns]
            bindings = [binding for part in parts for binding in part.bindings]
            plain = all(part.test is None for part in parts)
            return _Case(["or", [part.pattern for part in parts]] if plain else ["x"], None, bindings)
        if isinstance(node, cst.MatchAs):
            inner = self._case(node.pattern, subject, line) if node.pattern is not None else _Case(["any"])
            if node.name is None:
                return inner
            value = subject if _is_plain(subject) else ["x"]
            return _Case(inner.pattern, inner.test, [*inner.bindings, self._capture(node, value, line)])
        if isinstance(node, (cst.MatchList, cst.MatchTuple)) and subject[0] == "t":
            return self._item_by_item(node, subject, line)
        return _Case(["x"], None, self._captures(node, line))

    def _item_by_item(self, node: cst.MatchList | cst.MatchTuple, subject: f.Expression, line: int) -> _Case:
        """`match a, b: case 1, 2` asks `a == 1 and b == 2`."""
        parts = [item.value for item in node.patterns if isinstance(item, cst.MatchSequenceElement)]
        if len(parts) != len(node.patterns) or len(parts) != len(subject[1]):
            return _Case(["x"], None, self._captures(node, line))
        test: f.Expression | None = None
        bindings: list[f.Statement] = []
        for part, item in zip(parts, subject[1], strict=True):
            lowered = self._case(part, item, line)
            bindings += lowered.bindings
            test = _both(test, _both(_asks(item, lowered.pattern, line), lowered.test))
        return _Case(["any"], test, bindings)

    def _captures(self, node: cst.CSTNode, line: int) -> list[f.Statement]:
        """Bindings of names inside a pattern of which only the name, and perhaps the class, is known."""
        found: list[f.Statement] = []
        for child in node.children:
            if isinstance(child, (cst.MatchAs, cst.MatchStar)) and child.name is not None:
                found.append(self._capture(child, ["x"], line))
            elif isinstance(child, cst.Name) and isinstance(node, cst.MatchMapping):
                self._bind(child.value)  # `**rest`
                found.append(["=", line, [["n", child.value]], ["x"]])
            found += self._captures(child, line)
        return found

    def _capture(self, node: cst.MatchAs | cst.MatchStar, value: f.Expression, line: int) -> f.Statement:
        assert node.name is not None
        self._bind(node.name.value)
        name = ["n", node.name.value]
        pattern = node.pattern if isinstance(node, cst.MatchAs) else None
        if isinstance(pattern, cst.MatchClass):
            return [":", line, name, self._expr(pattern.cls), value]
        return ["=", line, [name], value]

    def _assign(self, node: cst.Assign, line: int) -> f.Statement:
        targets = [self._target(item.target) for item in node.targets]
        return ["=", line, targets, self._expr(node.value)]

    def _ann_assign(self, node: cst.AnnAssign, line: int) -> f.Statement:
        target = self._target(node.target)
        annotation = self._expr(node.annotation.annotation)
        return [":", line, target, annotation, self._expr(node.value) if node.value is not None else None]

    def _aug_assign(self, node: cst.AugAssign, line: int) -> f.Statement:
        operator = _BINARY.get(type(node.operator).__name__.removesuffix("Assign"), "?")
        return ["+=", line, self._target(node.target), operator, self._expr(node.value)]

    def _expression_statement(self, node: cst.Expr, line: int) -> f.Statement | None:
        if isinstance(node.value, (cst.SimpleString, cst.ConcatenatedString, cst.Ellipsis)):
            return None
        return ["e", line, self._expr(node.value)]

    def _return(self, node: cst.Return, line: int) -> f.Statement:
        return ["return", line, self._expr(node.value) if node.value is not None else None]

    def _raise(self, node: cst.Raise, line: int) -> f.Statement:
        return ["raise", line, self._expr(node.exc) if node.exc is not None else None]

    def _assert(self, node: cst.Assert, line: int) -> f.Statement:
        test = self._expr(node.test)
        return ["assert", line, test, self._expr(node.msg) if node.msg is not None else None]

    def _del(self, node: cst.Del, line: int) -> f.Statement:
        target = node.target
        items = [item.value for item in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        return ["del", line, [self._expr(item) for item in items]]

    def _global(self, node: cst.Global, line: int) -> f.Statement:
        names = [item.name.value for item in node.names]
        self._scopes[-1].declared.update(names)
        return ["global", line, names]

    def _nonlocal(self, node: cst.Nonlocal, line: int) -> f.Statement:
        names = [item.name.value for item in node.names]
        self._scopes[-1].declared.update(names)
        return ["nonlocal", line, names]

    def _import(self, node: cst.Import, line: int) -> f.Statement:
        names = []
        for alias in node.names:
            dotted = _dotted(alias.name)
            renamed = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else None
            self._bind(renamed or dotted.split(".")[0])
            names.append([dotted, renamed])
        return ["import", line, names]

    def _import_from(self, node: cst.ImportFrom, line: int) -> f.Statement:
        module = _dotted(node.module) if node.module is not None else ""
        level = len(node.relative)
        if isinstance(node.names, cst.ImportStar):
            return ["from", line, module, level, "*"]
        names = []
        for alias in node.names:
            name = _dotted(alias.name)
            renamed = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else None
            self._bind(renamed or name)
            names.append([name, renamed])
        return ["from", line, module, level, names]

    # -- expressions

    def _expr(self, node: Any) -> f.Expression:
        return self._expressions.get(type(node), _unknown)(node)

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
        return ["v", value if isinstance(value, str) else _encodable(value)]

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
        return ["b", _BINARY.get(type(node.operator).__name__, "?"), left, self._expr(node.right)]

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


_CONSTANTS = {"True": True, "False": False, "None": None}


def _unknown(node: object) -> f.Expression:
    return ["x"]


def _skip(node: object, line: int) -> None:
    return None


def _encodable(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _children(tree: ast.AST | None, field: str) -> Sequence[ast.stmt] | None:
    return getattr(tree, field, None) if tree is not None else None


def _last_line(body: list[f.Statement], own: int) -> int:
    return max((statement[1] for statement in body), default=own)


class _Case(NamedTuple):
    """One `case`: its pattern, a test that must hold besides, and the assignments that its captures make."""

    pattern: f.Expression
    test: f.Expression | None = None
    bindings: list[f.Statement] = []  # noqa: RUF012 - never changed


def _both(left: f.Expression | None, right: f.Expression | None) -> f.Expression | None:
    if left is None or right is None:
        return left if right is None else right
    return ["bo", "and", left, right]


def _is_plain(e: f.Expression) -> bool:
    """A name or a chain of attributes: it may be written a second time."""
    return e[0] == "n" or (e[0] == "a" and _is_plain(e[1]))


def _asks(item: f.Expression, pattern: f.Expression, line: int) -> f.Expression | None:
    """The test that a pattern makes of one value."""
    kind = pattern[0]
    if kind == "any":
        return None
    if kind == "isinstance":
        return ["c", ["n", "isinstance"], [item, pattern[1]], line]
    if kind == "or":
        plain = all(choice[0] in ("v", "n", "a") for choice in pattern[1])
        return ["cmp", item, [["in", ["t", pattern[1]]]]] if plain else ["x"]
    return ["x"] if kind == "x" else ["cmp", item, [["==", pattern]]]
