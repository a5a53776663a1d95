"""One module's facts as scopes: what each function binds, stores, calls and returns, and under which tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sgl_graph.analyzer.static.checkout.project import Module, dotted_text
from sgl_graph.analyzer.static.extract.facts import ClassFacts, Expression, FunctionFacts, Statement
from sgl_graph.analyzer.static.extract.unasked import EVERY

LOCALS = ".<locals>"


@dataclass(frozen=True, slots=True)
class Test:
    """A condition on the way to a statement; `positive` False: the statement stands where it does not hold."""

    expression: Expression
    positive: bool
    line: int


@dataclass(frozen=True, slots=True)
class Binding:
    """How a name, an attribute or a container gets a value.

    `kind` is `value`, `element` (an element of the expression), `enter` (what entering it yields) or `store` (the
    value becomes an element of what is bound).
    """

    kind: str
    expression: Expression
    line: int


@dataclass(frozen=True, slots=True)
class CallFact:
    """One call expression of a scope."""

    expression: Expression
    line: int
    entered: bool
    tests: tuple[Test, ...]
    loops: tuple[Expression, ...]


@dataclass(slots=True)
class Body:
    """What the statements of one scope do, nested definitions apart."""

    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    attributes: list[tuple[Expression, str, Binding]] = field(default_factory=list)
    calls: list[CallFact] = field(default_factory=list)
    returns: list[tuple[Expression, int]] = field(default_factory=list)
    yields: list[Expression] = field(default_factory=list)
    assignments: list[tuple[Expression, Expression, int, tuple[Test, ...]]] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    children: list[Scope] = field(default_factory=list)


class Scope:
    """A module, a class body or a function (lambdas included); a function's body is read on first use."""

    def __init__(
        self,
        module: Module,
        qualname: str,
        kind: str,
        line: int,
        parent: Scope | None,
        owner: str | None,
        *,
        function: FunctionFacts | None = None,
        class_: ClassFacts | None = None,
        index: int = -1,
    ) -> None:
        self.module = module
        self.qualname = qualname
        self.kind = kind
        self.line = line
        self.parent = parent
        self.owner = owner
        self.function = function
        self.class_ = class_
        self.decorators: list[Expression] = []
        #: `module:Class.method`, `module:<module>` for the module itself.
        self.name = f"{module.name}:{qualname or '<module>'}"
        self.index = index
        self._body: Body | None = None

    @property
    def body(self) -> Body:
        """The scope's own statements, sorted out."""
        body = self._body
        if body is None:
            body = self._body = Body()
            builder = _Builder(self.module)
            if self.function is not None:
                builder.fill(self, self.module.function_body(self.index))
            elif self.class_ is not None:
                builder.fill(self, self.class_.body)
            else:
                builder.fill(self, self.module.facts.body)
        return body

    @property
    def bindings(self) -> dict[str, list[Binding]]:
        """Values of names and of dotted names, by name."""
        return self.body.bindings

    @property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """Imported name to module and member."""
        return self.body.imports

    @property
    def attributes(self) -> list[tuple[Expression, str, Binding]]:
        """Attribute assignments: object, attribute, value."""
        return self.body.attributes

    @property
    def calls(self) -> list[CallFact]:
        """Calls in source order, roughly."""
        return self.body.calls

    @property
    def returns(self) -> list[tuple[Expression, int]]:
        """Returned expressions and their lines."""
        return self.body.returns

    @property
    def yields(self) -> list[Expression]:
        """Yielded expressions."""
        return self.body.yields

    @property
    def assignments(self) -> list[tuple[Expression, Expression, int, tuple[Test, ...]]]:
        """Target, value, line and tests of assignments."""
        return self.body.assignments

    @property
    def globals(self) -> set[str]:
        """Names declared global."""
        return self.body.globals

    @property
    def children(self) -> list[Scope]:
        """Functions, lambdas and classes defined here."""
        return self.body.children

    @property
    def public_name(self) -> str:
        """The name as reports spell it, without the marks of local functions."""
        return public(self.name)

    def walk(self) -> Iterator[Scope]:
        """This scope and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()


def public(qualname: str) -> str:
    """A qualified name as reports spell it."""
    return qualname.replace(LOCALS, "")


def scopes_of(module: Module) -> Scope:
    """The scope tree of one module."""
    module.asked.add(EVERY)
    return Scope(module, "", "module", 1, None, None)


def before(tests: tuple[Test, ...], test: Test | None) -> tuple[Test, ...]:
    """The tests on the way to one of them; all, where it is none of them."""
    return next((tests[:i] for i, one in enumerate(tests) if one is test), tests)


class _Builder:
    """Walks statements once; nested functions and classes become child scopes."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def fill(self, scope: Scope, body: list[Statement]) -> None:
        self._block(scope, body, (), ())

    def _block(
        self, scope: Scope, body: list[Statement], tests: tuple[Test, ...], loops: tuple[Expression, ...]
    ) -> None:
        for statement in body:
            self._statement(scope, statement, tests, loops)
            left = _left_by(statement)
            if left is not None:
                tests = (*tests, left)

    def _statement(self, scope: Scope, item: Statement, tests: tuple[Test, ...], loops: tuple[Expression, ...]) -> None:
        kind, line = item[0], item[1]
        if kind == "=":
            for target in item[2]:
                self._assign(scope, target, item[3], "value", line, tests)
            self._expression(scope, item[3], tests, loops)
            for target in item[2]:
                self._expression(scope, target, tests, loops)
        elif kind == ":":
            if item[4] is not None:
                self._assign(scope, item[2], item[4], "value", line, tests)
                self._expression(scope, item[4], tests, loops)
            self._annotate(scope, item[2], item[3], line)
        elif kind == "+=":
            self._assign(scope, item[2], item[4], "store", line, tests)
            self._expression(scope, item[4], tests, loops)
        elif kind == "e":
            self._expression(scope, item[2], tests, loops)
        elif kind == "if":
            self._expression(scope, item[2], tests, loops)
            self._block(scope, item[3], (*tests, Test(item[2], True, line)), loops)
            self._block(scope, item[4], (*tests, Test(item[2], False, line)), loops)
        elif kind == "for":
            self._expression(scope, item[3], tests, loops)
            self._assign(scope, item[2], item[3], "element", line, tests)
            self._block(scope, item[4], tests, (*loops, item[3]))
            self._block(scope, item[5], tests, loops)
        elif kind == "while":
            self._expression(scope, item[2], tests, loops)
            self._block(scope, item[3], (*tests, Test(item[2], True, line)), (*loops, item[2]))
            self._block(scope, item[4], tests, loops)
        elif kind == "with":
            for value, target in item[2]:
                self._expression(scope, value, tests, loops, entered=True)
                if target is not None:
                    self._assign(scope, target, value, "enter", line, tests)
            self._block(scope, item[3], tests, loops)
        elif kind == "try":
            self._block(scope, item[2], tests, loops)
            for handler in item[3]:
                self._block(scope, handler[2], tests, loops)
            self._block(scope, item[4], tests, loops)
            self._block(scope, item[5], tests, loops)
        elif kind == "return":
            if item[2] is not None:
                scope.returns.append((item[2], line))
                self._expression(scope, item[2], tests, loops)
        elif kind in ("raise", "assert"):
            for part in item[2:]:
                if part is not None:
                    self._expression(scope, part, tests, loops)
        elif kind == "global":
            scope.globals.update(item[2][1:])
        elif kind == "import":
            for _, dotted, renamed in item[2]:
                name = renamed or dotted.split(".")[0]
                scope.imports[name] = (dotted if renamed else name, None)
        elif kind == "from":
            if item[4] == "*":
                scope.imports["*" + str(line)] = (self._module.absolute(item[2], item[3]), "*")
            else:
                for _, name, renamed in item[4]:
                    scope.imports[renamed or name] = (self._module.absolute(item[2], item[3]), name)
        elif kind == "def":
            self._function(scope, item[2], tests)
        elif kind == "class":
            self._class(scope, item[2])
        elif kind == "match":
            self._expression(scope, item[2], tests, loops)
            for pattern, guard, body in item[3]:
                test = Test(["cmp", item[2], [["==", pattern]]], True, line)
                inner = (*tests, test, Test(guard, True, line)) if guard is not None else (*tests, test)
                self._block(scope, body, inner, loops)

    def _function(self, scope: Scope, index: int, tests: tuple[Test, ...]) -> None:
        facts = self._module.facts.functions[index]
        owner = scope.name if scope.kind == "class" else None
        child = Scope(self._module, facts.qualname, "function", facts.line, scope, owner, function=facts, index=index)
        child.decorators = facts.decorators
        scope.children.append(child)
        for decorator in facts.decorators:
            self._expression(scope, decorator, tests, ())

    def _class(self, scope: Scope, index: int) -> None:
        facts = self._module.facts.classes[index]
        child = Scope(self._module, facts.qualname, "class", facts.line, scope, None, class_=facts)
        child.decorators = facts.decorators
        scope.children.append(child)

    def _assign(
        self, scope: Scope, target: Expression, value: Expression, kind: str, line: int, tests: tuple[Test, ...]
    ) -> None:
        operation = target[0]
        binding = Binding(kind, value, line)
        if operation == "n":
            scope.bindings.setdefault(target[1], []).append(binding)
        elif operation == "a":
            scope.attributes.append((target[1], target[2], binding))
            text = dotted_text(target)
            if text is not None:
                scope.bindings.setdefault(text, []).append(binding)
        elif operation == "s":
            self._assign(scope, target[1], value, "store", line, tests)
        elif operation in ("t", "L"):
            values = value[1] if value[0] in ("t", "L") and kind == "value" else None
            for position, part in enumerate(target[1]):
                if values is not None and position < len(values):
                    self._assign(scope, part, values[position], kind, line, tests)
                else:
                    source = ["s", value, [["v", position]], line] if kind == "value" else value
                    self._assign(scope, part, source, "value" if kind == "value" else kind, line, tests)
            return
        elif operation == "*":
            self._assign(scope, target[1], value, kind, line, tests)
            return
        scope.assignments.append((target, value, line, tests))

    def _annotate(self, scope: Scope, target: Expression, annotation: Expression, line: int) -> None:
        binding = Binding("annotation", annotation, line)
        if target[0] == "n":
            scope.bindings.setdefault(target[1], []).append(binding)
        elif target[0] == "a":
            scope.attributes.append((target[1], target[2], binding))

    def _expression(
        self, scope: Scope, item: Any, tests: tuple[Test, ...], loops: tuple[Expression, ...], *, entered: bool = False
    ) -> None:
        if not isinstance(item, list) or not item:
            return
        operation = item[0]
        while operation == "a":  # most expressions are chains of these on a name
            item = item[1]
            operation = item[0]
        if operation == "c":
            scope.calls.append(CallFact(item, item[3], entered, tests, loops))
            self._expression(scope, item[1], tests, loops)
            for argument in item[2]:
                value = argument[2] if argument[0] == "k" else argument
                self._expression(scope, value, tests, loops)
            self._container_method(scope, item)
        elif operation == "l":
            facts = self._module.facts.functions[item[1]]
            child = Scope(self._module, facts.qualname, "function", item[2], scope, None, function=facts, index=item[1])
            scope.children.append(child)
        elif operation == "i":
            self._expression(scope, item[1], tests, loops)
            line = _line_of(item) or 0
            self._expression(scope, item[2], (*tests, Test(item[1], True, line)), loops, entered=entered)
            self._expression(scope, item[3], (*tests, Test(item[1], False, line)), loops, entered=entered)
        elif operation == "C":
            for target, iterable, _ in item[3]:
                self._assign(scope, target, iterable, "element", _line_of(iterable) or 0, tests)
            self._descend(scope, item[1:], tests, loops)
        elif operation == "w":
            self._assign(scope, ["n", item[1]], item[2], "value", _line_of(item[2]) or 0, tests)
            self._expression(scope, item[2], tests, loops)
        elif operation in ("y", "yf"):
            if item[1] is not None:
                scope.yields.append(item[1])
                self._expression(scope, item[1], tests, loops)
        elif operation not in ("n", "v", "x"):
            self._descend(scope, item[1:], tests, loops)

    def _descend(self, scope: Scope, items: Any, tests: tuple[Test, ...], loops: tuple[Expression, ...]) -> None:
        for part in items:
            if isinstance(part, list) and part:
                if isinstance(part[0], str):
                    self._expression(scope, part, tests, loops)
                else:
                    self._descend(scope, part, tests, loops)

    def _container_method(self, scope: Scope, call: Expression) -> None:
        """`x.append(v)` and its like store into `x`."""
        function = call[1]
        if function[0] != "a" or function[2] not in ("append", "add", "setdefault", "insert", "appendleft"):
            return
        values = [argument for argument in call[2] if argument[0] not in ("k", "*", "**")]
        if values:
            self._assign(scope, function[1], values[-1], "store", call[3], ())


def _line_of(item: Any) -> int | None:
    """Some line inside an expression."""
    if not isinstance(item, list) or not item:
        return None
    if item[0] in ("a", "c", "s", "l") and isinstance(item[-1], int):
        return item[-1]
    return next((line for line in map(_line_of, item) if line is not None), None)


def _left_by(statement: Statement) -> Test | None:
    """The test that must have failed for control to pass an `if` whose body always leaves."""
    if statement[0] != "if" or statement[4] or not statement[3]:
        return None
    if statement[3][-1][0] in ("return", "raise", "continue", "break"):
        return Test(statement[2], False, statement[1])
    return None
