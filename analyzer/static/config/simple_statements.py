"""Statements without a body of their own: assignments, imports, definitions, raises."""

from __future__ import annotations

from sgl_graph.analyzer.static.config import containers, operators, python_values
from sgl_graph.analyzer.static.config.expressions import Expressions
from sgl_graph.analyzer.static.config.journal import FELL_THROUGH, Level, Outcome, Raised, Signal
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, single, taint
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.values import ABSENT, Deps, DictV, External, ListV, SetV, Value
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.unasked import EVERY

_MAX_ITERATIONS = 5000
_LEAVING = ("return", "break", "continue")


class SimpleStatements(Expressions):
    """The part of the evaluator that runs simple statements."""

    def _assign(self, statement: f.Statement) -> Signal:
        value = self.evaluate(statement[3])
        for target in statement[2]:
            self.assign(target, value)
        return FELL_THROUGH

    def _annotated(self, statement: f.Statement) -> Signal:
        if statement[4] is not None:
            self.assign(statement[2], self.evaluate(statement[4]))
        return FELL_THROUGH

    def _augmented(self, statement: f.Statement) -> Signal:
        target = statement[2]
        before = self.evaluate(target)
        operand = self.evaluate(statement[4])
        plain = single(before)
        if statement[3] == "+" and type(plain) is ListV:
            items = self.elements(operand)
            self.touch(plain)
            if items is None:
                plain.items, plain.opaque = [], deps_of(operand)
            else:
                plain.items += [taint(item, self.control) for item in items] if self.control else items
            return FELL_THROUGH
        if statement[3] == "|" and type(plain) in (SetV, DictV):
            self.call(self.get(plain, "update"), [operand], {})
            return FELL_THROUGH
        self.assign(target, operators.binary(self, statement[3], before, operand))
        return FELL_THROUGH

    def assign(self, target: f.Expression, value: Value) -> None:
        kind = target[0]
        if kind == "n":
            self.store(target[1], value)
        elif kind == "a":
            self.set(self.evaluate(target[1]), target[2], value)
        elif kind in ("t", "L"):
            self._unpack(target[1], value)
        elif kind == "s":
            container = self.evaluate(target[1])
            indexes = [self.evaluate(item) for item in target[2]]
            self.set_item(container, indexes[0] if len(indexes) == 1 else tuple(indexes), value)
        elif kind == "*":
            self.assign(target[1], value)

    def set_item(self, container: Value, index: Value, value: Value) -> None:
        """`container[index] = value`."""
        options, open_ = options_of(container)
        weak = open_ or len(options) > 1
        for option in options:
            if type(option) is Instance:
                self.call_method(option, "__setitem__", [index, value])
                continue
            new = value
            if weak and type(option) is DictV:
                before = option.items.get(python_values.hashable(index), ABSENT)
                new = fuzzy((value, before), False, deps_of(container))
            containers.store_item(self, option, index, new)

    def _unpack(self, targets: list[f.Expression], value: Value) -> None:
        options, open_ = options_of(value)
        star = next((i for i, target in enumerate(targets) if target[0] == "*"), None)
        rows = []
        for option in options:
            items = self.elements(option)
            if items is None or (star is None and len(items) != len(targets)) or len(items) < len(targets) - 1:
                open_ = True
                continue
            if star is not None:
                after = len(targets) - star - 1
                middle = ListV(items[star : len(items) - after])
                items = [*items[:star], middle, *items[len(items) - after :]]
            rows.append(items)
        deps = deps_of(value)
        for position, target in enumerate(targets):
            if len(rows) == 1 and not open_:
                self.assign(target, taint(rows[0][position], deps))
            else:
                self.assign(target, fuzzy([row[position] for row in rows], open_, deps, self.place()))

    def _expression(self, statement: f.Statement) -> Signal:
        self.evaluate(statement[2])
        return FELL_THROUGH

    def _return(self, statement: f.Statement) -> Signal:
        value = self.evaluate(statement[2]) if statement[2] is not None else None
        if self.control:
            value = taint(value, self.control, self.place())
        return "return", value

    def _raise(self, statement: f.Statement) -> Signal:
        if statement[2] is None:
            current = self.handled()
            if current is None:
                raise self.fail("RuntimeError", "no active exception to reraise")
            raise current
        value = self.evaluate(statement[2])
        plain = single(value)
        if type(plain) is ClassV or type(plain) is External:
            plain = single(self.call(plain, [], {}))
        if type(plain) is not Instance:
            plain = Instance(External("builtins.Exception"))
        place = self.place()
        if self._assumed(self.control) and not self.try_depth:
            self.doubtful.append((place, self.control))
            return FELL_THROUGH
        raise Raised(plain, place, explicit=True)

    def _assumed(self, deps: Deps) -> bool:
        """Whether something rests on what is only assumed about the machine's software."""
        return any(dep.startswith("package:") or dep in ("disk", "host") for dep in deps)

    def handled(self) -> Raised | None:
        """The exception that the innermost running handler handles."""
        return self.handling[-1] if self.handling else None

    def _assert(self, statement: f.Statement) -> Signal:
        if not self.asserting:
            return FELL_THROUGH
        truth, deps = self.test(statement[2])
        if truth is False:
            place = self.place()
            if self._assumed(self.control | deps) and not self.try_depth:
                self.doubtful.append((place, self.control | deps))
                return FELL_THROUGH
            message = self.evaluate(statement[3]) if statement[3] is not None else ""
            error = Instance(External("builtins.AssertionError"), {"args": (message,)})
            raise Raised(error, place, explicit=True)
        return FELL_THROUGH

    def _delete(self, statement: f.Statement) -> Signal:
        for target in statement[2]:
            if target[0] == "s":
                container = single(self.evaluate(target[1]))
                if type(container) is DictV:
                    self.touch(container)
                    container.items.pop(python_values.hashable(self.evaluate(target[2][0])), None)
            elif target[0] == "n":
                frame = self.frames[-1]
                self.touch(frame)
                frame.names.pop(target[1], None)
            elif target[0] == "a":
                owner = single(self.evaluate(target[1]))
                if type(owner) is Instance:
                    self.touch(owner)
                    owner.attrs.pop(target[2], None)
        return FELL_THROUGH

    def _scope(self, statement: f.Statement) -> Signal:
        for name in statement[2][1:]:
            self.frames[-1].scopes[name] = statement[0]
        return FELL_THROUGH

    def _leave(self, statement: f.Statement) -> Signal:
        return statement[0], None

    def _import(self, statement: f.Statement) -> Signal:
        for _, dotted, renamed in statement[2]:
            if not dotted.startswith("sglang") and self.try_depth:
                self._import_external(dotted)
            module = self.import_module(dotted)
            if renamed is None and "." in dotted:
                self.store(dotted.split(".")[0], self.import_module(dotted.split(".")[0]))
            else:
                self.store(renamed or dotted, module)
        return FELL_THROUGH

    def _import_external(self, dotted: str) -> None:
        """Importing a package that may not be installed raises where it is not."""
        installed, _ = self.facts.installed(dotted.split(".")[0])
        if installed is False:
            raise Raised(Instance(External("builtins.ModuleNotFoundError")), self.place(), explicit=True)
        if installed is None:
            error = Raised(Instance(External("builtins.ImportError")), self.place(), explicit=True)
            self.levels.append(Level(pending=[Outcome("raise", error, {})]))

    def _from(self, statement: f.Statement) -> Signal:
        source = self.frames[-1].module.module.absolute(statement[2], statement[3])
        module = self.module(source)
        if module is None and self.try_depth and not self.project.is_package(source):
            self._import_external(source)
        if statement[4] == "*":
            if module is not None:
                module.module.asked.add(EVERY)
                self.frames[-1].module.stars.append(module)
            return FELL_THROUGH
        for _, name, renamed in statement[4]:
            self.store(renamed or name, self.imported(source, name))
        return FELL_THROUGH

    def _define(self, statement: f.Statement) -> Signal:
        frame = self.frames[-1]
        facts = frame.module.module.facts
        if statement[0] == "def":
            owner = frame.body_of
            self.store(facts.functions[statement[2]].name, self.define_function(statement[2], frame, owner))
        else:
            self.store(facts.classes[statement[2]].name, self.define_class(statement[2], frame))
        return FELL_THROUGH
