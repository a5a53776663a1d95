"""Modules, classes and calls of the code that handles graphs: who defines what, who descends from whom, who calls whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.scopes import Binding, CallFact, Scope, scopes_of
from sgl_graph.analyzer.static.sites.tags import Tags, enclosing_method, last_name, self_name


class ClassIndex(ABC):
    """The structure of the modules named at the start, and of those that their imports lead to, opened on demand."""

    def __init__(self, project: Project, modules: Iterable[str]) -> None:
        self.project = project
        self.roots: dict[str, Scope] = {}
        self.scopes: dict[str, Scope] = {}
        #: Methods of other classes that a class calls on its own objects: `Other.method(self)`.
        self.borrowed: dict[str, list[Scope]] = {}
        self.indexed: list[str] = []
        self._members: dict[str, dict[str, Scope]] = {}
        self._self_attributes: dict[str, dict[str, list[tuple[Scope, Binding]]]] = {}
        self._foreign: dict[str, list[tuple[Scope, Expression, Binding]]] = {}
        self._calls: dict[str, list[tuple[Scope, CallFact]]] = {}
        self._subclasses: dict[str, set[str]] = {}
        self._opened: set[str] = set()
        self._surveyed: set[str] = set()
        self.extend(modules)

    @abstractmethod
    def evaluate(self, scope: Scope, expression: Expression) -> Tags:
        """What an expression of a scope may be."""

    @abstractmethod
    def forget(self) -> None:
        """Drop what was evaluated: more modules are known now."""

    def extend(self, modules: Iterable[str]) -> None:
        """Read further modules; what was evaluated so far is evaluated anew."""
        for name in modules:
            root = self._load(name)
            if root is not None:
                self.indexed.append(name)
                self._index(root)
        self.forget()
        for scope in list(self.scopes.values()):
            if scope.kind == "class":
                for base in self.bases(scope.name):
                    self._subclasses.setdefault(base, set()).add(scope.name)
        self._find_borrowed()
        self.forget()

    def _find_borrowed(self) -> None:
        for module in self.indexed:
            for scope in self.roots[module].walk():
                method = enclosing_method(scope)
                if method is None or method.owner is None:
                    continue
                receiver = ["n", self_name(method)]
                for call in scope.calls:
                    callee, arguments = call.expression[1], call.expression[2]
                    if callee[0] != "a" or callee[1][0] != "n" or not arguments or arguments[0] != receiver:
                        continue
                    for tag in self.evaluate(scope, callee[1]):
                        found = self.method(tag[6:], callee[2]) if tag.startswith("class:") else None
                        held = self.borrowed.setdefault(method.owner, []) if found is not None else []
                        if found is not None and found not in held and found.owner not in self.mro(method.owner):
                            held.append(found)

    def _load(self, name: str) -> Scope | None:
        root = self.roots.get(name)
        if root is None:
            module = self.project.module(name)
            if module is None:
                return None
            root = self.roots[name] = scopes_of(module)
            self._place(root)
        return root

    def _place(self, scope: Scope) -> None:
        """Make a scope known by name, with the classes in it; functions are opened when somebody looks inside."""
        self.scopes[scope.name] = scope
        if scope.parent is not None:
            self._members.setdefault(scope.parent.name, {})[scope.qualname.rsplit(".", 1)[-1]] = scope
        if scope.kind != "function":
            for child in scope.children:
                self._place(child)

    def _open(self, scope: Scope) -> None:
        """Read a function's body: local definitions and assignments to attributes become known."""
        if scope.name in self._opened:
            return
        self._opened.add(scope.name)
        if scope.kind == "function":
            for child in scope.children:
                self._place(child)
        method = enclosing_method(scope)
        receiver = self_name(method) if method is not None else None
        for base, attribute, binding in scope.attributes:
            if base == ["n", receiver] and method is not None and method.owner is not None:
                table = self._self_attributes.setdefault(method.owner, {})
                table.setdefault(attribute, []).append((scope, binding))
            else:
                self._foreign.setdefault(attribute, []).append((scope, base, binding))

    def _open_all(self, scope: Scope) -> None:
        self._open(scope)
        for child in scope.children:
            self._open_all(child)

    def _index(self, root: Scope) -> None:
        """Open a whole module and list its calls by the name of the callee."""
        self._open_all(root)
        for scope in root.walk():
            for call in scope.calls:
                name = last_name(call.expression[1])
                if name is not None:
                    self._calls.setdefault(name, []).append((scope, call))

    def _instance_attributes(self, class_name: str) -> dict[str, list[tuple[Scope, Binding]]]:
        """Assignments to attributes of the receiver in all methods of a class body."""
        if class_name not in self._surveyed:
            self._surveyed.add(class_name)
            for method in self.methods(class_name).values():
                self._open_all(method)
        return self._self_attributes.get(class_name, {})

    def assigned(self, class_name: str, attribute: str) -> list[tuple[Scope, Binding]]:
        """Where the methods of a class body assign an attribute of the receiver."""
        return self._instance_attributes(class_name).get(attribute, [])

    def kept_under(self, attribute: str) -> list[tuple[Scope, Binding]]:
        """Where any known code assigns an attribute of this name, of whatever object."""
        own = [found for table in self._self_attributes.values() for found in table.get(attribute, ())]
        return own + [(scope, binding) for scope, _, binding in self._foreign.get(attribute, ())]

    def attribute_names(self, class_name: str) -> set[str]:
        """Attributes that the methods of a class body assign on the receiver."""
        return set(self._instance_attributes(class_name))

    def member(self, owner: str, name: str) -> Scope | None:
        """The function or class that a class, module or function body defines under a name."""
        return self._members.get(owner, {}).get(name)

    def methods(self, class_name: str) -> dict[str, Scope]:
        """Functions of a class body by name."""
        return {name: scope for name, scope in self._members.get(class_name, {}).items() if scope.kind == "function"}

    def bases(self, class_name: str) -> list[str]:
        """Qualified names (or access paths outside the checkout) of the direct bases."""
        scope = self.scopes.get(class_name)
        if scope is None or scope.class_ is None or scope.parent is None:
            return []
        found: list[str] = []
        for base in scope.class_.bases:
            plain = base[1] if base[0] == "s" else base
            for tag in sorted(self.evaluate(scope.parent, plain)):
                found.append(tag.removeprefix("class:"))
        return found

    def mro(self, class_name: str) -> list[str]:
        """The class and its ancestors, nearest first (depth first, repeats dropped)."""
        order: list[str] = []
        stack = [class_name]
        while stack:
            name = stack.pop(0)
            if name not in order:
                order.append(name)
                stack = self.bases(name) + stack if ":" in name else stack
        return order

    def subclasses(self, class_name: str) -> list[str]:
        """All known descendants, sorted."""
        seen: set[str] = set()
        stack = [class_name]
        while stack:
            for name in self._subclasses.get(stack.pop(), ()):
                if name not in seen:
                    seen.add(name)
                    stack.append(name)
        return sorted(seen)

    def method(self, class_name: str, name: str) -> Scope | None:
        """A method by lookup along the ancestors."""
        for ancestor in self.mro(class_name):
            found = self.member(ancestor, name)
            if found is not None and found.kind == "function":
                return found
        return None

    def callers(self, name: str) -> list[tuple[Scope, CallFact]]:
        """Calls whose callee ends in this name."""
        return self._calls.get(name, [])
