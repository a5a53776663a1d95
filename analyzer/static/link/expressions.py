"""Expressions: what each may be."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link.frame import SETTLED, Frame
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.objects import Builtin, Container, Generated, Pattern, Scanned
from sgl_graph.analyzer.static.link.rowless import without_rows
from sgl_graph.analyzer.static.link.selection import is_selection, select
from sgl_graph.analyzer.static.link.sets import traits
from sgl_graph.analyzer.static.link.truth import compare, negate, truth_of
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    FALSE,
    JUST_NONE,
    NOTHING,
    TRUE,
    ClassValue,
    Constant,
    EnumMember,
    External,
    ImportReference,
    Instance,
    ModuleValue,
    Unknown,
    Value,
    Values,
    depends_of,
    just,
)
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_BUILTINS = frozenset(dir(builtins))
_MOST_TEXTS = 24
_LONGEST_TEXT = 2000


class Expressions:
    """Evaluates expressions in a frame."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        #: By identity: a module keeps its facts while it is linked.
        self._constants: dict[int, Values] = {}
        self._references: dict[tuple[str, str | None], ImportReference] = {}
        self._table: dict[str, Callable[[Frame, Expression], Values]] = {
            "n": self._name, "v": self._constant, "a": self._attribute, "c": self._call, "s": self._subscript,
            "f": self._format, "l": self._lambda, "i": self._conditional, "bo": self._boolean, "u": self._unary,
            "b": self._binary, "cmp": self._compare, "t": interpreter.displays.sequence, "L": interpreter.displays.sequence, "S": interpreter.displays.sequence,
            "d": interpreter.displays.mapping, "w": self._walrus, "C": interpreter.displays.comprehension, "y": self._yield, "yf": self._yield_from,
            "aw": self._await, "*": self._starred, "sl": self._slice, "x": self._nothing_known,
        }  # fmt: skip

    def eval(self, frame: Frame, e: Expression) -> Values:
        """What the expression may be; nothing while nothing has flowed there."""
        return self._table[e[0]](frame, e)

    def reference(self, module: str, name: str | None) -> ImportReference:
        """The interned reference of an import; `name` None for a whole module."""
        key = (module, name)
        known = self._references.get(key)
        if known is None:
            known = self._references[key] = ImportReference(module, name)
        return known

    # -- names

    def _name(self, frame: Frame, e: Expression) -> Values:
        name = e[1]
        values = frame.environment.get(name)
        if values is not None:
            return values if name not in frame.imports else self._in.attributes.resolve(values)
        activation = frame.activation
        if frame.cls is None and frame.locals is not None and name in frame.locals:
            if frame.captured:
                return self._in.attributes.resolve(self._in.world.heap.read(activation.variable(name)))
            return NOTHING
        return self._outer(name, activation)

    def _outer(self, name: str, activation: Activation) -> Values:
        heap = self._in.world.heap
        parent = activation.parent
        if parent is None and activation.function is not None:
            parent = activation.function.parent
        while parent is not None:
            if parent.function is not None and name in parent.function.facts.locals:
                return self._in.attributes.resolve(heap.read(parent.variable(name)))
            parent = parent.parent
        return self._global(name, activation.module.name)

    def _global(self, name: str, module: str) -> Values:
        world = self._in.world
        settled = world.oracle.module_attribute(self._in, module, name)
        if settled is not None:
            return settled
        cell = world.globals.get(module, {}).get(name)
        if cell is not None:
            values = self._in.attributes.resolve(world.heap.read(cell))
            if values:
                return values
        if name in _BUILTINS:
            return just(Builtin.of(name))
        if name == "__name__":
            return just(Constant.of(module))
        if name in ("__file__", "__doc__", "__spec__"):
            return ANYTHING
        if cell is None:
            world.heap.read(self._in.global_cell(module, name))
        return self._in.starved()

    def global_lookup(self, e: Expression, activation: Activation) -> Values:
        """A dotted name as an annotation means it: enclosing scopes and module level only."""
        if e[0] == "n":
            return self._outer(e[1], activation)
        if e[0] == "a":
            base = self.global_lookup(e[1], activation)
            return self._in.attributes.get(base, e[2]) if base else NOTHING
        return NOTHING

    # -- simple forms

    def _constant(self, frame: Frame, e: Expression) -> Values:
        known = self._constants.get(id(e))
        if known is None:
            known = self._constants[id(e)] = just(Constant.of(e[1]))
        return known

    def _nothing_known(self, frame: Frame, e: Expression) -> Values:
        return ANYTHING

    def _attribute(self, frame: Frame, e: Expression) -> Values:
        base = self.eval(frame, e[1])
        self._in.line = e[3]
        values = self._in.attributes.get(base, e[2], self.named(frame, base, e[1]))
        settled = frame.environment.get(SETTLED)
        return self._in.narrowing.settled(frame, e, values, settled) if settled else values

    def named(self, frame: Frame, base: Values, e: Expression) -> bool:
        """Whether the source names the owner of an attribute from an import on; true where that makes no difference."""
        if not base or not traits(base).externals:
            return True
        while e[0] == "a":
            e = e[1]
        if e[0] != "n":
            return False
        held = frame.environment.get(e[1])
        if held is None:
            cell = self._in.world.globals.get(frame.activation.module.name, {}).get(e[1])
            held = cell.peek() if cell is not None else NOTHING
            if not held:
                return True
        return any(isinstance(value, (ImportReference, ModuleValue)) for value in held) or any(
            isinstance(value, External) and "." not in value.path for value in held
        )

    def _call(self, frame: Frame, e: Expression) -> Values:
        if is_selection(e):
            selected = select(self._in, frame, e)
            if selected is not None:
                return selected
        return self._in.calls.evaluate(frame, e)

    def _subscript(self, frame: Frame, e: Expression) -> Values:
        owner = self.eval(frame, e[1])
        if len(e[2]) == 1 and e[2][0][0] == "sl":
            parts = e[2][0][1:]
            bounds = [self.eval(frame, part) if part is not None else JUST_NONE for part in parts]
            self._in.line = e[3]
            return self._in.models.slice(frame, e, owner, bounds)
        keys = self.index(frame, e[2])
        self._in.line = e[3]
        values = self._in.models.load_item(frame, owner, keys)
        return without_rows(self._in.world, values) if frame.rowless and render(e) in frame.rowless else values

    def index(self, frame: Frame, parts: list[Expression]) -> Values:
        """What a subscript's index may be."""
        if len(parts) == 1:
            return self.eval(frame, parts[0])
        for part in parts:
            self.eval(frame, part)
        return ANYTHING

    def _slice(self, frame: Frame, e: Expression) -> Values:
        for part in e[1:]:
            if part is not None:
                self.eval(frame, part)
        return ANYTHING

    def _format(self, frame: Frame, e: Expression) -> Values:
        texts = [""]
        prefix: str | None = None
        suffix = ""
        depends: tuple[str, ...] = ()
        for part in e[1]:
            values = self.eval(frame, part)
            constants = sorted(
                str(v.value) if isinstance(v, Constant) else v.name
                for v in values
                if isinstance(v, (Constant, EnumMember))
            )
            scanned = frozenset(v for v in values if isinstance(v, Scanned) and v.kind == "name")
            if scanned:
                return scanned  # the name of a submodule, however it is put together
            if len(constants) != len(values) or not values or len(constants) * len(texts) > _MOST_TEXTS:
                if prefix is None:
                    prefix = texts[0] if len(texts) == 1 else ""
                depends += depends_of(values)
                texts, suffix = [""], ""
                continue
            texts = [text + constant for text in texts for constant in constants]
            if any(len(text) > _LONGEST_TEXT for text in texts):
                return ANYTHING
            suffix = texts[0] if len(texts) == 1 else ""
        if prefix is None:
            return frozenset(Constant.of(text) for text in texts)
        if depends:
            return just(Unknown.of(depends))
        return just(self._in.pattern(e, prefix, suffix)) if prefix or suffix else ANYTHING

    def _lambda(self, frame: Frame, e: Expression) -> Values:
        return just(self._in.definitions.make(frame, e[1]))

    def _walrus(self, frame: Frame, e: Expression) -> Values:
        values = self.eval(frame, e[2])
        self._in.assignments.bind(frame, e[1], values)
        return values

    def _await(self, frame: Frame, e: Expression) -> Values:
        return self.eval(frame, e[1])

    def _starred(self, frame: Frame, e: Expression) -> Values:
        return self._in.models.iterate(self.eval(frame, e[1]))

    def _yield(self, frame: Frame, e: Expression) -> Values:
        values = self.eval(frame, e[1]) if e[1] is not None else NOTHING
        self._in.world.heap.write(frame.activation.yields, values or ANYTHING)
        return ANYTHING

    def _yield_from(self, frame: Frame, e: Expression) -> Values:
        values = self.eval(frame, e[1])
        self._in.world.heap.write(frame.activation.yields, self._in.models.iterate(values))
        found: set[Value] = set()
        for value in values:
            if isinstance(value, Generated):
                found |= self._in.world.heap.read(value.activation.returns)
        return frozenset(found) or ANYTHING

    # -- operators

    def _conditional(self, frame: Frame, e: Expression) -> Values:
        truth, depends = truth_of(self.eval(frame, e[1]))
        survey = self._in.world.survey
        if truth is None:
            self._in.starved()
            if not survey and not frame.activation.pessimistic:
                return NOTHING
            truth = Truth.UNKNOWN
        found: Values = NOTHING
        held = frame.guards
        environment = frame.environment
        if truth is not Truth.FALSE or survey:
            frame.guards = self._in.world.guard(held, e[1], False, frame.file, self._in.line, truth, depends)
            frame.environment = dict(environment)
            self._in.narrowing.narrow(frame, e[1], True)
            found = self.eval(frame, e[2])
        if truth is not Truth.TRUE or survey:
            inverse = Truth.TRUE if truth is Truth.FALSE else Truth.FALSE if truth is Truth.TRUE else truth
            frame.guards = self._in.world.guard(held, e[1], True, frame.file, self._in.line, inverse, depends)
            frame.environment = dict(environment)
            self._in.narrowing.narrow(frame, e[1], False)
            found = found | self.eval(frame, e[3])
        frame.guards = held
        frame.environment = environment
        return found

    def _boolean(self, frame: Frame, e: Expression) -> Values:
        left = self.eval(frame, e[2])
        truth, depends = truth_of(left)
        survey = self._in.world.survey
        if truth is None:
            self._in.starved()
            if not survey and not frame.activation.pessimistic:
                return NOTHING
            truth = Truth.UNKNOWN
        conjunction = e[1] == "and"
        stops = Truth.FALSE if conjunction else Truth.TRUE
        if truth is stops and not survey:
            return left
        held = frame.guards
        environment = frame.environment
        shown = truth
        if not conjunction:
            shown = Truth.TRUE if truth is Truth.FALSE else Truth.FALSE if truth is Truth.TRUE else truth
        frame.guards = self._in.world.guard(held, e[2], not conjunction, frame.file, self._in.line, shown, depends)
        frame.environment = dict(environment)
        self._in.narrowing.narrow(frame, e[2], conjunction)
        right = self.eval(frame, e[3])
        frame.guards = held
        frame.environment = environment
        if truth is stops:
            return left
        if truth is not Truth.UNKNOWN:
            return right
        # The left side is the result only where it stops the evaluation.
        kept: set[Value] = set()
        for value in left:
            if isinstance(value, Constant):
                if bool(value.value) != conjunction:
                    kept.add(value)
            elif not conjunction or not isinstance(value, (ClassValue, Instance)):
                kept.add(value)
        # `unknown and False` is false whichever way; `unknown and True` is unknown.
        if conjunction and any(isinstance(v, Unknown) for v in kept) and right == just(FALSE):
            return right
        if not conjunction and right == just(TRUE) and all(isinstance(v, Unknown) for v in kept):
            return right
        return frozenset(kept) | right

    def _unary(self, frame: Frame, e: Expression) -> Values:
        values = self.eval(frame, e[2])
        if e[1] == "not":
            return negate(values)
        if e[1] == "-":
            found: set[Value] = set()
            for value in values:
                if isinstance(value, Constant) and type(value.value) in (int, float, bool):
                    found.add(Constant.of(-value.value, value.origin))  # type: ignore[operator]
                else:
                    return ANYTHING
            return frozenset(found)
        return ANYTHING if values else NOTHING

    def _binary(self, frame: Frame, e: Expression) -> Values:
        left = self.eval(frame, e[2])
        right = self.eval(frame, e[3])
        scanned = frozenset(v for v in (*left, *right) if isinstance(v, Scanned) and v.kind == "name")
        if scanned and e[1] == "+":
            return scanned
        if e[1] == "|" and left and right and all(map(_is_type, (*left, *right))):
            return self._union_of(frame, e, left | right)
        return self._in.combining.binary(frame, e, e[1], left, right)

    def _union_of(self, frame: Frame, e: Expression, types: Values) -> Values:
        """`A | B` of classes: what `isinstance` takes for any of them."""
        union = self._in.world.container("union", (frame.activation, id(e)))
        for value in types:
            members = self._in.world.all_elements(value) if isinstance(value, Container) else just(value)
            self._in.world.put(union, None, members)
        return just(union)

    def _compare(self, frame: Frame, e: Expression) -> Values:
        left = self.eval(frame, e[1])
        results: list[Values] = []
        for op, right_expression in e[2]:
            right = self.eval(frame, right_expression)
            if op in ("in", "not in"):
                found = self._in.models.contains(left, right)
                results.append(negate(found) if op == "not in" else found)
            else:
                results.append(compare(op, left, right))
            left = right
        if len(results) == 1:
            return results[0]
        truths = [truth_of(result)[0] for result in results]
        if Truth.FALSE in truths:
            return just(FALSE)
        if all(truth is Truth.TRUE for truth in truths):
            return just(TRUE)
        depends = depends_of(v for result in results for v in result)
        return NOTHING if None in truths else just(Unknown.of(depends))


def _is_type(value: Value) -> bool:
    return isinstance(value, (ClassValue, Builtin)) or (isinstance(value, Container) and value.kind == "union")


__all__ = ["Expressions", "External", "Pattern"]
