"""The result of a resolution: entries with their sources, and answers to what the linker and the reports ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.entries import describe_entries, describe_unresolved
from sgl_graph.analyzer.static.config.evaluator import Evaluator
from sgl_graph.analyzer.static.config.heap_view import View, reachable
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.journal import Level, Raised
from sgl_graph.analyzer.static.config.machine import Unsupported
from sgl_graph.analyzer.static.config.possibilities import fuzzy, unknown
from sgl_graph.analyzer.static.config.program import ClassV, Frame, Instance
from sgl_graph.analyzer.static.config.protocol import (
    UNKNOWN,
    Buckets,
    Constant,
    Entry,
    InstanceOf,
    Starts,
    Unresolved,
    Values,
)
from sgl_graph.analyzer.static.config.sizes import configured_sizes
from sgl_graph.analyzer.static.config.values import ABSENT, Value

_QUESTION_STEPS = 60_000


class ResolvedConfiguration:
    """One resolved launch; see `protocol.Configuration`. Questions are answered in a scratch state and change nothing."""

    def __init__(self, evaluator: Evaluator, record: Instance | None, starts: Starts, launch: Launch) -> None:
        self.evaluator = evaluator
        self.record = record
        self.starts = starts
        self.launch = launch
        self.view = View()
        self._answers: dict[tuple[object, ...], Values | None] = {}

    # -- what the reports show

    @cached_property
    def entries(self) -> Sequence[Entry]:
        """Every configuration value, in order of name."""
        return describe_entries(self)

    @cached_property
    def unresolved(self) -> Sequence[Unresolved]:
        """Values that a launch or a further fact would settle, those that decide paths first."""
        return describe_unresolved(self)

    @cached_property
    def buckets(self) -> Sequence[Buckets]:
        """Configured capture sizes by phase."""
        return configured_sizes(self)

    # -- questions

    def result(self, name: str) -> Value:
        """What resolution decided for a field of the arguments; ABSENT when there is no such field."""
        if self.record is None:
            return ABSENT
        record = self.record
        if self.evaluator.unfinished:
            return self._unfinished(name)
        decide = self._result_function
        if decide is not ABSENT:
            return self.ask(lambda: self.evaluator.call(decide, [record, name], {}))
        return self.ask(lambda: self.evaluator.get(record, name))

    def _unfinished(self, name: str) -> Value:
        """Where resolution was given up, only what the command gives is known, and that may be changed still."""
        assert self.record is not None
        raw = self.record.attrs.get(name, ABSENT)
        if raw is ABSENT:
            return ABSENT
        declarations = self.evaluator.declarations
        given = declarations is not None and name in declarations.given
        return raw if given else fuzzy((raw,), True, frozenset({"model"}))

    @cached_property
    def _result_function(self) -> Value:
        from sgl_graph.analyzer.static.config.resolve import lookup

        return lookup(self.evaluator, profile.RESULT_FUNCTION)

    def ask(self, question: Callable[[], Value]) -> Value:
        """Evaluate something in a scratch state: what it writes is undone."""
        machine = self.evaluator
        depth, frames, limit, control = len(machine.levels), len(machine.frames), machine.limit, machine.control
        machine.levels.append(Level())
        machine.limit = machine.steps + _QUESTION_STEPS
        try:
            return question()
        except (Raised, Unsupported, RecursionError):
            return unknown(["evaluation"], machine.place())
        finally:
            machine.abandon(depth)
            del machine.frames[frames:]
            machine.limit, machine.control = limit, control

    @cached_property
    def objects(self) -> dict[str, list[Instance]]:
        """Objects of the final heap by the qualified name of their class."""
        roots: list[Value] = [self.record] if self.record is not None else []
        for module in self.evaluator.modules.values():
            roots += module.names.values()
        found: dict[str, list[Instance]] = {}
        for item in reachable(roots):
            for cls in self.evaluator.ancestry(item.cls):
                if isinstance(cls, ClassV):
                    found.setdefault(cls.qualname, []).append(item)
        return found

    def field(self, class_qualname: str, attribute: str) -> Values | None:
        """What an attribute holds over all objects of a configuration class; None for other classes."""
        key = ("field", class_qualname, attribute)
        if key not in self._answers:
            items = self.objects.get(class_qualname)
            self._answers[key] = None
            if items:
                found = [self.ask(lambda item=item: self.evaluator.get(item, attribute)) for item in items]  # type: ignore[misc]
                kept = [value for value in found if value is not ABSENT]
                if kept:
                    values = self.view.values(fuzzy(kept, False, frozenset()))
                    self._answers[key] = self._marked(class_qualname, attribute, values)
        return self._answers[key]

    def only(self, class_qualname: str) -> InstanceOf | None:
        """The object of a configuration class, where there is exactly one."""
        items = self.objects.get(class_qualname, ())
        if len(items) != 1:
            return None
        found = self.view.values(items[0]).constants
        return found[0] if len(found) == 1 and isinstance(found[0], InstanceOf) else None

    def _marked(self, class_qualname: str, attribute: str, values: Values) -> Values:
        if class_qualname != profile.ARGUMENT_CLASS and not values.automatic:
            declared = self.dispatching
            if attribute in declared and {"device", "model"} & set(values.depends):
                return replace(values, automatic=True)
        return values

    @cached_property
    def dispatching(self) -> frozenset[str]:
        """Arguments that choose among alternatives and that the command leaves open."""
        declarations = self.evaluator.declarations
        if declarations is None:
            return frozenset()
        return frozenset(
            item.dest
            for item in declarations.items
            if item.dest not in declarations.given and item.choices() is not None
        )

    def attribute(self, instance: InstanceOf, name: str) -> Values | None:
        """What an attribute of one object holds; None when it has none."""
        key = ("attribute", instance, name)
        if key not in self._answers:
            value = self.ask(lambda: self.evaluator.get(self.view.back(instance), name))
            self._answers[key] = None if value is ABSENT else self._marked("", name, self.view.values(value))
        return self._answers[key]

    def is_instance(self, instance: InstanceOf, class_qualname: str) -> bool | None:
        """Whether one object is an instance of a class of the checkout."""
        from sgl_graph.analyzer.static.config.resolve import lookup

        cls = lookup(self.evaluator, class_qualname)
        if cls is ABSENT:
            return None
        verdict = self.ask(lambda: self.evaluator.is_instance(self.view.back(instance), cls))
        return verdict if isinstance(verdict, bool) else None

    def environment(self, name: str) -> Values:
        """The value of an environment variable after resolution (None when unset)."""
        table = self.evaluator.facts.environment
        value = table.items.get(name, ABSENT)
        if value is ABSENT:
            return UNKNOWN if table.opaque is not None else Values((None,), True)
        values = self.view.values(value)
        if ABSENT in getattr(value, "options", ()):
            values = replace(values, constants=(*values.constants, None))
        return values

    def module_attribute(self, module: str, name: str) -> Values | None:
        """What a module-level name is bound to, None when the module does not bind it."""
        key = ("module", module, name)
        if key not in self._answers:
            found = self.evaluator.module(module)
            if found is None:
                self._answers[key] = None
            else:
                value = self.ask(lambda: self.evaluator.module_attribute(found, name))
                self._answers[key] = None if value is ABSENT else self.view.values(value)
        return self._answers[key]

    def call(self, qualname: str, arguments: Sequence[Constant] = ()) -> Values | None:
        """What a function of the checkout returns for constant arguments; None if it has no such function."""
        key = ("call", qualname, *arguments)
        if key not in self._answers:
            from sgl_graph.analyzer.static.config.resolve import lookup

            function = lookup(self.evaluator, qualname)
            if function is ABSENT:
                self._answers[key] = None
            else:
                given = [self.view.back(argument) for argument in arguments]
                value = self.ask(lambda: self._call_in_module(qualname, function, given))
                self._answers[key] = self.view.values(value)
        return self._answers[key]

    def _call_in_module(self, qualname: str, function: Value, given: list[Value]) -> Value:
        module = self.evaluator.module(qualname.split(":")[0])
        assert module is not None
        self.evaluator.frames.append(Frame(module, None, qualname))
        return self.evaluator.call(function, given, {})

    def evaluate_function(self, qualname: str, arguments: Sequence[Constant] = ()) -> Values:
        """As `call`, UNKNOWN instead of None."""
        return self.call(qualname, arguments) or UNKNOWN
