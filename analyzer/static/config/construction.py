"""Objects made of the classes of the checkout: records, enum members, and those with a constructor of their own."""

from __future__ import annotations

from sgl_graph.analyzer.static.config import comparison, operators, python_values, records
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, single, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, FunctionV, Instance, Wrapped
from sgl_graph.analyzer.static.config.unevaluated import Unevaluated
from sgl_graph.analyzer.static.config.values import ABSENT, External, Value


class Construction(Unevaluated):
    """The part of the evaluator that makes objects."""

    def instantiate(self, cls: ClassV, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Make an object of a class of the checkout."""
        kind = self.kind_of(cls)
        if kind == "enum":
            return self._enum_member(cls, arguments)
        maker = self.inherited(cls, "__new__")
        if type(maker) in (FunctionV, Wrapped):
            inner = maker.function if type(maker) is Wrapped else maker
            made = self.call(inner, [cls, *arguments], keywords)
            plain = single(made)
            if type(plain) is not Instance or plain.cls is not cls:
                return made
            instance = plain
        else:
            instance = Instance(cls)
        initializer = self.inherited(cls, "__init__")
        if initializer is not ABSENT:
            self.call(Bound(initializer, instance), arguments, keywords)
        elif kind == "record":
            records.fill(self, instance, arguments, keywords)
        else:
            base = next((item for item in self.ancestry(cls) if type(item) is External), None)
            if base is not None:
                records.fill_foreign(self, instance, base, arguments, keywords)
            elif arguments or keywords:
                raise self.fail("TypeError", f"{cls.name} takes no arguments")
        return instance

    def _enum_member(self, cls: ClassV, arguments: list[Value]) -> Value:
        def work(value: Value) -> Value:
            for member in self.members(cls).values():
                if value is member or comparison.compare(self, "==", member.attrs["_value_"], value)[0] is True:
                    return member
            found = self.inherited(cls, "_missing_")
            if found is not ABSENT:
                inner = found.function if type(found) is Wrapped else found
                return self.call(inner, [cls, value], {})
            if python_values.hashable(value) is ABSENT:
                return fuzzy(self.members(cls).values(), False, deps_of(value))
            raise self.fail("ValueError", f"{value!r} is not a valid {cls.name}")

        if not arguments:
            return unknown()
        return operators.lift(self, work, arguments[0])
