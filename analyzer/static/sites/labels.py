"""How one captured graph is told from its siblings: the key's type, and the expression that holds it while capturing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sgl_graph.analyzer.records.pathmap import CodeRef
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.owners import Owners
from sgl_graph.analyzer.static.sites.primitives import is_graph
from sgl_graph.analyzer.static.sites.scopes import Scope
from sgl_graph.analyzer.static.sites.tags import argument_for, enclosing_method, last_name, self_name

_DEEPEST = 10


@dataclass(frozen=True, slots=True)
class KeyOf:
    """The key of a table's graphs.

    Attributes:
        key: the key as a reader understands it: a class with its fields, or the tuple it is made of.
        expression: evaluable in the frame that captures, or in a calling one: names, attributes, subscripts, tuples.
        stored_at: where the graph is filed.
        fields: names of the key's parts, where it is a class of the checkout.
        class_name: that class.
    """

    key: str
    expression: str
    stored_at: CodeRef
    fields: tuple[str, ...] = ()
    class_name: str = ""


class Keys:
    """Keys of graph-owning classes."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._types: GraphTypes = owners.types

    def of_class(self, class_name: str) -> KeyOf | None:
        """The key under which a table files its graphs, None when it keeps only one or none."""
        methods = [m for ancestor in self._types.mro(class_name) for m in self._types.methods(ancestor).values()]
        borrowed = [other for method in methods for other in self._borrowed(method)]
        return self._first([inner for method in (*methods, *borrowed) for inner in method.walk()])

    def _borrowed(self, method: Scope) -> list[Scope]:
        """Methods of unrelated classes that a method runs on its own object: `Other.capture(self)`."""
        receiver = ["n", self_name(method)]
        return [
            target
            for call in method.calls
            if call.expression[1][0] == "a" and call.expression[2][:1] == [receiver]
            if any(tag.startswith("class:") for tag in self._types.evaluate(method, call.expression[1][1]))
            for tag in sorted(self._types.evaluate(method, call.expression[1]))
            if tag.startswith("func:") and (target := self._types.scopes.get(tag[5:])) is not None
        ]

    def of_functions(self, scopes: list[Scope]) -> KeyOf | None:
        """As `of_class`, for graphs that functions of a module keep."""
        return self._first([inner for scope in scopes for inner in scope.walk()])

    def _first(self, scopes: list[Scope]) -> KeyOf | None:
        """Where a graph itself is filed says more than where a record is filed that will receive one."""
        return self._filed(scopes, self._is_graph) or self._filed(scopes, self._is_graph_value)

    def _filed(self, scopes: list[Scope], is_graph_value: Callable[[Scope, Expression], bool]) -> KeyOf | None:
        for scope in scopes:
            for target, value, line, _ in scope.assignments:
                if not is_graph_value(scope, value):
                    continue
                found = self.key_of_target(scope, target)
                if found is not None:
                    where = CodeRef(file=scope.module.path, line=line, qualname=scope.public_name)
                    text, fields, class_name = self._describe(scope, found)
                    return KeyOf(text, render(found, 400), where, fields, class_name)
        return None

    def _is_graph(self, scope: Scope, value: Expression) -> bool:
        if value[0] in ("v", "x", "d", "L", "cmp"):
            return False
        return any(is_graph(tag) is not None for tag in self._types.evaluate(scope, value))

    def _is_graph_value(self, scope: Scope, value: Expression) -> bool:
        if value[0] in ("v", "x", "d", "L", "cmp"):
            return False
        for tag in self._types.evaluate(scope, value):
            if is_graph(tag) is not None or tag == "torch.compile()":
                return True
            if tag.startswith("obj:") and (tag[4:] in self._owners.containers or self._holds_graph(tag[4:])):
                return True
        return False

    def _holds_graph(self, class_name: str) -> bool:
        """A plain record with a graph among its fields."""
        if (
            class_name in self._owners.tables
            or class_name in self._owners.contexts
            or class_name in self._owners.runners
        ):
            return False
        scope = self._types.scopes.get(class_name)
        if scope is None or len(self._types.methods(class_name)) > 3:
            return False
        fields = set(scope.bindings) | self._types.attribute_names(class_name)
        return any(
            is_graph(tag) is not None or (tag.startswith("obj:") and tag[4:] in self._owners.containers)
            for name in fields
            for tag in self._types.attribute("obj:" + class_name, name)
        )

    def key_of_target(self, scope: Scope, target: Expression) -> Expression | None:
        """The key of what is assigned: its subscript, or the one under which the record is filed that receives it."""
        if target[0] == "s" and len(target[2]) == 1:
            key: Expression = target[2][0]
            if key[0] != "v":
                return key
            return self._holder_key(scope, target[1])
        if target[0] == "a":
            if target[1][0] == "n" and target[1][1] in ("self", "cls"):
                return None
            return self._holder_key(scope, target[1])
        return None

    def _holder_key(self, scope: Scope, holder: Expression) -> Expression | None:
        """The key under which the record that receives the graph is itself filed."""
        if holder[0] == "s" and len(holder[2]) == 1 and holder[2][0][0] != "v":
            key: Expression = holder[2][0]
            return key
        if holder[0] != "n":
            return None
        at: Scope | None = scope
        while at is not None and at.kind == "function":
            for target, value, _, _ in at.assignments:
                # `self.table[key] = holder`
                if value == holder and target[0] == "s" and len(target[2]) == 1 and target[2][0][0] != "v":
                    stored: Expression = target[2][0]
                    return stored
                # `holder = self.table[key]`, `holder = self.table.get(key)`
                if target == holder:
                    read = self.read_key(value)
                    if read is not None:
                        return read
            at = at.parent
        function = scope.function
        if function is not None and any(p.name == holder[1] for p in function.parameters):
            return holder
        return None

    @staticmethod
    def read_key(value: Expression) -> Expression | None:
        """The key by which an expression takes something out of a table, unless it is a constant."""
        if value[0] == "s" and len(value[2]) == 1 and value[2][0][0] != "v":
            key: Expression = value[2][0]
            return key
        if value[0] == "c" and value[1][0] == "a" and value[1][2] in ("get", "pop", "setdefault") and value[2]:
            first: Expression = value[2][0]
            return first
        return None

    # -- what a key is

    def _describe(self, scope: Scope, key: Expression, depth: int = _DEEPEST) -> tuple[str, tuple[str, ...], str]:
        classes = sorted(tag[4:] for tag in self._types.evaluate(scope, key) if tag.startswith("obj:"))
        if classes:
            name = classes[0]
            fields = self._fields(name)
            short = name.rsplit(":", 1)[-1]
            return f"{short}({', '.join(fields)})" if fields else short, fields, name
        made = self._made_of(scope, key, depth)
        return render(made if made is not None else key, 200), (), ""

    def _fields(self, class_name: str) -> tuple[str, ...]:
        scope = self._types.scopes.get(class_name)
        if scope is None:
            return ()
        return tuple(name for name, bindings in scope.bindings.items() if any(b.kind == "annotation" for b in bindings))

    def _made_of(self, scope: Scope, key: Expression, depth: int) -> Expression | None:
        """The expression that builds a key, followed through locals, parameters and the function that makes it."""
        if key[0] == "t":
            return ["t", [self._part(scope, part, depth - 1) for part in key[1]]]
        if depth <= 0:
            return None
        if key[0] == "i":
            either = [self._made_of(scope, part, depth - 1) or part for part in key[2:4]]
            return ["i", key[1], *either] if either[0] != either[1] else either[0]
        if key[0] == "bo":
            parts = (self._made_of(scope, part, depth - 1) for part in key[2:4])
            return next((made for made in parts if made is not None), None)
        if key[0] == "c":
            for tag in sorted(self._types.evaluate(scope, key[1])):
                target = self._types.scopes.get(tag[5:]) if tag.startswith("func:") else None
                for value, _ in target.returns if target is not None else ():
                    made = self._made_of(target, value, depth - 1) if target is not None else None
                    if made is not None:
                        return made
            return key if last_name(key[1]) in ("tuple", "str", "frozenset") else None
        if key[0] != "n":
            return key if key[0] in ("a", "b", "f") else None
        at: Scope | None = scope
        while at is not None and at.kind == "function":
            for binding in at.bindings.get(key[1], ()):
                if binding.kind == "value":
                    made = self._made_of(at, binding.expression, depth - 1)
                    return made if made is not None or binding.expression[0] != "c" else binding.expression
            if at.function is not None and any(p.name == key[1] for p in at.function.parameters):
                return self._from_callers(at, key[1], depth)
            at = at.parent
        return None

    def _part(self, scope: Scope, part: Expression, depth: int) -> Expression:
        """A part of a tuple, opened where it is a tuple itself."""
        made = self._made_of(scope, part, depth) if part[0] in ("n", "c") and depth > 0 else None
        return made if made is not None and made[0] == "t" else part

    def _from_callers(self, scope: Scope, parameter: str, depth: int) -> Expression | None:
        assert scope.function is not None
        for caller, call in self._types.callers(scope.function.name):
            tags = self._types.evaluate(caller, call.expression[1])
            if "func:" + scope.name not in tags and enclosing_method(scope) is not None:
                continue
            value = argument_for(call.expression, scope, parameter)
            if value is None or (value == ["n", parameter] and caller is scope):
                continue
            made = self._made_of(caller, value, depth - 1)
            if made is not None:
                return made
        return None
