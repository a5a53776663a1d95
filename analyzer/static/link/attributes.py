"""Attributes: what `x.name` may be, and what storing into it changes."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.class_level import MOST_NESTED
from sgl_graph.analyzer.static.link.objects import (
    Builtin,
    Configured,
    Container,
    Foreign,
    Generated,
    Method,
    Pattern,
    Scanned,
    Super,
    Typed,
)
from sgl_graph.analyzer.static.link.sets import traits
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    BOTH,
    NOTHING,
    UNKNOWN,
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    ImportReference,
    Instance,
    ModuleValue,
    Rowless,
    Unknown,
    Value,
    Values,
    Wrapped,
    just,
)
from sgl_graph.analyzer.static.linked import Known

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_DEEPEST_PATH = 8
#: Names below a module that nobody follows are told apart down to this depth.
_DEEPEST_FOREIGN = 3


class Attributes:
    """Attribute access for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world
        self._sought = interpreter.world.project.sought
        self._table: dict[type, Callable[[Any, str], Values]] = {
            Instance: self._instance, Unknown: self._itself, External: self._external, ModuleValue: self._module,
            Configured: self._configured, Foreign: self._foreign, ClassValue: self.of_class,
            EnumMember: self._enum_member, Super: self._super, Builtin: self._builtin, Container: self._container,
            Typed: self._with_methods, Constant: self._constant, Generated: self._with_methods,
            FunctionValue: self._function, Bound: self._of_bound, Wrapped: self._of_wrapped, Scanned: self._scanned,
            ImportReference: self._anything, Method: self._anything, Pattern: self._anything, Rowless: self._anything,
        }  # fmt: skip

    def get(self, values: Values, name: str, named: bool = True) -> Values:
        """Attribute `name` of anything in `values`.

        `named` tells that the source names the owner from an import on (`torch.nn.functional`): what merely flowed here
        from outside the checkout is not told apart by its attributes unless its library is followed.
        """
        if not named and traits(values).externals:
            foreign = [v for v in values if type(v) is External and not self._in.keeps(v.path)]
            if foreign:
                rest = values.difference(foreign)
                return (self.get(rest, name) if rest else NOTHING) | ANYTHING
        table = self._table
        if len(values) == 1:
            (value,) = values
            return table[type(value)](value, name)
        found: set[Value] = set()
        for value in values:
            found |= table[type(value)](value, name)
        return frozenset(found)

    def _instance(self, value: Instance, name: str) -> Values:
        if not value.fuzzy:
            return self.of_instance(value, name)
        found: set[Value] = set()
        for concrete in self._world.concrete(value):
            found |= self.of_instance(concrete, name)
        return frozenset(found)

    def _itself(self, value: Value, name: str) -> Values:
        return just(value)

    def _anything(self, value: Value, name: str) -> Values:
        return ANYTHING

    def _module(self, value: ModuleValue, name: str) -> Values:
        return self.of_module(value.name, name)

    def _foreign(self, value: Foreign, name: str) -> Values:
        settled = self._world.oracle.attribute(self._in, value, name)
        written = self._world.heap.read(self._world.heap.cell(("configured", value.handle, name)))
        return written | (ANYTHING if settled is None else settled)

    def _builtin(self, value: Builtin, name: str) -> Values:
        if value.name == "object" and name == "__new__":
            return just(Builtin.of("object.__new__"))
        return ANYTHING

    def _constant(self, value: Constant, name: str) -> Values:
        return NOTHING if value.value is None else self._with_methods(value, name)

    def _with_methods(self, value: Value, name: str) -> Values:
        return just(Method.of(value, name)) if name in _METHODS else ANYTHING

    def _container(self, value: Container, name: str) -> Values:
        kind = value.kind
        if kind == "partial" and name in ("func", "args", "keywords"):
            return self._world.element(value, Constant.of("func")) if name == "func" else ANYTHING
        if kind == "namespace":
            return self._world.element(value, Constant.of(name)) or self._in.starved()
        if kind == "tuple" and name == "name":
            # `ModuleInfo.name` of `pkgutil.iter_modules`
            second = self._world.element(value, Constant.of(1))
            return frozenset(v for v in second if isinstance(v, Scanned)) or ANYTHING
        return self._with_methods(value, name)

    def _of_bound(self, value: Bound, name: str) -> Values:
        if name == "__self__":
            return just(value.receiver)
        if name == "__func__":
            return just(value.function)
        return self._table[type(value.function)](value.function, name)

    def _of_wrapped(self, value: Wrapped, name: str) -> Values:
        return just(value.function) if name in ("__wrapped__", "func", "fget") else ANYTHING

    def _scanned(self, value: Scanned, name: str) -> Values:
        if value.kind == "module" and name != "__name__":
            return just(Scanned.of(value.package, "class", name))
        if value.kind == "class" and name == "__name__":
            return just(Scanned.of(value.package, "class name", value.attribute))
        return ANYTHING

    # -- modules

    def of_module(self, module: str, name: str) -> Values:
        """A name of a module of the checkout, loading it."""
        world = self._world
        if name == "__path__" and world.project.is_package(module):
            return just(Scanned.of(module, "path"))
        if name == "__name__":
            return just(Constant.of(module))
        settled = world.oracle.module_attribute(self._in, module, name)
        if settled is not None:
            return settled
        self._in.ensure_module(module)
        cell = world.globals.get(module, {}).get(name)
        if cell is not None:
            values = self.resolve(world.heap.read(cell))
            if values:
                return values
        below = f"{module}.{name}"
        if world.project.has_module(below) or world.project.is_package(below):
            return just(self._in.module_value(below))
        if cell is None and world.project.has_module(module):
            cell = self._in.global_cell(module, name)
            world.heap.read(cell)
            fallback = world.globals.get(module, {}).get("__getattr__")
            if fallback is not None:
                return self._in.implicit.call_simple(world.heap.read(fallback), [just(Constant.of(name))])
        return NOTHING

    def resolve(self, values: Values) -> Values:
        """Values with import references followed."""
        if len(values) == 1:
            (only,) = values
            if type(only) is not ImportReference:
                return values
        elif not values or not traits(values).imports:
            return values
        found: set[Value] = set()
        for value in values:
            if isinstance(value, ImportReference):
                found |= self.imported(value.module, value.name)
            else:
                found.add(value)
        return frozenset(found)

    def imported(self, module: str, name: str | None) -> Values:
        """What an import binds: a module (`name` None), or a name of one."""
        project = self._world.project
        inside = project.has_module(module) or project.is_package(module)
        if name is None:
            return just(self._in.module_value(module) if inside else External.of(module))
        if not inside:
            return just(External.of(f"{module}.{name}"))
        if self._in.class_level.nested > MOST_NESTED:
            self._world.heap.volatile = True
            return NOTHING
        self._in.class_level.nested += 1
        try:
            return self.of_module(module, name) or self._in.starved()
        finally:
            self._in.class_level.nested -= 1

    # -- externals, functions, enumerations

    def _external(self, value: External, name: str) -> Values:
        path = f"{value.path}.{name}"
        patched = self._world.heap.cell(("external", path))
        found = self._world.heap.read(patched)
        if path.startswith("os.environ"):
            return just(External.of(path))
        if not self._in.keeps(path) and (path.count(".") > _DEEPEST_FOREIGN or "(" in path):
            return found or ANYTHING
        if path.count(".") + path.count("(") > _DEEPEST_PATH:
            return ANYTHING
        return frozenset((External.of(path), *found))

    def _function(self, value: FunctionValue, name: str) -> Values:
        if name in ("__name__", "__qualname__"):
            return just(Constant.of(value.facts.name))
        if name == "__module__":
            return just(Constant.of(value.module.name))
        if name in ("__wrapped__", "func"):
            return just(value)
        if name == "__get__":
            return just(Method.of(value, "__get__"))
        return self._world.heap.read(self._world.heap.cell(("function", value, name)))

    def _enum_member(self, value: EnumMember, name: str) -> Values:
        if name in ("name", "_name_"):
            return just(Constant.of(value.name))
        if name in ("value", "_value_"):
            cell = cell_in(value.cls.own, value.name)
            return self._world.heap.read(cell) or ANYTHING
        return self._in.class_level.find(value.cls, value, name) or ANYTHING

    def _configured(self, value: Configured, name: str) -> Values:
        world = self._world
        settled = world.oracle.attribute(self._in, value, name)
        if settled is None or any(map(_is_method, settled)):
            # A method is bound to the object that it was found on.
            return self.of_instance(Instance.of(value.cls), name, receiver=value)
        # Configuration that code changes while it serves may hold either.
        return settled | world.heap.read(world.heap.cell(("configured", value.handle, name)))

    # -- classes and instances

    def of_class(self, cls: ClassValue, name: str) -> Values:
        """Attribute of a class object."""
        self._sought.add(name)
        if name in ("__name__", "__qualname__"):
            return just(Constant.of(cls.facts.name))
        if name == "__module__":
            return just(Constant.of(cls.module.name))
        if name == "__mro__" or name == "__bases__":
            return ANYTHING
        if name == "__dict__":
            return ANYTHING
        heap = self._world.heap
        found: set[Value] = set()
        for base in cls.mro:
            if isinstance(base, External):
                if not found:
                    found.add(External.of(f"{base.path}.{name}") if self._in.keeps(base.path) else UNKNOWN)
                continue
            cell = base.own.get(name)
            values = self.resolve(heap.read(cell)) if cell is not None else NOTHING
            for value in values:
                if "enum" in cls.marks and not isinstance(value, (FunctionValue, Wrapped)):
                    found.add(EnumMember.of(base, name))
                elif isinstance(value, Wrapped) and value.kind == "classmethod":
                    found.add(Bound.of(value.function, cls))
                elif isinstance(value, Wrapped) and value.kind == "staticmethod":
                    found.add(value.function)
                else:
                    found.add(value)
            if values:
                break
        if not found:
            self._world.missed(cls, name)
        if not found and "enum" in cls.marks and name in ("__members__", "_member_map_"):
            return ANYTHING
        return frozenset(found) or self._in.starved()

    def of_instance(self, instance: Instance, name: str, receiver: Value | None = None) -> Values:
        """Attribute of an object of exactly this class."""
        world = self._world
        heap = world.heap
        cls = instance.cls
        own: Value = receiver or instance
        if name == "__class__":
            return just(cls)
        if name == "__dict__":
            return ANYTHING
        settled = world.oracle.field(self._in, cls.qualname, name)
        if settled is not None and not any(map(_is_method, settled)):
            return settled | heap.read(cell_in(instance.attributes, name))
        found: Values = heap.read(cell_in(instance.attributes, name))
        if found == BOTH:
            found = world.latches.read(cls, name, found)
        bound = self._in.class_level.find(cls, own, name)
        if bound:
            found = found | bound if found else bound
        if found:
            if found == ANYTHING:
                # Nothing in particular flows here: the declared type says more.
                return self.declared(cls, name) or found
            return found
        declared = self.declared(cls, name)
        if declared:
            return declared
        dynamic = self._in.class_level.dynamic(cls, own, name)
        if dynamic is not None:
            return dynamic
        for base in cls.mro:
            if isinstance(base, External) and base.path not in ("object", "builtins.object"):
                if base.path.startswith(_PURE_BASES):
                    continue
                if name == "start" and base.path.endswith(_RUNNERS):
                    return self.of_instance(instance, "run", receiver)
                self._steps(base, cls, own, name)
                path = f"{base.path}().{name}"
                return just(External.of(path)) if self._in.keeps(path) else ANYTHING
        return self._in.starved()

    def declared(self, cls: ClassValue, name: str) -> Values:
        """Types that an annotation of the attribute promises."""
        heap = self._world.heap
        for base in cls.line:
            cell = base.declared.get(name)
            if cell is not None:
                return heap.read(cell)
        return NOTHING

    def _super(self, value: Super, name: str) -> Values:
        receiver = value.receiver
        if isinstance(receiver, ClassValue):
            mro_of = receiver
        else:
            owner = getattr(receiver, "cls", None)
            if not isinstance(owner, ClassValue):
                return ANYTHING
            mro_of = owner
        found = self._in.class_level.find(mro_of, receiver, name, after=value.cls)
        if found:
            return found
        if name == "__new__":
            return just(Builtin.of("object.__new__"))
        for base in mro_of.mro:
            if isinstance(base, External):
                self._steps(base, mro_of, receiver, name)
                path = f"{base.path}().{name}"
                return just(External.of(path)) if self._in.keeps(path) else ANYTHING
        return just(Builtin.of("object"))

    def _steps(self, base: External, cls: ClassValue, receiver: Value, name: str) -> None:
        """A method of a base outside the checkout is asked for that calls methods which subclasses override."""
        for suffix, name_of_caller, steps in _TEMPLATES:
            if name == name_of_caller and base.path.endswith(suffix):
                for step in steps:
                    self._in.implicit.call_simple(
                        self._in.class_level.find(cls, receiver, step), [ANYTHING] * 3, known=Known.OVERRIDE
                    )


#: Bases of the standard library whose `start` leads to `run`.
_RUNNERS = ("threading.Thread", ".Process", "threading.Timer")
#: Bases outside the checkout, the method that runs them, and what that calls on itself.
_TEMPLATES = (
    (
        "torch.fx.Interpreter",
        "run",
        ("run_node", "placeholder", "get_attr", "call_function", "call_method", "call_module", "output"),
    ),
    ("torch.fx.Transformer", "transform", ("placeholder", "get_attr", "call_function", "call_method", "call_module")),
)
#: Bases of the standard library that add no attribute anybody asks for by name.
_PURE_BASES = ("abc.", "typing.", "enum.", "object", "typing_extensions.")
#: Names that containers, strings and generators answer to; anything else on one of them is a mistake of the analysis.
_METHODS = frozenset(
    name
    for kind in (list, tuple, dict, set, frozenset, str, bytes, int, float, collections.deque, type(iter(())))
    for name in dir(kind)
) | {"send", "throw", "close", "gi_frame", "put", "put_nowait", "get_nowait", "set", "reset"}


def _is_method(value: Value) -> bool:
    """A function that a class holds: it is bound to the object that it is found on."""
    return isinstance(value, FunctionValue) and value.owner is not None
