"""Calls: what a callee is, how arguments reach parameters, and the record of each call expression."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import GENERATOR, Expression
from sgl_graph.analyzer.static.link.arguments import Arguments, Spread
from sgl_graph.analyzer.static.link.binding import bind
from sgl_graph.analyzer.static.link.factories import Factories, told
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.objects import Builtin, Configured, Container, Generated, Method, Scanned, Super
from sgl_graph.analyzer.static.link.sets import ordered
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    NOTHING,
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    Values,
    Wrapped,
    is_named,
    just,
)
from sgl_graph.analyzer.static.link.world import CallRecord
from sgl_graph.analyzer.static.linked import Known

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_CONTEXTUAL = (Constant, EnumMember)
#: Constant arguments beyond this many combinations share one context.
_MOST_CONTEXTS = 24
_ENTERING = ("enter_context", "enter_async_context")


from sgl_graph.analyzer.static.link.construction import is_torch_module


class Calls:
    """Evaluates call expressions."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world
        self._contexts: dict[FunctionValue, set[Hashable]] = {}
        self._factories = Factories()
        self._generated: dict[tuple[Activation, bool], Generated] = {}
        #: Partials and callable objects between the call being made and the function that it will reach.
        self._unwrapping: frozenset[Value] = frozenset()

    # -- call expressions

    def evaluate(self, frame: Frame, e: Expression) -> Values:
        """A call expression: evaluate, record, return what it may yield."""
        callee_expression, line = e[1], e[3]
        receivers: Values = NOTHING
        if callee_expression[0] == "a":
            receivers = self._in.expressions.eval(frame, callee_expression[1])
            self._in.line = line
            named = self._in.expressions.named(frame, receivers, callee_expression[1])
            callees = self._in.attributes.get(receivers, callee_expression[2], named)
        else:
            callees = self._in.expressions.eval(frame, callee_expression)
        arguments = self.arguments(frame, e[2])
        self._in.line = line
        if callee_expression[0] == "a" and callee_expression[2] in _ENTERING:
            self._entered(frame, e[2])
        known = _how(callee_expression, receivers)
        record = self._world.record(frame, e, line, known, receivers=receivers)
        if not callees:
            self._escape(frame, arguments)
            return self._in.starved()
        return self.invoke_all(frame, callees, arguments, record, (frame.activation.qualname, id(e)))

    def _entered(self, frame: Frame, items: Sequence[Expression]) -> None:
        """`stack.enter_context(call())`: the inner call's value is entered."""
        for item in items:
            inner = self._world.records.get((frame.activation.qualname, id(item)))
            if inner is not None:
                inner.entered = True

    def arguments(self, frame: Frame, items: Sequence[Expression]) -> Arguments:
        """Evaluate the arguments of a call expression."""
        result = Arguments()
        for item in items:
            kind = item[0]
            if kind == "k":
                result.keywords[item[1]] = self._in.expressions.eval(frame, item[2])
            elif kind == "**":
                self._double(result, self._in.expressions.eval(frame, item[1]))
            elif kind == "*":
                self._star(result, self._in.expressions.eval(frame, item[1]))
            elif result.star:
                result.star |= self._in.expressions.eval(frame, item)
                result.spread = None
            else:
                result.positional.append(self._in.expressions.eval(frame, item))
        return result

    def _star(self, result: Arguments, values: Values) -> None:
        rows, others = self._in.models.rows(values)
        if len(rows) == 1 and not others and not result.star:
            result.positional.extend(rows[0])
            return
        result.spread = Spread(rows, self._in.models.iterate(others)) if rows and not result.star else None
        result.star |= self._in.models.iterate(values) or ANYTHING

    def _double(self, result: Arguments, values: Values) -> None:
        heap = self._world.heap
        for value in values:
            if isinstance(value, Container) and value.kind == "dict":
                for key in heap.read(self._world.keys(value)):
                    if isinstance(key, Constant) and isinstance(key.value, str):
                        known = result.keywords.get(key.value, NOTHING)
                        result.keywords[key.value] = known | self._world.element(value, key)
                result.double |= heap.read(self._world.anywhere(value))
            else:
                result.double |= ANYTHING

    def invoke_all(
        self, frame: Frame, callees: Values, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Values:
        """Call anything in `callees`."""
        if len(callees) == 1:
            (callee,) = callees
            return self.invoke(frame, callee, arguments, record, site)
        found: set[Value] = set()
        now = record.now
        for callee in ordered(callees):
            record.now = now  # the callee before may have come back here, and known this call another way
            found |= self.invoke(frame, callee, arguments, record, site)
        return frozenset(found)

    def invoke(self, frame: Frame, callee: Value, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """Call one value."""
        if isinstance(callee, FunctionValue):
            return self.function(callee, None, arguments, record, site)
        if isinstance(callee, Bound):
            return self.bound(frame, callee, arguments, record, site)
        if isinstance(callee, ClassValue):
            return self._in.construction.construct(frame, callee, arguments, record, site)
        if isinstance(callee, Builtin):
            record.add_external(f"builtins.{callee.name}")
            return self._in.models.builtin(frame, callee.name, arguments, record, site)
        if isinstance(callee, External):
            record.add_external(callee.path)
            return self._in.models.external(frame, callee.path, arguments, record, site)
        if isinstance(callee, (Instance, Configured)):
            return self._object(frame, callee, arguments, record, site)
        if isinstance(callee, Wrapped):
            if callee.kind == "contextmanager":
                inner = self._activate_all(callee.function, None, arguments, record, site)
                return frozenset(self._generator(activation, True) for activation in inner)
            return self.invoke(frame, callee.function, arguments, record, site)
        if isinstance(callee, Container):
            return self._partial(frame, callee, arguments, record, site)
        if isinstance(callee, Method):
            return self._in.models.method(frame, callee, arguments, record, site)
        if isinstance(callee, Scanned):
            self._world.unsettled_scans.setdefault(callee.package, set()).add(record.caller)
            self._escape(frame, arguments)
            return just(Unknown.of(("model",)))
        if isinstance(callee, Unknown):
            self._escape(frame, arguments)
            return just(callee)
        return ANYTHING

    # -- functions

    def bound(self, frame: Frame, callee: Bound, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """Call a function with its receiver."""
        function, receiver = callee.function, callee.receiver
        if isinstance(function, FunctionValue):
            return self.function(function, receiver, arguments, record, site)
        if isinstance(function, Wrapped) and function.kind == "contextmanager":
            inner = self._activate_all(function.function, receiver, arguments, record, site)
            return frozenset(self._generator(activation, True) for activation in inner)
        with_receiver = Arguments(
            [just(receiver), *arguments.positional],
            arguments.keywords,
            arguments.star,
            arguments.double,
            arguments.spread,
        )
        return self.invoke(frame, function, with_receiver, record, site)

    def _activate_all(
        self, function: Value, receiver: Value | None, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> list[Activation]:
        if not isinstance(function, FunctionValue):
            return []
        return [self._activate(function, receiver, arguments, record, site)]

    def function(
        self, function: FunctionValue, receiver: Value | None, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Values:
        """Call a function of the checkout: the configuration answers, or it is interpreted."""
        if not arguments.keywords and (
            receiver is None
            or isinstance(receiver, Configured)
            or (isinstance(receiver, Instance) and self._world.oracle.configures(receiver.cls.qualname))
        ):
            given = arguments.positional
            if receiver is not None:
                given = [just(receiver), *given]
            settled = self._world.oracle.call(self._in, function.qualname, given)
            if settled is not None:
                record.targets.setdefault(function.qualname, record.known)
                return settled
        activation = self._activate(function, receiver, arguments, record, site)
        if function.facts.flags & GENERATOR:
            return just(self._generator(activation, False))
        result = self._world.heap.read(activation.returns)
        if activation.runs == 0:
            self._world.heap.volatile = True  # once it was interpreted, finding nothing means something else
        if function.facts.returns is not None and (not result or result == ANYTHING):
            declared = self._in.annotations.types(function.facts.returns, activation, function.owner)
            if not result and any(type(v) is Instance and self._in.construction.keeps(v.cls) for v in declared):
                return self._in.starved()  # which of the objects that the class keeps, its registry tells
            if declared and (result or activation.runs):
                return result | declared
        if not result and activation.runs == 0:
            self._in.starved()
        return result

    def _generator(self, activation: Activation, context: bool) -> Generated:
        key = (activation, context)
        known = self._generated.get(key)
        if known is None:
            known = self._generated[key] = Generated(activation, context)
        return known

    def _activate(
        self, function: FunctionValue, receiver: Value | None, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Activation:
        record.add_target(function.qualname)
        self._world.closures.called(function, record)
        context: Hashable = None
        if self._factories.is_factory(function):
            others = told(self._world.heap.current, arguments)
            context = ("factory", site, self._inside(), *self._drafts(arguments), *others)
            self._world.closures.made(site, record)
        elif not arguments.star and not arguments.double:
            context = self._constants(function, arguments)
        if isinstance(receiver, Instance) and receiver.fuzzy:
            receiver = Instance.of(receiver.cls)
        self_like = receiver
        positional = arguments.positional
        if receiver is None and function.owner is not None and positional and _is_method(function):
            # `Base.method(self, ...)`: the first argument is the receiver.
            exact = [v for v in positional[0] if isinstance(v, (Instance, EnumMember))]
            if len(exact) == len(positional[0]) == 1:
                self_like = exact[0]
                positional = positional[1:]
                receiver = self_like
        activation = self._in.activation(function, self_like, context)
        if self._world.sides.apart and not self._world.survey:
            self._world.sides.called(activation, self._world.heap.current, record)
        bind(self._world, activation, receiver, positional, arguments)
        self.demand(activation)
        return activation

    def demand(self, activation: Activation) -> None:
        """Have a callee interpreted; what is being unwrapped ends there."""
        held, self._unwrapping = self._unwrapping, frozenset()
        self._in.demand(activation)
        self._unwrapping = held

    def _drafts(self, arguments: Arguments) -> tuple[Hashable, ...]:
        """Arguments that stand for one side of a launch that speculates: what a function does hangs on its side too."""
        sides = self._world.sides
        return sides.contexts(arguments) if sides.apart else ()

    def _inside(self) -> Hashable:
        """What tells the activation at work apart: closures made for one wrapper are not those of another."""
        current = self._world.heap.current
        if current is None:
            return None
        if isinstance(current.receiver, Instance) and current.receiver.place is not None:
            return current.receiver
        if isinstance(current.context, tuple) and current.context[:1] == ("factory",):
            site: Hashable = current.context[1]
            return site
        return None

    def _constants(self, function: FunctionValue, arguments: Arguments) -> Hashable:
        """The arguments that are one constant, as a context: what a function does often hangs on a name or a flag."""
        found: list[Hashable] = list(self._drafts(arguments))
        for position, values in enumerate(arguments.positional):
            if len(values) == 1:
                (value,) = values
                if isinstance(value, _CONTEXTUAL) or is_named(value):
                    found.append((position, value))
        for name, values in arguments.keywords.items():
            if len(values) == 1:
                (value,) = values
                if isinstance(value, _CONTEXTUAL) or is_named(value):
                    found.append((name, value))
        if not found:
            return None
        seen = self._contexts.setdefault(function, set())
        context = tuple(found)
        if context not in seen:
            if len(seen) >= _MOST_CONTEXTS:
                return None
            seen.add(context)
        return context

    def _object(
        self, frame: Frame, value: Instance | Configured, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Values:
        found: set[Value] = set()
        concrete: list[Instance | Configured] = [value]
        if isinstance(value, Instance):
            concrete = list(self._world.concrete(value))
        held = self._unwrapping
        for item in concrete:
            if item in held:
                continue  # its `__call__` is an object whose `__call__` is the first one
            self._unwrapping = held | {item}
            callees = self._in.class_level.find(item.cls, item, "__call__")
            if not callees and is_torch_module(item.cls):
                callees = self._in.attributes.get(just(item), "forward")
            for callee in callees:
                found |= self.invoke(frame, callee, arguments, record, site)
            if not callees:
                found |= ANYTHING
        self._unwrapping = held
        return frozenset(found)

    def _partial(
        self, frame: Frame, value: Container, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Values:
        if value.kind == "sequential":
            steps = self._world.all_elements(value)
            return self.invoke_all(frame, steps, Arguments([ANYTHING]), record, (site, value.serial))
        if value.kind not in ("partial", "partialmethod"):
            return ANYTHING
        if value in self._unwrapping:
            return NOTHING  # a partial of a partial of itself calls nothing that the outer one does not
        held = self._unwrapping
        self._unwrapping = held | {value}
        try:
            return self._call_partial(frame, value, arguments, record, site)
        finally:
            self._unwrapping = held

    def _call_partial(
        self, frame: Frame, value: Container, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Values:
        heap = self._world.heap
        count = value.length or 0
        stored = [heap.read(heap.cell(("partial", value, i))) for i in range(count)]
        keywords: dict[str, Values] = {}
        for name in heap.read(heap.cell(("partial-names", value))):
            if isinstance(name, Constant) and isinstance(name.value, str):
                keywords[name.value] = heap.read(heap.cell(("partial", value, name.value)))
        merged = Arguments(
            [*stored, *arguments.positional],
            {**keywords, **arguments.keywords},
            arguments.star,
            arguments.double,
            arguments.spread,
        )
        callees = self._world.element(value, Constant.of("func"))
        found: set[Value] = set()
        for callee in callees:
            found |= self.invoke(frame, callee, merged, record, (site, value.serial))
        return frozenset(found)

    def _escape(self, frame: Frame, arguments: Arguments) -> None:
        self._in.implicit.escape(frame, arguments.every())


def _how(callee: Expression, receivers: Values) -> Known:
    if callee[0] == "s" or (callee[0] == "c" and callee[1][0] == "a" and callee[1][2] == "get"):
        return Known.REGISTRY
    if callee[0] == "a":
        if any(isinstance(v, Instance) and v.fuzzy for v in receivers):
            return Known.OVERRIDE
        if any(isinstance(v, (Instance, Super, Configured, EnumMember)) for v in receivers):
            return Known.TYPE
    return Known.DIRECT


def _is_method(function: FunctionValue) -> bool:
    parameters = function.facts.parameters
    return bool(parameters) and parameters[0].name == "self"
