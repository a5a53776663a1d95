"""Attributes of modules, classes and objects: read through the class, `super` and `__getattr__`, and written."""

from __future__ import annotations

from sgl_graph.analyzer.static.config import methods, registry
from sgl_graph.analyzer.static.config.classes import Classes
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, taint, unknown
from sgl_graph.analyzer.static.config.program import (
    Bound,
    ClassV,
    FunctionV,
    Instance,
    ModuleV,
    Partial,
    Super,
    Thunk,
    Wrapped,
)
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Deps,
    DictV,
    External,
    Fuzzy,
    Generic,
    ListV,
    Native,
    Value,
)


class Attributes(Classes):
    """The part of the evaluator that reads and writes attributes."""

    # -- reading attributes

    def get(self, value: Value, name: str) -> Value:
        if type(value) is not Fuzzy:
            return self._get_single(value, name)
        results = []
        missing = 0
        for option in value.options:
            try:
                found = self._get_single(option, name)
            except Raised as raised:
                if raised.explicit and len(value.options) == 1:
                    raise
                found = ABSENT
            missing += found is ABSENT
            results.append(found)
        if missing == len(results) and results and not value.open:
            return ABSENT
        # An option without the attribute would have raised: it was not the one.
        results = [item for item in results if item is not ABSENT]
        return fuzzy(results, value.open, value.deps, value.place or self.place())

    def _get_single(self, value: Value, name: str) -> Value:
        kind = type(value)
        if kind is Instance:
            return self._get_instance(value, name)
        if kind is ModuleV:
            return self.module_attribute(value, name)
        if kind is External:
            if self.project.has_module(f"{value.path}.{name}"):
                return self.import_module(f"{value.path}.{name}")
            return self.facts.attribute(value, name)
        if kind is ClassV:
            return self._get_class(value, name)
        if kind is Super:
            return self._get_super(value, name)
        if kind is FunctionV:
            if name in value.attrs:
                return value.attrs[name]
            if name in ("__name__", "__qualname__"):
                return value.facts.name if name == "__name__" else value.facts.qualname
            if name == "__doc__":
                return None
            return ABSENT
        if kind is Bound:
            return value.receiver if name == "__self__" else self._get_single(value.function, name)
        if kind is Wrapped:
            if name in ("cache_clear", "cache_info"):
                return Native(name, lambda machine, arguments, keywords: None)
            return value.function if name == "__wrapped__" else self.get(value.function, name)
        if kind is Partial:
            return value.function if name == "func" else ABSENT
        if kind is Generic:
            return {"__origin__": value.origin, "__args__": value.arguments}.get(name, ABSENT)
        return methods.method(value, name)

    def _get_instance(self, value: Instance, name: str) -> Value:
        found = value.attrs.get(name, ABSENT)
        if found is not ABSENT and not (type(found) is Fuzzy and ABSENT in found.options):
            if type(found) is Thunk:
                found = value.attrs[name] = found.evaluate()
            return found
        rest = self._get_beyond(value, name)
        if type(found) is not Fuzzy:
            return rest
        present = [option for option in found.options if option is not ABSENT]
        if rest is ABSENT:
            return found
        return fuzzy([*present, rest], found.open, found.deps, found.place)

    def _get_beyond(self, value: Instance, name: str) -> Value:
        """What an object without the attribute of its own answers: its class, its `__getattr__`, the unknown."""
        cls = value.cls
        if isinstance(cls, ClassV):
            if name == "__dict__":
                return DictV(dict(value.attrs), value.opaque)
            if name == "__class__":
                return cls
            found = self.inherited(cls, name)
            if found is not ABSENT:
                return self.bind(found, value, cls, name)
            hook = self.inherited(cls, "__getattr__")
            if hook is not ABSENT:
                try:
                    return self.call(Bound(hook, value), [name], {})
                except Raised as raised:
                    if self._is_attribute_error(raised):
                        return ABSENT
                    raise
            if value.opaque is not None:
                return unknown(value.opaque, self.place())
            if any(type(item) is External and not self.is_closed(item) for item in self.ancestry(cls)):
                return self._foreign_attribute(value, name)
            return ABSENT
        if f"{cls.path}().{name}" in registry.CALLS:
            return Bound(External(f"{cls.path}().{name}"), value)
        found = self.facts.instance_attribute(value, name)
        if found is not ABSENT:
            return found
        return unknown(value.opaque, self.place()) if value.opaque is not None else ABSENT

    def _is_attribute_error(self, raised: Raised) -> bool:
        value = raised.value
        return type(value) is Instance and value.cls == External("builtins.AttributeError")

    def is_closed(self, item: External) -> bool:
        """Whether an external base class adds no attributes that matter."""
        return item.path.split(".")[0] in (
            "builtins",
            "enum",
            "abc",
            "typing",
            "msgspec",
            "argparse",
            "typing_extensions",
        )

    def _foreign_attribute(self, value: Instance, name: str) -> Value:
        if type(value.payload) in (DictV, ListV):
            return methods.method(value.payload, name)
        return unknown(["class"], self.place())

    def bind(self, found: Value, value: Value, cls: ClassV, name: str) -> Value:
        """What an attribute found in a class is when it is read through an object."""
        kind = type(found)
        if kind is FunctionV or kind is Native:
            return Bound(found, value)
        if kind is Wrapped:
            if found.kind in ("property", "cached_property"):
                result = self.call(Bound(found.function, value), [], {})
                if found.kind == "cached_property":
                    self.touch(value)
                    value.attrs[name] = result
                return result
            if found.kind == "staticmethod":
                return found.function
            if found.kind == "classmethod":
                return Bound(found.function, cls)
            return Bound(found, value)
        if kind is Instance and type(found.cls) is ClassV and self.inherited(found.cls, "__get__") is not ABSENT:
            return self.call_method(found, "__get__", [value, cls])
        return found

    def _get_class(self, cls: ClassV, name: str) -> Value:
        if name == "__name__" or name == "__qualname__":
            return cls.name
        if name == "__module__":
            return cls.module.name
        if name == "__mro__":
            return tuple(self.ancestry(cls))
        if name == "__dict__":
            return self.class_names(cls)
        if name == "__dataclass_fields__" and self.kind_of(cls) == "record":
            return DictV({field.name: unknown(["class"]) for field in self.record_fields(cls)})
        if name == "__members__" and self.kind_of(cls) == "enum":
            return DictV(dict(self.members(cls)))
        if name == "__annotations__":
            found = cls.attrs.get(name, ABSENT)
            return found if found is not ABSENT else self.annotations(cls)
        if self.kind_of(cls) == "enum" and name in self.members(cls):
            return self.members(cls)[name]
        found = self.inherited(cls, name)
        if found is ABSENT:
            if name in ("__struct_fields__", "_fields"):
                return tuple(field.name for field in self.record_fields(cls))
            if name in ("__setattr__", "__getattribute__", "__init__", "__new__", "__init_subclass__"):
                return External(f"builtins.object.{name}")
            open_base = any(type(item) is External and not self.is_closed(item) for item in self.ancestry(cls))
            return unknown(["class"], self.place()) if open_base else ABSENT
        if type(found) is Wrapped:
            if found.kind == "staticmethod":
                return found.function
            if found.kind == "classmethod":
                return Bound(found.function, cls)
        return found

    def _get_super(self, value: Super, name: str) -> Value:
        receiver = value.receiver
        start = receiver if type(receiver) is ClassV else receiver.cls if type(receiver) is Instance else value.owner
        line = self.ancestry(start) if type(start) is ClassV else [value.owner]
        after = next((i for i, item in enumerate(line) if item is value.owner), 0) + 1
        for item in line[after:]:
            if type(item) is ClassV:
                found = self.class_attribute(item, name)
                if found is not ABSENT:
                    return self.bind(found, receiver, item, name)
            elif type(item) is External:
                return Bound(External(f"{item.path}.{name}"), receiver)
        return Bound(External(f"builtins.object.{name}"), receiver)

    # -- writing attributes

    def set(self, value: Value, name: str, new: Value) -> None:
        options, open_ = options_of(value)
        weak = open_ or len(options) > 1
        deps = deps_of(value) | self.control
        for option in options:
            if type(option) is Instance and type(option.cls) is ClassV:
                hook = self.inherited(option.cls, "__setattr__")
                if hook is not ABSENT:
                    held = self.assigned
                    self.assigned = (id(option), name, self.place())  # who assigns decides, not what carries it out
                    try:
                        self.call(Bound(hook, option), [name, new], {})
                    finally:
                        self.assigned = held
                    continue
            self.set_raw(option, name, new, weak, deps)

    def set_raw(self, value: Value, name: str, new: Value, weak: bool = False, deps: Deps = NO_DEPS) -> None:
        """Assign past any `__setattr__`."""
        if type(value) is ModuleV:
            self.touch(value)
            value.names[name] = taint(new, deps)
            return
        if type(value) is FunctionV:
            value.attrs[name] = new
            return
        if type(value) is not Instance and type(value) is not ClassV:
            return
        if type(value) is Instance and type(value.cls) is ClassV:
            setter = self.inherited(value.cls, name)
            if type(setter) is Wrapped and setter.kind == "property":
                self.note(self.place(), f"property setter {name}")
        self.touch(value)
        attrs = value.attrs
        assigned = self.assigned
        place = assigned[2] if assigned is not None and assigned[:2] == (id(value), name) else self.place()
        if weak:
            attrs[name] = fuzzy((new, attrs.get(name, ABSENT)), False, deps, place)
        else:
            attrs[name] = taint(new, deps, place)
        self.keep(value)
        self.written[(id(value), name)] = place

    def call_method(self, instance: Instance, name: str, arguments: list[Value]) -> Value:
        if type(instance.cls) is not ClassV:
            return ABSENT
        found = self.inherited(instance.cls, name)
        return ABSENT if found is ABSENT else self.call(Bound(found, instance), arguments, {})
