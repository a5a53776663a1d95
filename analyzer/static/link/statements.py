"""Statements: control flow with three-valued tests, bindings, and what each branch leaves in the environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.facts import Expression, Statement
from sgl_graph.analyzer.static.link.frame import Environment, Frame, GuardLink, merge
from sgl_graph.analyzer.static.link.heap import Cell
from sgl_graph.analyzer.static.link.raising import cannot_raise
from sgl_graph.analyzer.static.link.truth import compare, fold_binary, truth_of
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    FALSE,
    JUST_NONE,
    NONE,
    NOTHING,
    TRUE,
    ClassValue,
    Constant,
    Container,
    EnumMember,
    Instance,
    Unknown,
    Value,
    Values,
)
from sgl_graph.analyzer.static.linked import Truth

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Statements:
    """Interprets blocks. `block` returns whether control may reach its end."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        #: Depth of blocks that only type checkers execute.
        self._typing = 0
        self._table: dict[str, Callable[[Frame, Statement], bool]] = {
            "=": self._assign, "+=": self._augmented, ":": self._annotated, "e": self._expression, "if": self._if,
            "for": self._for, "while": self._while, "with": self._with, "try": self._try, "return": self._return,
            "raise": self._raise, "assert": self._assert, "del": self._delete, "import": self._import,
            "from": self._from, "def": self._def, "class": self._class, "match": self._match, "break": self._jump,
            "continue": self._jump, "global": self._nothing, "nonlocal": self._nothing,
        }  # fmt: skip

    def block(self, frame: Frame, statements: list[Statement]) -> bool:
        """Interpret statements in order; False when control cannot pass the end."""
        held = frame.guards
        table = self._table
        survey = self._in.world.survey
        for statement in statements:
            if not table[statement[0]](frame, statement) and not survey:
                frame.guards = held
                return False
        frame.guards = held
        return True

    # -- bindings

    def bind(self, frame: Frame, name: str, values: Values) -> None:
        """`name = values` in the scope of a frame."""
        heap = self._in.world.heap
        if frame.cls is not None:
            heap.write(self._in.world.class_cell(frame.cls, name), values)
            frame.environment[name] = values
            return
        activation = frame.activation
        if frame.locals is None:
            heap.write(self._in.global_cell(activation.module.name, name), values)
            return
        if name in frame.locals:
            frame.environment[name] = values
            if frame.captured:
                heap.write(activation.variable(name), values)
            return
        parent = activation.parent
        while parent is not None:
            if parent.function is not None and name in parent.function.facts.locals:
                heap.write(parent.variable(name), values)
                return
            parent = parent.parent
        heap.write(self._in.global_cell(activation.module.name, name), values)

    def assign(self, frame: Frame, target: Expression, values: Values) -> None:
        """Assign to any target expression."""
        kind = target[0]
        if kind == "n":
            self.bind(frame, target[1], values)
        elif kind == "a":
            owner = self._in.expressions.eval(frame, target[1])
            self._in.attributes.put(owner, target[2], values)
            self._in.calls.given_away(frame, owner, values)
        elif kind == "s":
            owner = self._in.expressions.eval(frame, target[1])
            keys = self._in.expressions.index(frame, target[2])
            self._in.models.store_item(frame, owner, keys, values)
            self._in.calls.given_away(frame, owner, values)
        elif kind in ("t", "L"):
            self._unpack(frame, target[1], values)
        elif kind == "*":
            self.assign(frame, target[1], self._in.models.list_of(frame, target, values))

    def _unpack(self, frame: Frame, targets: list[Expression], values: Values) -> None:
        """Item by item where the length is known; a starred target takes what is left between the others."""
        star = next((position for position, target in enumerate(targets) if target[0] == "*"), None)
        for position, target in enumerate(targets):
            found: set[Value] = set()
            for value in values:
                fields = self._in.models.tuple_fields(value)
                if fields is not None and star is None:
                    if len(fields) == len(targets):
                        found |= self._in.attributes.get(frozenset((value,)), fields[position])
                elif not isinstance(value, Container) or value.length is None:
                    found |= self._in.models.iterate(frozenset((value,)))
                elif star is None:
                    if value.length == len(targets):
                        found |= self._in.world.element(value, Constant.of(position))
                elif value.length >= len(targets) - 1:
                    surplus = value.length - len(targets)
                    first = position if position <= star else position + surplus
                    for place in range(first, first + (surplus + 1 if position == star else 1)):
                        found |= self._in.world.element(value, Constant.of(place))
            self.assign(frame, target, frozenset(found))

    # -- simple statements

    def _assign(self, frame: Frame, s: Statement) -> bool:
        value = s[3]
        targets = s[2]
        if _pairwise(targets, value):
            results = [self._in.expressions.eval(frame, item) for item in value[1]]
            for target, values in zip(targets[0][1], results, strict=True):
                self.assign(frame, target, values)
            return True
        values = self._in.expressions.eval(frame, value)
        for target in targets:
            self.assign(frame, target, values)
        return True

    def _augmented(self, frame: Frame, s: Statement) -> bool:
        left = self._in.expressions.eval(frame, s[2])
        right = self._in.expressions.eval(frame, s[4])
        containers = [v for v in left if isinstance(v, Container)]
        if containers and s[3] in ("+", "|"):
            elements = self._in.models.iterate(right)
            for container in containers:
                if container.kind == "dict":
                    self._in.models.update(container, right)
                else:
                    self._in.world.put(container, None, elements)
            return True
        self.assign(frame, s[2], fold_binary(s[3], left, right) if left else NOTHING)
        return True

    def _annotated(self, frame: Frame, s: Statement) -> bool:
        target = s[2]
        declared = self._in.annotations.types(s[3], frame.activation, frame.cls)
        if declared:
            heap = self._in.world.heap
            if frame.cls is not None and target[0] == "n":
                heap.write(heap.cell(("declared", frame.cls, target[1])), declared)
            elif target[0] == "a" and target[1][0] == "n":
                for owner in self._in.expressions.eval(frame, target[1]):
                    if isinstance(owner, Instance):
                        heap.write(heap.cell(("declared", owner.cls, target[2])), declared)
        if s[4] is not None:
            values = self._in.expressions.eval(frame, s[4])
            if values == ANYTHING and declared:
                values = declared
            self.assign(frame, target, values)
        return True

    def _expression(self, frame: Frame, s: Statement) -> bool:
        self._in.expressions.eval(frame, s[2])
        return True

    def _return(self, frame: Frame, s: Statement) -> bool:
        values = self._in.expressions.eval(frame, s[2]) if s[2] is not None else JUST_NONE
        self._in.world.heap.write(frame.activation.returns, values)
        return False

    def _raise(self, frame: Frame, s: Statement) -> bool:
        if s[2] is not None:
            values = self._in.expressions.eval(frame, s[2])
            self._in.line = s[1]
            self._in.calls.construct_raised(frame, values)
        return False

    def _assert(self, frame: Frame, s: Statement) -> bool:
        truth, depends = self._test(frame, s[2])
        self.narrow(frame, s[2], True)
        if truth is Truth.UNKNOWN:
            self._push(frame, s[2], False, s[1], truth, depends)
        return truth is not Truth.FALSE

    def _delete(self, frame: Frame, s: Statement) -> bool:
        for target in s[2]:
            if target[0] != "n":
                self._in.expressions.eval(frame, target[1] if target[0] in ("a", "s") else target)
        return True

    def _jump(self, frame: Frame, s: Statement) -> bool:
        return False

    def _nothing(self, frame: Frame, s: Statement) -> bool:
        return True

    def _def(self, frame: Frame, s: Statement) -> bool:
        self._in.definitions.function(frame, s[2])
        return True

    def _class(self, frame: Frame, s: Statement) -> bool:
        self._in.definitions.cls(frame, s[2])
        return True

    # -- imports

    def _import(self, frame: Frame, s: Statement) -> bool:
        for dotted, renamed in s[2]:
            self._note_import(dotted)
            if renamed is not None:
                self.bind(frame, renamed, frozenset((self._in.expressions.reference(dotted, None),)))
            else:
                self.bind(frame, dotted.split(".")[0], self._in.attributes.imported(dotted.split(".")[0], None))
        return True

    def _from(self, frame: Frame, s: Statement) -> bool:
        module = frame.activation.module.absolute(s[2], s[3])
        self._note_import(module)
        if s[4] == "*":
            self._star(frame, module)
            return True
        for name, renamed in s[4]:
            self._note_import(f"{module}.{name}")
            reference = self._in.expressions.reference(module, name)
            self.bind(frame, renamed or name, frozenset((reference,)))
        return True

    def _note_import(self, name: str) -> None:
        world = self._in.world
        if not self._typing and not world.survey and name not in world.imported and world.project.has_module(name):
            world.imported.add(name)

    def _star(self, frame: Frame, module: str) -> None:
        self._in.ensure_module(module)
        table = self._in.world.globals.get(module)
        if table is None:
            return
        activation = self._in.module_activation(module)
        if activation is not None and frame.activation.function is None and activation is not frame.activation:
            # Names that the other module binds later reach this one when it is interpreted again.
            self._in.world.heap.read(self._in.global_cell(module, "*"))
        listed = self._listed(table)
        for name in sorted(listed) if listed is not None else list(table):
            if listed is not None or (not name.startswith("_") and name != "*"):
                self.bind(frame, name, frozenset((self._in.expressions.reference(module, name),)))

    def _listed(self, table: dict[str, Cell]) -> set[str] | None:
        """Names of a module's `__all__`; None where it has none or it is computed."""
        if "__all__" not in table:
            return None
        values = self._in.models.iterate(self._in.world.heap.read(table["__all__"]))
        names = {v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)}
        return names if names and len(names) == len(values) else None

    # -- branches

    def _test(self, frame: Frame, test: Expression) -> tuple[Truth | None, tuple[str, ...]]:
        if _is_typing(test):
            return Truth.TRUE, ()
        values = self._in.expressions.eval(frame, test)
        truth, depends = truth_of(values)
        if truth is None:
            self._in.starved()
            if frame.activation.pessimistic:
                return Truth.UNKNOWN, ()
        return truth, depends

    def _push(
        self, frame: Frame, test: Expression, negated: bool, line: int, truth: Truth, depends: tuple[str, ...]
    ) -> None:
        frame.guards = GuardLink(frame.guards, test, negated, frame.file, line, truth, depends)

    def _if(self, frame: Frame, s: Statement) -> bool:
        test, body, orelse = s[2], s[3], s[4]
        truth, depends = self._test(frame, test)
        survey = self._in.world.survey
        if truth is None and not survey:
            return True
        shown = truth or Truth.UNKNOWN
        inverse = _inverse(shown)
        held = frame.guards
        before = frame.environment
        passes_then = passes_else = True
        then_environment: Environment | None = None
        else_environment: Environment | None = before
        if shown is not Truth.FALSE or survey:
            frame.environment = dict(before)
            self._push(frame, test, False, s[1], shown, depends)
            self.narrow(frame, test, True)
            typing = _is_typing(test)
            self._typing += typing
            passes_then = self.block(frame, body)
            self._typing -= typing
            then_environment = frame.environment
            frame.guards = held
        if shown is not Truth.TRUE or survey:
            frame.environment = dict(before)
            self.narrow(frame, test, False)
            if orelse:
                self._push(frame, test, True, s[1], inverse, depends)
                passes_else = self.block(frame, orelse)
                frame.guards = held
            else_environment = frame.environment
        else:
            else_environment = None
            passes_else = False
        if then_environment is None:
            passes_then = False
        if passes_then and passes_else and then_environment is not None and else_environment is not None:
            frame.environment = merge(then_environment, else_environment)
            return True
        if passes_then and then_environment is not None:
            frame.environment = then_environment
            if shown is not Truth.TRUE:
                self._push(frame, test, False, s[1], shown, depends)
            return True
        if passes_else and else_environment is not None:
            frame.environment = else_environment
            if inverse is not Truth.TRUE:
                self._push(frame, test, True, s[1], inverse, depends)
            return True
        frame.environment = before
        return False

    def _match(self, frame: Frame, s: Statement) -> bool:
        subject = self._in.expressions.eval(frame, s[2])
        before = frame.environment
        held = frame.guards
        result: Environment | None = None
        exhaustive = False
        for pattern, guard, body in s[3]:
            truth = self._matches(frame, pattern, subject)
            if truth is Truth.FALSE and not self._in.world.survey:
                continue
            frame.environment = dict(before)
            if pattern[0] == "isinstance" and s[2][0] == "n":
                self._narrow_type(frame, s[2][1], pattern[1], True)
            shown_pattern = pattern if pattern[0] not in ("or", "isinstance", "any", "x") else ["x"]
            test: Expression = ["cmp", s[2], [["==", shown_pattern]]]
            self._push(frame, test, False, s[1], truth, ())
            inner: Truth | None = Truth.TRUE
            if guard is not None:
                inner, depends = self._test(frame, guard)
                if inner is Truth.FALSE and not self._in.world.survey:
                    frame.guards = held
                    continue
                self._push(frame, guard, False, s[1], inner or Truth.UNKNOWN, depends)
                self.narrow(frame, guard, True)
            if self.block(frame, body):
                result = frame.environment if result is None else merge(result, frame.environment)
            frame.guards = held
            if truth is Truth.TRUE and inner is Truth.TRUE:
                exhaustive = True
                if not self._in.world.survey:
                    break
        if not exhaustive:
            result = before if result is None else merge(result, before)
        frame.environment = result if result is not None else before
        return result is not None

    def _matches(self, frame: Frame, pattern: Expression, subject: Values) -> Truth:
        kind = pattern[0]
        if kind == "any":
            return Truth.TRUE
        if kind == "or":
            found = {self._matches(frame, item, subject) for item in pattern[1]}
            if Truth.TRUE in found:
                return Truth.TRUE
            return Truth.FALSE if found == {Truth.FALSE} else Truth.UNKNOWN
        if kind == "x":
            return Truth.UNKNOWN
        if kind == "isinstance":
            wanted = set(self._in.expressions.eval(frame, pattern[1]))
            results: Values = frozenset().union(*(self._in.models.is_instance(value, wanted) for value in subject))
            return truth_of(results)[0] or Truth.UNKNOWN
        truth, _ = truth_of(compare("==", subject, self._in.expressions.eval(frame, pattern)))
        return truth or Truth.UNKNOWN

    # -- loops

    def _for(self, frame: Frame, s: Statement) -> bool:
        iterable = self._in.expressions.eval(frame, s[3])
        values = self._in.models.iterate(iterable)
        before = frame.environment
        frame.environment = dict(before)
        if not values and not self._in.world.survey:
            if not _may_be_empty(iterable):
                self._in.starved()
            values = NOTHING
            # An empty display iterates nothing; anything else may still receive elements later.
            frame.environment = before
            self.block(frame, s[5])
            return True
        for _ in range(2):
            self.assign(frame, s[2], values)
            self.block(frame, s[4])
            after = merge(before, frame.environment)
            if not _grew(before, after):
                break
            frame.environment = dict(after)
        frame.environment = after
        self.block(frame, s[5])
        return True

    def _while(self, frame: Frame, s: Statement) -> bool:
        truth, depends = self._test(frame, s[2])
        if truth in (Truth.FALSE, None) and not self._in.world.survey:
            return self.block(frame, s[4])
        before = frame.environment
        held = frame.guards
        if truth is not Truth.TRUE:
            self._push(frame, s[2], False, s[1], truth or Truth.UNKNOWN, depends)
        for _ in range(2):
            frame.environment = dict(frame.environment)
            self.block(frame, s[3])
            after = merge(before, frame.environment)
            if not _grew(before, after):
                break
            frame.environment = after
        frame.environment = after
        frame.guards = held
        if truth is Truth.TRUE and not _breaks(s[3]):
            return False
        self.block(frame, s[4])
        return True

    def _with(self, frame: Frame, s: Statement) -> bool:
        for item, target in s[2]:
            values = self._in.calls.enter(frame, item, s[1])
            if target is not None:
                self.assign(frame, target, values)
        return self.block(frame, s[3])

    def _try(self, frame: Frame, s: Statement) -> bool:
        before = frame.environment
        frame.environment = dict(before)
        passes = self.block(frame, s[2])
        after = frame.environment
        if passes and s[4]:
            passes = self.block(frame, s[4])
            after = frame.environment
        result: Environment | None = after if passes else None
        for kind, name, body, _line in () if cannot_raise(self._in, frame, s[2]) else s[3]:
            frame.environment = merge(before, after)
            if kind is not None:
                self._in.expressions.eval(frame, kind)
            if name is not None:
                self.bind(frame, name, ANYTHING)
            if self.block(frame, body):
                result = frame.environment if result is None else merge(result, frame.environment)
        if s[5]:
            frame.environment = result if result is not None else merge(before, after)
            if not self.block(frame, s[5]):
                return False
            if result is not None:
                result = frame.environment
        frame.environment = result if result is not None else after
        return result is not None

    # -- narrowing

    def assign_local(self, frame: Frame, target: Expression, values: Values) -> None:
        """Bind a comprehension's target: it lives in the environment alone."""
        if target[0] == "n":
            frame.environment[target[1]] = values
            return
        if target[0] in ("t", "L"):
            for position, item in enumerate(target[1]):
                found: set[Value] = set()
                for value in values:
                    if isinstance(value, Container) and value.length == len(target[1]):
                        found |= self._in.world.element(value, Constant.of(position))
                    else:
                        found |= self._in.models.iterate(frozenset((value,)))
                self.assign_local(frame, item, frozenset(found))

    def narrow(self, frame: Frame, test: Expression, positive: bool) -> None:
        kind = test[0]
        if kind == "u" and test[1] == "not":
            self.narrow(frame, test[2], not positive)
        elif kind == "bo" and (test[1] == "and") == positive:
            self.narrow(frame, test[2], positive)
            self.narrow(frame, test[3], positive)
        elif kind == "n":
            self._keep(frame, test[1], lambda v: _truth(v) is not (not positive))
        elif kind == "cmp" and test[1][0] == "n" and len(test[2]) == 1:
            op, right = test[2][0]
            if right == ["v", None] and op in ("is", "is not", "==", "!="):
                wants_none = (op in ("is", "==")) == positive
                self._keep(frame, test[1][1], lambda v: _may_be_none(v) if wants_none else v is not NONE)
        elif kind == "c" and test[1] == ["n", "isinstance"] and len(test[2]) == 2 and test[2][0][0] == "n":
            self._narrow_type(frame, test[2][0][1], test[2][1], positive)

    def _narrow_type(self, frame: Frame, name: str, wanted: Expression, positive: bool) -> None:
        classes = self._in.expressions.eval(frame, wanted)
        flat: set[Value] = set()
        for value in classes:
            if isinstance(value, Container):
                flat |= self._in.world.all_elements(value)
            else:
                flat.add(value)
        excluded = frozenset((FALSE,)) if positive else frozenset((TRUE,))
        self._keep(frame, name, lambda v: self._in.models.is_instance(v, flat) != excluded)
        values = frame.environment.get(name)
        own = [v for v in flat if isinstance(v, ClassValue)]
        if positive and values and own and len(own) == len(flat):
            frame.environment[name] = _refined(values, own)

    def _keep(self, frame: Frame, name: str, wanted: Callable[[Value], Any]) -> None:
        values = frame.environment.get(name)
        if values:
            kept = frozenset(v for v in values if wanted(v))
            if len(kept) != len(values):
                frame.environment[name] = kept


def _is_typing(test: Expression) -> bool:
    name = test[1] if test[0] == "n" else test[2] if test[0] == "a" else None
    return bool(name == "TYPE_CHECKING")


def _refined(values: Values, classes: list[ClassValue]) -> Values:
    """Values of which a test says that they are instances of one of the classes."""
    if all(isinstance(v, Unknown) for v in values):
        return frozenset(Instance.of(cls, fuzzy=True) for cls in classes)
    found: set[Value] = set()
    for value in values:
        narrower: list[ClassValue] = []
        if isinstance(value, Instance) and value.fuzzy and not any(cls in value.cls.mro for cls in classes):
            narrower = [cls for cls in classes if value.cls in cls.mro]
        found.update([Instance.of(cls, fuzzy=True) for cls in narrower] or [value])
    return frozenset(found)


def _pairwise(targets: list[Expression], value: Expression) -> bool:
    """Whether `a, b = x, y` assigns item by item."""
    if value[0] != "t" or len(targets) != 1 or targets[0][0] != "t" or len(targets[0][1]) != len(value[1]):
        return False
    return not any(item[0] == "*" for item in (*value[1], *targets[0][1]))


def _truth(value: Value) -> bool | None:
    if isinstance(value, Constant):
        return bool(value.value)
    return True if isinstance(value, (ClassValue, EnumMember)) else None


def _may_be_none(value: Value) -> bool:
    return value is NONE or isinstance(value, Unknown) or (isinstance(value, Constant) and value.value is None)


def _inverse(truth: Truth) -> Truth:
    if truth is Truth.TRUE:
        return Truth.FALSE
    return Truth.TRUE if truth is Truth.FALSE else Truth.UNKNOWN


def _grew(before: Environment, after: Environment) -> bool:
    return any(after[name] is not values and after[name] != values for name, values in before.items())


def _breaks(statements: list[Statement]) -> bool:
    for statement in statements:
        kind = statement[0]
        if kind == "break":
            return True
        if kind == "if" and (_breaks(statement[3]) or _breaks(statement[4])):
            return True
        if kind == "with" and _breaks(statement[3]):
            return True
        if kind == "try" and (
            _breaks(statement[2]) or any(_breaks(h[2]) for h in statement[3]) or _breaks(statement[4])
        ):
            return True
        if kind == "match" and any(_breaks(case[2]) for case in statement[3]):
            return True
    return False


def _may_be_empty(values: Values) -> bool:
    return bool(values) and all(isinstance(v, Container) for v in values)


__all__ = ["TRUE", "Statements"]
