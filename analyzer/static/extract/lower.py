"""The extractor: libcst tree of one module to facts. Line numbers are aligned from the standard parser (see `positions`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import libcst as cst
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.lower_expressions import BINARY, Scope
from sgl_graph.analyzer.static.extract.lower_patterns import PatternLowering, both
from sgl_graph.analyzer.static.extract.positions import Lines, StatementLines
from sgl_graph.analyzer.static.extract.tree import alone, parse


def extract(source: bytes) -> f.ModuleFacts:
    """Facts of one file's bytes. Never raises for bad source: the facts then carry the reason."""
    if b"\0" in source:
        return f.failed("holds NUL bytes: not Python source")
    with (
        alone
    ):  # the standard parser is for one thread at a time as well: CPython counts its depth for all of them together
        return _extracted(source, Lines.of(source))


def _extracted(source: bytes, lines: Lines | None) -> f.ModuleFacts:
    try:
        tree = parse(source) if lines is not None else cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        return f.failed(f"line {error.raw_line}: {error.message}")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return f.failed(f"line {line}: cannot be decoded: {error}")
    except (LookupError, SyntaxError) as error:
        return f.failed(f"cannot be decoded: {error}")
    except RecursionError:
        return f.failed("nested too deeply for the parser")
    except Exception as error:  # noqa: BLE001 - whatever a parser does to a bad file is the file's record
        return f.failed(f"parser failed: {type(error).__name__}: {error}")
    try:
        return _Lowering(lines or Lines.provided(source, tree)).module(tree)
    except RecursionError:
        return f.failed("nested too deeply for the extractor")


class _Lowering(PatternLowering):
    """One pass over one module."""

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
        scope = Scope()
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
        self._scopes.append(Scope())
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
            return self._block([node], trees)
        assert isinstance(node, cst.IndentedBlock)
        return self._block(node.body, trees)

    def _block(
        self, nodes: Sequence[cst.BaseStatement | cst.SimpleStatementSuite], trees: Sequence[ast.stmt] | None
    ) -> list[f.Statement]:
        result: list[f.Statement] = []
        cursor: Iterator[ast.stmt] | None = iter(trees) if trees is not None else None
        for node in nodes:
            if isinstance(node, (cst.SimpleStatementLine, cst.SimpleStatementSuite)):
                for small in node.body:
                    tree = next(cursor, None) if cursor else None
                    self._at = self._lines.enter(small, tree)
                    lowered = self._SIMPLE.get(type(small), _skip)(self, small, self._at.line)
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
            cases.append([lowered.pattern, both(lowered.test, guard), [*lowered.bindings, *body]])
        return ["match", line, subject, cases]

    def _assign(self, node: cst.Assign, line: int) -> f.Statement:
        targets = [self._target(item.target) for item in node.targets]
        return ["=", line, targets, self._expr(node.value)]

    def _ann_assign(self, node: cst.AnnAssign, line: int) -> f.Statement:
        target = self._target(node.target)
        annotation = self._expr(node.annotation.annotation)
        return [":", line, target, annotation, self._expr(node.value) if node.value is not None else None]

    def _aug_assign(self, node: cst.AugAssign, line: int) -> f.Statement:
        operator = BINARY.get(type(node.operator).__name__.removesuffix("Assign"), "?")
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
        return ["global", line, ["names", *names]]

    def _nonlocal(self, node: cst.Nonlocal, line: int) -> f.Statement:
        names = [item.name.value for item in node.names]
        self._scopes[-1].declared.update(names)
        return ["nonlocal", line, ["names", *names]]

    def _import(self, node: cst.Import, line: int) -> f.Statement:
        names = []
        for alias in node.names:
            dotted = _dotted(alias.name)
            renamed = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else None
            self._bind(renamed or dotted.split(".")[0])
            names.append(["as", dotted, renamed])
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
            names.append(["as", name, renamed])
        return ["from", line, module, level, names]

    def _break(self, node: cst.Break, line: int) -> f.Statement:
        return ["break", line]

    def _continue(self, node: cst.Continue, line: int) -> f.Statement:
        return ["continue", line]

    _SIMPLE: ClassVar[dict[type, Callable[[Any, Any, int], f.Statement | None]]] = {
        cst.Assign: _assign, cst.AnnAssign: _ann_assign, cst.AugAssign: _aug_assign, cst.Expr: _expression_statement,
        cst.Return: _return, cst.Raise: _raise, cst.Assert: _assert, cst.Del: _del, cst.Global: _global,
        cst.Nonlocal: _nonlocal, cst.Import: _import, cst.ImportFrom: _import_from, cst.Break: _break,
        cst.Continue: _continue,
    }  # fmt: skip


def _skip(lowering: object, node: object, line: int) -> None:
    return None


def _dotted(node: cst.BaseExpression) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


def _children(tree: ast.AST | None, field: str) -> Sequence[ast.stmt] | None:
    return getattr(tree, field, None) if tree is not None else None


def _last_line(body: list[f.Statement], own: int) -> int:
    return max((statement[1] for statement in body), default=own)
