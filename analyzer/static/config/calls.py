"""Calls: which function, class, method or modelled native a value means when it is called, outside the checkout too."""

from __future__ import annotations

import sys

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import registry
from sgl_graph.analyzer.static.config.functions import Functions
from sgl_graph.analyzer.static.config.journal import Signal
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, FunctionV, Instance, Partial, Wrapped
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    DictV,
    External,
    Fuzzy,
    Generic,
    IteratorV,
    ListV,
    Native,
    Value,
)


class Calls(Functions):
    """The part of the evaluator that calls."""

    def call(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        if type(function) is Fuzzy:
            return self._call_several(function, arguments, keywords)
        self.step()
        kind = type(function)
        if kind is FunctionV:
            return self.run_function(function, arguments, keywords, ABSENT)
        if kind is Bound:
            return self._call_bound(function, arguments, keywords)
        if kind is Native:
            return function.call(self, arguments, keywords)
        if kind is ClassV:
            return self.instantiate(function, arguments, keywords)
        if kind is External:
            return self.call_external(function, arguments, keywords)
        if kind is Wrapped:
            if function.kind == "cached":
                return self.call_cached(function, arguments, keywords)
            return self.call(function.function, arguments, keywords)
        if kind is Partial:
            return self.call(function.function, [*function.arguments, *arguments], {**function.keywords, **keywords})
        if kind is Instance:
            found = self.inherited(function.cls, "__call__") if type(function.cls) is ClassV else ABSENT
            if found is not ABSENT:
                return self.call(Bound(found, function), arguments, keywords)
            return unknown(function.opaque or ["class"], self.place())
        if kind is Generic:
            return self.call(function.origin, arguments, keywords)
        raise self.fail("TypeError", f"{type(function).__name__} is not callable")

    def _call_several(self, function: Fuzzy, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        options = [option for option in function.options if option is not ABSENT]
        if len(options) == 1 and not function.open:
            held = self.control
            self.control = held | function.deps
            try:
                return taint(self.call(options[0], arguments, keywords), function.deps, self.place())
            finally:
                self.control = held
        if function.open:
            if not options:
                return self.call_unknown(function, arguments, keywords)
            branches = [*options, None]
        else:
            branches = options

        def branch(option: Value) -> Signal:
            if option is None:
                return "", self.call_unknown(function, arguments, keywords)
            return "", self.call(option, arguments, keywords)

        def bind(option: Value) -> object:
            return lambda: branch(option)

        _, value = self.fork([bind(option) for option in branches], function.deps)  # type: ignore[misc]
        return taint(value, function.deps, self.place())

    def call_unknown(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """A call of something unknown: its result is unknown."""
        deps = deps_of(function)
        for value in (*arguments, *keywords.values()):
            deps |= deps_of(value)
        of_model = "model" in deps_of(function) and bool(self.frames)
        if of_model and self.frames[-1].module.name.startswith(profile.OVERRIDE_PACKAGE) and self.overridable():
            # A provider of an unknown architecture returns fields that some provider returns.
            rest = unknown(deps, self.place())
            return DictV({name: fuzzy((rest, ABSENT), True, deps) for name in self.overridable()})
        return unknown(deps, self.place())

    def _call_bound(self, function: Bound, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        inner = function.function
        if type(inner) is FunctionV:
            return self.run_function(inner, [function.receiver, *arguments], keywords, function.receiver)
        if type(inner) is External:
            return self._call_foreign_method(inner, function.receiver, arguments, keywords)
        return self.call(inner, [function.receiver, *arguments], keywords)

    def _call_foreign_method(
        self, inner: External, receiver: Value, arguments: list[Value], keywords: dict[str, Value]
    ) -> Value:
        name = inner.path.rsplit(".", 1)[-1]
        native = registry.CALLS.get(inner.path) or registry.CALLS.get(f"builtins.object.{name}")
        if native is not None:
            return native(self, [receiver, *arguments], keywords)
        if name == "__init__" and type(receiver) is Instance:
            self.touch(receiver)
            receiver.attrs.setdefault("args", tuple(arguments))
            return None
        payload = receiver.payload if type(receiver) is Instance else None
        if type(payload) in (DictV, ListV):
            return self.call(self.get(payload, name), arguments, keywords)
        return unknown([f"package:{inner.path.split('.')[0]}"], self.place())

    def call_external(self, function: External, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """A call of something outside the checkout."""
        native = registry.CALLS.get(function.path)
        if native is not None:
            return native(self, arguments, keywords)
        found = self.facts.call(self, function, arguments, keywords)
        if found is not ABSENT:
            return found
        from sgl_graph.analyzer.static.config.exceptions import external_class

        if external_class(function) is not None:
            return Instance(function, {"args": tuple(arguments)})
        root = function.path.split(".")[0]
        deps = frozenset(["host" if root in sys.stdlib_module_names else f"package:{root}"])
        for value in (*arguments, *keywords.values()):
            deps |= deps_of(value)
        return unknown(deps, self.place())

    def enter(self, manager: Value) -> tuple[Value, bool]:
        plain = single(manager)
        if type(plain) is Instance:
            if plain.cls == External("contextlib.suppress"):
                return None, True
            found = self.call_method(plain, "__enter__", [])
            return (unknown(deps_of(manager)) if found is ABSENT else found), False
        if type(plain) is ListV:  # a generator-based context manager: its body has run
            return (plain.items[0] if plain.items and type(plain.items[0]) is not IteratorV else None), False
        return unknown(deps_of(manager), self.place()), False
