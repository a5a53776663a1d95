"""The interpreter: activations, modules, and the fixpoint over them. Statements and expressions have modules of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from sgl_graph.analyzer.static.extract.facts import NESTS, Expression
from sgl_graph.analyzer.static.link.annotations import Annotations, is_plain
from sgl_graph.analyzer.static.link.assignments import Assignments
from sgl_graph.analyzer.static.link.attributes import Attributes
from sgl_graph.analyzer.static.link.calls import Calls
from sgl_graph.analyzer.static.link.cells import Cell
from sgl_graph.analyzer.static.link.class_level import ClassLevel
from sgl_graph.analyzer.static.link.combining import Combining
from sgl_graph.analyzer.static.link.construction import Construction
from sgl_graph.analyzer.static.link.definitions import Definitions
from sgl_graph.analyzer.static.link.displays import Displays
from sgl_graph.analyzer.static.link.effects import Effects
from sgl_graph.analyzer.static.link.expressions import Expressions
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.implicit import ImplicitCalls
from sgl_graph.analyzer.static.link.imports import Imports
from sgl_graph.analyzer.static.link.loops import Loops
from sgl_graph.analyzer.static.link.models import Models
from sgl_graph.analyzer.static.link.narrowing import Narrowing
from sgl_graph.analyzer.static.link.objects import Pattern
from sgl_graph.analyzer.static.link.precedence import Withheld
from sgl_graph.analyzer.static.link.replay import FIRST_RUNS, Replay
from sgl_graph.analyzer.static.link.statements import Statements
from sgl_graph.analyzer.static.link.stores import Stores
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    JUST_NONE,
    NOTHING,
    UNKNOWN,
    FunctionValue,
    ModuleValue,
    Value,
    Values,
)
from sgl_graph.analyzer.static.link.world import World

#: A callee is interpreted at once down to this depth of calls, then queued.
_DEEPEST = 28
#: Interpretations of one activation beyond which it is left as it is and recorded as a problem.
_MOST_RUNS = 250


class Interpreter:
    """Interprets activations until no cell grows."""

    def __init__(
        self, world: World, on_progress: Callable[[int], None] | None = None, entries: Iterable[str] = ()
    ) -> None:
        self.world = world
        self.withheld = Withheld(world, entries)
        self.attributes = Attributes(self)
        self.class_level = ClassLevel(self)
        self.stores = Stores(self)
        self.combining = Combining(self)
        self.displays = Displays(self)
        self.calls = Calls(self)
        self.construction = Construction(self)
        self.implicit = ImplicitCalls(self)
        self.models = Models(self)
        self.expressions = Expressions(self)
        self.assignments = Assignments(self)
        self.narrowing = Narrowing(self)
        self.imports = Imports(self)
        self.loops = Loops(self)
        self.statements = Statements(self)
        self.definitions = Definitions(self)
        self.annotations = Annotations(self)
        self.effects = Effects(self)
        self.replay = Replay(self)
        self.frame: Frame | None = None
        self.line = 0
        self._patterns: dict[tuple[int, str, str], Pattern] = {}
        self._depth = 0
        self._modules: dict[str, ModuleValue] = {}
        self._module_activations: dict[str, Activation] = {}
        self._on_progress = on_progress
        self._runs = 0

    # -- modules

    def module_value(self, name: str) -> ModuleValue:
        known = self._modules.get(name)
        if known is None:
            known = self._modules[name] = ModuleValue(name)
        return known

    def global_cell(self, module: str, name: str) -> Cell:
        table = self.world.globals.setdefault(module, {})
        cell = table.get(name)
        if cell is None:
            cell = table[name] = Cell()
        return cell

    def ensure_module(self, name: str) -> None:
        """Interpret a module's top level once, as an import would."""
        if name in self._module_activations:
            return
        module = self.world.project.module(name)
        if module is None:
            return
        if module.facts.error is not None:
            self.world.problems[module.path] = module.facts.error
        activation = Activation(module, None, None, None)
        self._module_activations[name] = activation
        self.world.globals.setdefault(name, {})
        self.world.activations[("module", name)] = activation
        # What a module imports at its top is most often read soon: parsers may begin with it meanwhile.
        self.world.project.prefetch(module.imports())
        self.interpret(activation)

    def is_loaded(self, name: str) -> bool:
        """Whether a module was interpreted."""
        return name in self._module_activations

    def loaded_modules(self) -> Iterable[str]:
        """Modules interpreted so far."""
        return self._module_activations

    def module_activation(self, name: str) -> Activation | None:
        return self._module_activations.get(name)

    # -- activations

    def activation(self, function: FunctionValue, receiver: Value | None, context: Hashable) -> Activation:
        key = (function, receiver, context)
        known = self.world.activations.get(key)
        if known is None:
            known = self.world.activations[key] = Activation(function.module, function, receiver, context)
        return known

    def demand(self, activation: Activation) -> None:
        """Have an activation interpreted that was called: now if it waits and the stack allows, else later."""
        if activation.runs and (not activation.queued or activation.running):
            return
        if self._depth < _DEEPEST:
            activation.queued = False
            self.interpret(activation)
        else:
            self.world.heap.agenda.add(activation)

    def interpret(self, activation: Activation) -> None:
        """One interpretation of a body."""
        if activation.runs >= _MOST_RUNS:
            self.world.problems.setdefault(
                activation.module.path, f"{activation.qualname}: left after {_MOST_RUNS} interpretations"
            )
            return
        heap = self.world.heap
        previous, heap.current = heap.current, activation
        activation.runs += 1
        activation.running = True
        activation.starved = False
        self._runs += 1
        if self._on_progress is not None and self._runs % 500 == 0:
            self._on_progress(self._runs)
        held_frame, held_line = self.frame, self.line
        held_log, heap.log = heap.log, None
        self._depth += 1
        try:
            self._run(activation)
        finally:
            self._depth -= 1
            activation.running = False
            if activation.runs == 1:
                heap.agenda.finished(activation)
            heap.current = previous
            heap.log = held_log
            self.frame, self.line = held_frame, held_line

    def _run(self, activation: Activation) -> None:
        function = activation.function
        if function is None:
            frame = self.frame = Frame(activation, False)
            self.statements.block(frame, activation.module.facts.body)
            return
        frame = self.frame = Frame(activation, self.captures(function))
        if activation.runs > FIRST_RUNS and not self.world.survey:
            if activation.memories is None:
                activation.memories = {}
            frame.memories = activation.memories
        for parameter in function.facts.parameters:
            values = self.world.heap.read(activation.parameter(parameter.name))
            if parameter.annotation is not None and (not values or UNKNOWN in values):
                alone = not values or values == ANYTHING
                if alone or is_plain(parameter.annotation):
                    declared = self.annotations.types(parameter.annotation, activation, function.owner)
                    values = (values - ANYTHING) | declared if declared else values
            if not values and activation.pessimistic:
                values = ANYTHING
            self.assignments.bind(frame, parameter.name, values)
        body = function.module.function_body(function.index)
        if self.statements.block(frame, body) and not activation.yields.peek():
            self.world.heap.write(activation.returns, JUST_NONE)

    def captures(self, function: FunctionValue) -> bool:
        """Whether nested functions may read this function's locals."""
        return bool(function.facts.flags & NESTS)

    # -- fixpoint

    def settle(self) -> None:
        """Interpret until nothing grows; then count what found nothing as unknown, and go on until nothing changes."""
        heap = self.world.heap
        while True:
            while (activation := heap.agenda.take()) is not None:
                self.interpret(activation)
            if not self.world.survey and (self.effects.follow() or self.withheld.release(final=False)):
                continue
            starved = [a for a in self.world.activations.values() if a.starved and not a.pessimistic]
            if not starved:
                if self.withheld.release(final=True):
                    continue
                return
            for activation in starved:
                activation.pessimistic = True
                activation.memories = None
                heap.agenda.add(activation)

    def starved(self) -> Values:
        """What a read yields that found nothing: nothing yet, or anything once nothing more will come."""
        activation = self.world.heap.current
        if activation is None:
            return ANYTHING
        if activation.pessimistic:
            return ANYTHING
        activation.starved = True
        return NOTHING

    def pattern(self, e: Expression, prefix: str, suffix: str) -> Pattern:
        """The interned pattern of an f-string."""
        key = (id(e), prefix, suffix)
        known = self._patterns.get(key)
        if known is None:
            known = self._patterns[key] = Pattern(prefix, suffix)
        return known

    def keeps(self, path: str) -> bool:
        """Whether results of calls outside the checkout are followed for this access path."""
        return path.startswith(self.world.kept_externals)
