"""Imports for their effect: modules that nobody names, but that fill a registry or patch something when imported.

Imports are followed when a name is read, so a module imported only for what it does would never be seen. Reading all
of them would read the whole import closure. So an imported module is interpreted without a reader only where its text
calls, at its top level, a function that fills a registry which the program reads, or stores into an attribute of
something else.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.checkout.project import Module
from sgl_graph.analyzer.static.checkout.questions import question
from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.extract.unasked import EVERY
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import ClassValue, Instance

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: `@registry.register(...)`, `register(...)` and `module.name = ...` at the top level of a file.
#: A literal line end in front is five times as fast as `^`, and the texts are those of the whole import closure.
_CALLED = re.compile(rb"\n@?(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)\(")
_DECORATED = re.compile(rb"\n@(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?=[ \t\r]*\n)")
_PATCHED = re.compile(rb"\n[A-Za-z_]\w*(?:\.\w+)+ = ")
_IMPORTS = re.compile(
    rb"^from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|^import[ \t]+([\w., \t]+)", re.MULTILINE
)
_FILLING = {"append", "add", "insert", "setdefault", "update"}


class Effects:
    """Decides which imported modules to interpret although nothing reads a name of theirs."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world
        self._registrars: set[str] = set()
        self._scanned: set[str] = set()
        self._looked: dict[str, int] = {}
        self._called: dict[str, frozenset[str]] = {}
        self._patches: set[str] = set()

    def follow(self) -> bool:
        """Interpret what has become due; True when anything was."""
        self._find_registrars()
        due = [name for name in sorted(self._pending()) if self._is_due(name)]
        for name in due:
            self._in.ensure_module(name)
        return bool(due)

    # -- registries

    def _find_registrars(self) -> None:
        for activation in self._registry_makers():
            module = activation.module
            if module.name not in self._scanned:
                self._scanned.add(module.name)
                self._registrars |= _registrars(module)

    def _registry_makers(self) -> Iterable[Activation]:
        """Activations that made a container which lives as long as its module and which some function reads."""
        kept: set[ClassValue] | None = None
        for place, container in list(self._world.containers.items()):
            maker = _maker(place)
            if container.kind not in ("dict", "list", "set") or maker is None:
                continue
            if maker.module.name in self._scanned:
                continue
            if maker.function is not None:
                if maker.function.facts.name != "__init__":
                    continue
                kept = self._kept_classes() if kept is None else kept
                if getattr(maker.receiver, "cls", None) not in kept:
                    continue
            cell = container.whole or container.keys
            if cell is not None and any(reader.function is not None for reader in cell.each_reader()):
                yield maker

    def _kept_classes(self) -> set[ClassValue]:
        """Classes of which a module holds an instance under a name."""
        return {
            value.cls
            for table in self._world.globals.values()
            for cell in table.values()
            for value in cell.peek()
            if isinstance(value, Instance)
        }

    # -- imported modules

    def _pending(self) -> set[str]:
        """Imported modules not interpreted yet, with the packages around what was interpreted."""
        imported = self._world.imported
        for name in list(self._in.loaded_modules()):
            imported.update(_parents(name))
        for name in list(imported):
            imported.update(_parents(name))
        if self._registrars:
            self._through_packages(imported)
        return {name for name in imported if not self._in.is_loaded(name)}

    def _through_packages(self, imported: set[str]) -> None:
        """A package's `__init__` imports for effect what it lists, even when nobody reads a name of it."""
        project = self._world.project
        stack = [name for name in imported if not self._in.is_loaded(name)]
        seen: set[str] = set()
        while stack:
            name = stack.pop()
            path = project.path_of(name)
            if name in seen or path is None or not path.endswith("__init__.py"):
                continue
            seen.add(name)
            for found in project.questions.ask(path, imports_in, name):
                if project.has_module(found) and found not in imported:
                    imported.add(found)
                    stack.append(found)

    def _is_due(self, name: str) -> bool:
        path = self._world.project.path_of(name)
        if path is None or self._looked.get(name) == len(self._registrars):
            return False
        self._looked[name] = len(self._registrars)
        called = self._called.get(name)
        if called is None:
            names, patches = self._world.project.questions.ask(path, effects_in)
            called = self._called[name] = frozenset(names)
            if patches:
                self._patches.add(name)
        return name in self._patches or not called.isdisjoint(self._registrars)


def _maker(place: Hashable) -> Activation | None:
    """The activation in which a container was created, from the key that identifies it."""
    key = place[1] if isinstance(place, tuple) else None
    first = key[0] if isinstance(key, tuple) else None
    return first if isinstance(first, Activation) else None


def _parents(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


@question
def effects_in(text: bytes) -> tuple[list[str], bool]:
    """What a file's top level calls, by name, and whether it stores into attributes of something else."""
    text = b"\n" + text
    names = {*_CALLED.findall(text), *_DECORATED.findall(text)}
    return sorted(found.decode() for found in names), _PATCHED.search(text) is not None


@question
def imports_in(text: bytes, package: str) -> list[str]:
    """Modules that the top level of a package's `__init__` imports, or may."""
    return list(_imports(text, package))


def _imports(text: bytes, package: str) -> Iterable[str]:
    """Modules that the top level of a package's `__init__` imports, or may: `from . import a` names a module or a name."""
    for base, names, plain in _IMPORTS.findall(text):
        if plain:
            yield from (part.split(" as ")[0].strip() for part in plain.decode().split(","))
            continue
        dotted = base.decode()
        level = len(dotted) - len(dotted.lstrip("."))
        origin = dotted.lstrip(".")
        if level:
            parts = package.split(".")
            kept = parts[: len(parts) - level + 1]
            origin = ".".join([*kept, origin] if origin else kept)
        yield origin
        for item in re.findall(r"[A-Za-z_]\w*", re.sub(r"\bas\s+\w+|#.*", "", names.decode("utf-8", "replace"))):
            yield f"{origin}.{item}"


def _registrars(module: Module) -> set[str]:
    """Functions of a module that put one of their parameters, or what they make of it, into a container they do not own."""
    module.asked.add(EVERY)
    found: set[str] = set()
    for index, function in enumerate(module.facts.functions):
        # A decorator's inner function stores what the decorated function is: the outer one's name is what is called.
        if _stores(module, index, set(), set()):
            found.add(function.name)
    return found - {"__init__", "__setitem__", "<lambda>"}


def _stores(module: Module, index: int, parameters: set[str], own: set[str]) -> bool:
    function = module.facts.functions[index]
    receiver = {"self"} | ({"cls"} if ["n", "classmethod"] in function.decorators else set())
    names = parameters | ({p.name for p in function.parameters} - receiver)
    local = (own | set(function.locals)) - names - receiver
    return any(_fills(module, s, names, local) for s in _walk(module.function_body(index)))


def _fills(module: Module, s: Statement, names: set[str], local: set[str]) -> bool:
    if s[0] == "def":
        return _stores(module, s[2], names, local)
    if s[0] == "=":
        return any(t[0] == "s" and _outlives(t[1], local) for t in s[2]) and _mentions(s[3], names)
    if s[0] == "e" and s[2][0] == "c":
        callee = s[2][1]
        if callee[0] == "a" and callee[2] in _FILLING and _outlives(callee[1], local):
            return any(_mentions(argument, names) for argument in s[2][2])
    return False


def _outlives(owner: Expression, local: set[str]) -> bool:
    """Whether a container is a module's, a class's or an object's, not a local of the function."""
    while owner[0] in ("a", "s"):
        owner = owner[1]
    return owner[0] == "n" and owner[1] not in local


def _mentions(e: Expression, names: set[str]) -> bool:
    """Whether a value is one of the names, or is made of one: `Entry(name, factory)`, `(a, b)`."""
    if e[0] == "n":
        return e[1] in names
    if e[0] == "k":
        return _mentions(e[2], names)
    if e[0] in ("*", "**"):
        return _mentions(e[1], names)
    if e[0] == "c":
        return any(_mentions(item, names) for item in e[2])
    if e[0] in ("t", "L", "S"):
        return any(_mentions(item, names) for item in e[1])
    if e[0] == "d":
        return any(_mentions(value, names) for _, value in e[1])
    return False


def _walk(body: list[Statement]) -> Iterable[Statement]:
    """Statements of a body with those of nested blocks."""
    for s in body:
        yield s
        if s[0] in ("if", "while"):
            yield from _walk(s[3])
            yield from _walk(s[4])
        elif s[0] == "for":
            yield from _walk(s[4])
        elif s[0] == "with":
            yield from _walk(s[3])
        elif s[0] == "try":
            yield from _walk(s[2])
            for handler in s[3]:
                yield from _walk(handler[2])
            yield from _walk(s[5])
