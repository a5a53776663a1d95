"""Which values may be device graphs: a small flow-insensitive inference over the modules that handle graphs.

It knows nothing of a configuration: the list of primitives of a checkout must not depend on one. Values are tags:
an access path outside the checkout (`torch.cuda.CUDAGraph()` is an instance), or `mod:` `class:` `obj:` `func:` with
a qualified name, or `[]` and a tag for a container of such values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sgl_graph.analyzer.static.checkout.project import Project, dotted_text
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.scopes import Binding, Scope
from sgl_graph.analyzer.static.sites.tags import (
    NONE,
    Tags,
    argument_for,
    contained,
    elements,
    enclosing_method,
    last_name,
    self_name,
)
from sgl_graph.analyzer.static.sites.typehints import Annotations

_PASSING = {"list", "tuple", "set", "reversed", "sorted", "enumerate", "iter", "zip", "dict", "filter"}
_ELEMENT_METHODS = {"get", "pop", "setdefault", "popleft", "popitem"}
_PASSING_METHODS = {"values", "items", "copy"}
_BUDGET = 30_000


class GraphTypes(Annotations):
    """Lazy evaluation of expressions to tags over the modules named at the start and whatever they lead to."""

    def __init__(self, project: Project, modules: Iterable[str]) -> None:
        self._memo: dict[tuple[str, int | str, int], Tags] = {}
        self._keep: list[Expression] = []
        self._active: dict[tuple[str, int | str, int], int] = {}
        self._lowest = 1 << 30
        self._spent = 0
        super().__init__(project, modules)

    def forget(self) -> None:
        """Drop what was evaluated: more modules are known now."""
        self._memo.clear()

    def evaluate(self, scope: Scope, expression: Expression) -> Tags:
        """What an expression of a scope may be."""
        if not expression or expression[0] in ("v", "x", "f", "cmp", "u"):
            return NONE
        return self._guarded((scope.name, id(expression), 0), lambda: self._evaluate(scope, expression), expression)

    def _guarded(
        self, key: tuple[str, int | str, int], compute: Callable[[], Tags], keep: Expression | None = None
    ) -> Tags:
        known = self._memo.get(key)
        if known is not None:
            return known
        depth = self._active.get(key)
        if depth is not None:
            self._lowest = min(self._lowest, depth)
            return NONE
        if not self._active:
            self._spent = 0
        own = len(self._active)
        if own > 150:
            return NONE
        self._spent += 1
        self._active[key] = own
        outer, self._lowest = self._lowest, 1 << 30
        result = compute()
        del self._active[key]
        # A result that rests on a value still being computed above is not final, and not kept.
        if self._lowest >= own or self._spent > _BUDGET:
            self._memo[key] = result
            if keep is not None:
                self._keep.append(keep)  # keys hold ids: what they stand for must stay alive
            self._lowest = outer
        else:
            self._lowest = min(outer, self._lowest)
        return result

    def _evaluate(self, scope: Scope, item: Expression) -> Tags:
        operation = item[0]
        if operation == "n":
            return self.name(scope, item[1])
        if operation == "a":
            return self._attribute(scope, item)
        if operation == "c":
            return self._call(scope, item)
        if operation == "s":
            return elements(self.evaluate(scope, item[1]))
        if operation == "i":
            return self.evaluate(scope, item[2]) | self.evaluate(scope, item[3])
        if operation == "bo":
            return self.evaluate(scope, item[2]) | self.evaluate(scope, item[3])
        if operation in ("t", "L", "S"):
            return contained(self._union(scope, item[1]))
        if operation == "d":
            return contained(self._union(scope, [pair[1] for pair in item[1]]))
        if operation == "C":
            return contained(self._union(scope, item[2][-1:]))
        if operation == "w":
            return self.evaluate(scope, item[2])
        if operation in ("aw", "*"):
            return self.evaluate(scope, item[1])
        if operation == "l":
            child = next((c for c in scope.children if c.function is not None and c.line == item[2]), None)
            return frozenset({"func:" + child.name}) if child is not None else NONE
        return NONE

    def _union(self, scope: Scope, items: Iterable[Expression]) -> Tags:
        found: set[str] = set()
        for item in items:
            found |= self.evaluate(scope, item)
        return frozenset(found)

    def name(self, scope: Scope, name: str) -> Tags:
        """What a name may mean in a scope."""
        at: Scope | None = scope
        while at is not None:
            found = self._own_name(at, name, first=at is scope)
            if found is not None:
                return found
            at = at.parent
        return NONE

    def _own_name(self, scope: Scope, name: str, *, first: bool) -> Tags | None:
        if scope.kind == "class" and not first:
            return None
        self._open(scope)
        if name in scope.globals:
            return None
        parts: list[Tags] = []
        function = scope.function
        if function is not None and any(parameter.name == name for parameter in function.parameters):
            parts.append(self._parameter(scope, name))
        if name in scope.bindings:
            parts.append(self._bound(scope, name, scope.bindings[name]))
        if name in scope.imports:
            parts.append(self._imported(*scope.imports[name]))
        member = self.member(scope.name, name)
        if member is not None:
            parts.append(frozenset({("class:" if member.kind == "class" else "func:") + member.name}))
        if parts:
            return frozenset().union(*parts)
        for key, (module, star) in scope.imports.items():
            if star == "*" and key.startswith("*"):
                found = self._imported(module, name)
                if found:
                    return found
        return None

    def _bound(self, scope: Scope, name: str, bindings: list[Binding]) -> Tags:
        def compute() -> Tags:
            found: set[str] = set()
            for binding in bindings:
                found |= self._binding(scope, binding)
            # A module global is also assigned inside functions that declare it.
            if scope.kind == "module":
                for inner in _declaring(scope, name):
                    self._open(inner)
                    if name in inner.globals:
                        for binding in inner.bindings.get(name, ()):
                            found |= self._binding(inner, binding)
            return frozenset(found)

        return self._guarded((scope.name, id(bindings), 1), compute)

    def _binding(self, scope: Scope, binding: Binding) -> Tags:
        if binding.kind == "annotation":
            return self.annotation(scope, binding.expression)
        tags = self.evaluate(scope, binding.expression)
        if binding.kind == "element":
            return elements(tags)
        if binding.kind == "store":
            return contained(tags)
        return tags

    def _parameter(self, scope: Scope, name: str) -> Tags:
        function = scope.function
        assert function is not None
        if scope.owner is not None and name == self_name(scope):
            prefix = "class:" if any(dotted_text(d) == "classmethod" for d in function.decorators) else "obj:"
            return frozenset({prefix + scope.owner})

        def compute() -> Tags:
            found: set[str] = set()
            for parameter in function.parameters:
                if parameter.name == name:
                    if parameter.annotation is not None and scope.parent is not None:
                        found |= self.annotation(scope.parent, parameter.annotation)
                    if parameter.default is not None and scope.parent is not None:
                        found |= self.evaluate(scope.parent, parameter.default)
            if not found:
                found |= self._from_callers(scope, name)
            return frozenset(found)

        return self._guarded((scope.name, name, 2), compute)

    def _from_callers(self, scope: Scope, name: str) -> Tags:
        """The union of what visible callers pass for a parameter."""
        function = scope.function
        assert function is not None
        simple = function.name
        if simple == "__init__" and scope.owner is not None:
            simple = scope.owner.rsplit(":", 1)[-1].rsplit(".", 1)[-1]
        found: set[str] = set()
        for caller, call in self._calls.get(simple, ()):
            if self._may_call(self.evaluate(caller, call.expression[1]), scope):
                argument = argument_for(call.expression, scope, name)
                if argument is not None:
                    found |= self.evaluate(caller, argument)
        return frozenset(found)

    def _may_call(self, callee: Tags, scope: Scope) -> bool:
        if "func:" + scope.name in callee or (scope.owner is not None and "class:" + scope.owner in callee):
            return True
        if scope.owner is None or scope.function is None:
            return False
        return any(f"func:{base}.{scope.function.name}" in callee for base in self.mro(scope.owner))

    def _imported(self, module: str, name: str | None) -> Tags:
        if name is None or name == "*":
            return self._module_tag(module)
        if self.project.has_module(module) or self.project.is_package(module):
            root = self._load(module)
            if root is not None:
                found = self._guarded((module, name, 3), lambda: self._own_name(root, name, first=True) or NONE)
                if found:
                    return found
            return self._module_tag(f"{module}.{name}") if self._is_module(f"{module}.{name}") else NONE
        return frozenset({f"{module}.{name}"})

    def _is_module(self, name: str) -> bool:
        return self.project.has_module(name) or self.project.is_package(name)

    def _module_tag(self, name: str) -> Tags:
        return frozenset({"mod:" + name if self._is_module(name) else name})

    def _attribute(self, scope: Scope, item: Expression) -> Tags:
        found: set[str] = set()
        for tag in self.evaluate(scope, item[1]):
            found |= self.attribute(tag, item[2])
        if not found:
            text = dotted_text(item)
            if text is not None and text in scope.bindings:
                found |= self._bound(scope, text, scope.bindings[text])
        return frozenset(found)

    def attribute(self, tag: str, name: str) -> Tags:
        """What an attribute of a value may be."""
        kind, _, rest = tag.partition(":")
        if kind == "mod":
            return self._imported(rest, name)
        if kind in ("obj", "class"):
            return self._guarded((tag, name, 4), lambda: self._class_attribute(rest, name, kind == "obj"))
        if kind == "func" or tag.startswith("[]"):
            return NONE
        return frozenset({f"{tag}.{name}"})

    def _class_attribute(self, class_name: str, name: str, instance: bool) -> Tags:
        found: set[str] = set()
        order = self.mro(class_name)
        for owner in order:
            found |= self._own_attribute(owner, name, instance)
            if found and instance and any(tag.startswith("func:") for tag in found):
                break
        if not found:
            for owner in self.subclasses(class_name):
                found |= self._own_attribute(owner, name, instance)
        if not found and instance:
            related = {*order, *self.subclasses(class_name)}
            home = class_name.partition(":")[0]
            for scope, base, binding in self._foreign.get(name, ()):
                holders = self.evaluate(scope, base)
                if any(tag[4:] in related for tag in holders if tag.startswith("obj:")) or (
                    # Nothing says what the holder is: a function of the same module most likely means this class.
                    not holders and scope.module.name == home
                ):
                    found |= self._binding(scope, binding)
        if not found:
            # An external base: its attributes are those of the access path.
            found |= {f"{owner}().{name}" for owner in order if ":" not in owner and owner != "object"}
        return frozenset(found)

    def _own_attribute(self, owner: str, name: str, instance: bool) -> set[str]:
        found: set[str] = set()
        member = self.member(owner, name)
        if member is not None and member.kind == "class":
            found.add("class:" + member.name)
        elif member is not None:
            if instance and any(last_name(d) in ("property", "cached_property") for d in member.decorators):
                found |= self.returns(member)
            else:
                found.add("func:" + member.name)
        scope = self.scopes.get(owner)
        if scope is not None and name in scope.bindings:
            if any(base.startswith("enum.") for base in self.mro(owner)):
                return {"obj:" + owner}  # a member of an enumeration is an instance of it, whatever it is made from
            found |= self._bound(scope, name, scope.bindings[name])
        for at, binding in self._instance_attributes(owner).get(name, ()):
            found |= self._binding(at, binding)
        for method in self.borrowed.get(owner, ()):
            home = self._instance_attributes(method.owner or "").get(name, ())
            found |= {
                tag for at, binding in home if enclosing_method(at) is method for tag in self._binding(at, binding)
            }
        return found

    def returns(self, scope: Scope) -> Tags:
        """What calling a function may give: its returns, or its yields when it makes a context manager."""

        def compute() -> Tags:
            self._open(scope)
            found: set[str] = set()
            yielding = any(last_name(d) in ("contextmanager", "asynccontextmanager") for d in scope.decorators)
            for item in scope.yields if yielding else [value for value, _ in scope.returns]:
                found |= self.evaluate(scope, item)
            function = scope.function
            if not found and function is not None and function.returns is not None and scope.parent is not None:
                annotated = self.annotation(scope.parent, function.returns)
                found |= elements(annotated) if yielding else annotated
            return frozenset(found)

        return self._guarded((scope.name, 0, 5), compute)

    def _call(self, scope: Scope, item: Expression) -> Tags:
        function, arguments = item[1], item[2]
        positional = [a for a in arguments if a[0] not in ("k", "*", "**")]
        if function[0] == "n" and not self.name(scope, function[1]):
            return self._builtin(scope, function[1], positional, arguments)
        found: set[str] = set()
        if function[0] == "a":
            base = self.evaluate(scope, function[1])
            if function[2] in _ELEMENT_METHODS:
                found |= elements(base)
                found |= self._union(scope, positional[1:])
            elif function[2] in _PASSING_METHODS:
                found |= {tag for tag in base if tag.startswith("[]")}
        for tag in self.evaluate(scope, function):
            found |= self.called(scope, tag, positional)
        return frozenset(found)

    def _builtin(self, scope: Scope, name: str, positional: list[Expression], arguments: list[Expression]) -> Tags:
        if name in _PASSING:
            values = positional or [a[2] for a in arguments if a[0] == "k"]
            return self._union(scope, values)
        if name in ("next", "max", "min") and positional:
            return elements(self.evaluate(scope, positional[0]))
        if name == "getattr" and len(positional) > 1 and positional[1][0] == "v":
            found = set(self._union(scope, positional[2:]))
            for tag in self.evaluate(scope, positional[0]):
                found |= self.attribute(tag, str(positional[1][1]))
            return frozenset(found)
        if name == "super":
            method = enclosing_method(scope)
            bases = self.bases(method.owner) if method is not None and method.owner else []
            return frozenset("obj:" + base if ":" in base else base + "()" for base in bases)
        return NONE

    def called(self, scope: Scope, tag: str, positional: list[Expression]) -> Tags:
        """What calling a value gives."""
        kind, _, rest = tag.partition(":")
        if kind == "class":
            return frozenset({"obj:" + rest})
        if kind == "func":
            target = self.scopes.get(rest)
            return self.returns(target) if target is not None else NONE
        if kind == "obj":
            target = self.method(rest, "__call__")
            return self.returns(target) if target is not None else NONE
        if kind == "mod" or tag.startswith("[]"):
            return NONE
        if tag in ("functools.partial", "copy.copy", "copy.deepcopy", "weakref.proxy") and positional:
            return self.evaluate(scope, positional[0])
        if tag == "typing.cast" and len(positional) > 1:
            return self.evaluate(scope, positional[1])
        if tag == "collections.defaultdict":
            made: set[str] = set()
            for value in self.evaluate(scope, positional[0]) if positional else ():
                made |= self.called(scope, value, [])
            return contained(frozenset(made)) | self._union(scope, positional[1:])
        return frozenset({tag + "()"})


def _declaring(root: Scope, name: str) -> Iterator[Scope]:
    """Functions of a module that may assign a global of this name."""
    for scope in root.children:
        if scope.kind == "class":
            yield from _declaring(scope, name)
        elif scope.function is not None and scope.module.may_declare(scope.index, name):
            yield from scope.walk()
