"""Calls: functions of the checkout run in a frame of their own, classes make objects, natives are modelled.

A call that cannot be evaluated makes unknown what it may write, and nothing else: attributes of the objects passed in, fields
named by keyword in recording calls, and environment variables.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import comparison, operators, python_values, records, registry, walking
from sgl_graph.analyzer.static.config.journal import Raised, Signal
from sgl_graph.analyzer.static.config.machine import Exhausted, Unsupported
from sgl_graph.analyzer.static.config.objects import Objects
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, options_of, single, taint, unknown
from sgl_graph.analyzer.static.config.program import Bound, ClassV, Frame, FunctionV, Instance, Partial, Wrapped
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    DictV,
    External,
    Fuzzy,
    Generic,
    IteratorV,
    ListV,
    Native,
    Value,
)
from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.unasked import EVERY

_MEMO_DECORATORS = {"functools.lru_cache", "functools.cache", "functools.lru_cache()"}
_DECORATORS = {
    "builtins.property": "property", "functools.cached_property": "cached_property",
    "builtins.staticmethod": "staticmethod", "builtins.classmethod": "classmethod", "functools.cache": "cached",
    "functools.lru_cache": "cached", "contextlib.contextmanager": "contextmanager",
}  # fmt: skip


_UNKNOWN_BUDGET = 1_500
_UNKNOWN_RECURSION, _KNOWN_RECURSION = 1, 30


class Calls(Objects):
    """The part of the evaluator that calls."""

    _overridable: list[str] | None = None

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
                return self._call_cached(function, arguments, keywords)
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

    # -- functions of the checkout

    def run_function(
        self, function: FunctionV, arguments: list[Value], keywords: dict[str, Value], receiver: Value
    ) -> Value:
        """Run a function in a frame of its own; where the server does not run yet, what only it can answer is unknown."""
        try:
            return self._run_function(function, arguments, keywords, receiver)
        except Raised as raised:
            if self.raising is None or raised.place.file in self.raising:
                raise
            return unknown(["server"], self.place())

    def _run_function(
        self, function: FunctionV, arguments: list[Value], keywords: dict[str, Value], receiver: Value
    ) -> Value:
        replaced = self.facts.replaced(self, function, arguments, keywords)
        if replaced is not ABSENT:
            return replaced
        if self.deep() or self._recurses(function):
            return self.give_up(function, arguments, keywords, "calls nested too deeply")
        limit = self.limit
        if self.forking:
            # Inside unknown branches the work doubles with every test: what takes too long there is given up.
            self.limit = min(limit, self.steps + _UNKNOWN_BUDGET)
        facts = function.facts
        frame = Frame(
            function.module, None if function.frame is function.module.frame else function.frame, function.qualname
        )
        frame.function = facts
        frame.owner = function.owner
        frame.receiver = receiver if receiver is not ABSENT else (arguments[0] if arguments else None)
        if facts.name in profile.DECLARE_FUNCTIONS:
            self._record(keywords)
        line, held, depth, frames = self.line, self.control, len(self.levels), len(self.frames)
        if facts.flags & f.GENERATOR:
            frame.yielded = ListV([])
        try:
            try:
                # Read first: what its header makes of the call counts as well, even where it takes no such call.
                body = function.module.module.evaluated_body(function.index)
                self._bind_arguments(function, frame, arguments, keywords)
                self.frames.append(frame)
                signal = self.execute(body)
            except Raised as raised:
                if len(self.levels) == depth:
                    raise
                signal = ("raise", raised)
                del self.frames[frames:]
            else:
                del self.frames[frames:]
            if signal[0] == "":
                signal = ("return", None)
            if len(self.levels) > depth:
                self.line = line
                signal = self.settle(depth, signal, ("return",))
        except (Unsupported, RecursionError) as reason:
            if isinstance(reason, Exhausted) and self.steps > limit:
                raise
            self.abandon(depth)
            del self.frames[frames:]
            self.control = held
            return self.give_up(function, arguments, keywords, str(reason))
        finally:
            del self.frames[frames:]
            self.control = held
            self.line = line
            self.limit = limit
        if frame.yielded is not None:
            return frame.yielded if frame.yielded.opaque is None else unknown(frame.yielded.opaque)
        if facts.flags & f.ASYNC:
            return unknown(["await"], self.place())
        result = single(signal[1])
        if type(result) is ListV and id(result) not in self.made:
            self.keep(result)
            self.made[id(result)] = Place(function.module.module.path, facts.line, function.qualname)
        return signal[1]

    def _recurses(self, function: FunctionV) -> bool:
        """Whether a function calls itself again and again inside an unknown branch: both branches double every time."""
        times = sum(1 for frame in self.frames if frame.function is function.facts)
        return times > (_UNKNOWN_RECURSION if self.forking else _KNOWN_RECURSION)

    def _bind_arguments(
        self, function: FunctionV, frame: Frame, arguments: list[Value], keywords: dict[str, Value]
    ) -> None:
        names = frame.names
        rest = dict(keywords)
        position = 0
        for parameter in function.facts.parameters:
            kind = parameter.kind
            if kind == "*":
                names[parameter.name] = tuple(arguments[position:])
                position = len(arguments)
            elif kind == "**":
                names[parameter.name] = DictV(dict(rest))
                rest = {}
            elif kind != "k" and position < len(arguments):
                names[parameter.name] = arguments[position]
                position += 1
            elif parameter.name in rest and kind != "p":
                value = rest.pop(parameter.name)
                if type(value) is Fuzzy and ABSENT in value.options:
                    default = self._default(function, parameter) if parameter.default is not None else unknown()
                    present = [option for option in value.options if option is not ABSENT]
                    value = fuzzy([*present, default], value.open, value.deps, value.place)
                names[parameter.name] = value
            elif parameter.default is not None:
                names[parameter.name] = self._default(function, parameter)
            else:
                raise self.fail("TypeError", f"{function.qualname}: missing argument {parameter.name}")
        if position < len(arguments) or any(not _optional(value) for value in rest.values()):
            raise self.fail("TypeError", f"{function.qualname}: too many arguments")

    def _default(self, function: FunctionV, parameter: f.Parameter) -> Value:
        expression = parameter.default
        assert expression is not None
        if expression[0] == "v":
            return expression[1]
        key = f"default:{parameter.name}"
        if key not in function.attrs:
            frame = Frame(function.module, None if function.frame is function.module.frame else function.frame, "")
            frame.body_of = function.owner

            def work() -> Value:
                self.frames.append(frame)
                try:
                    return self.evaluate(expression)
                finally:
                    self.frames.pop()

            function.attrs[key] = self.isolated(work)
        return function.attrs[key]

    def _record(self, keywords: dict[str, Value]) -> None:
        place = self.place()
        for name in keywords:
            self.written[(0, name)] = place

    def _call_cached(self, function: Wrapped, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        inner = function.function
        key = tuple(python_values.hashable(value) for value in (*arguments, *keywords.values()))
        if type(inner) not in (FunctionV, Partial) or ABSENT in key or any(type(item) is Instance for item in key):
            return self.call(inner, arguments, keywords)
        holder = inner if type(inner) is FunctionV else inner.function
        if type(holder) is not FunctionV:
            return self.call(inner, arguments, keywords)
        if holder.memo is None:
            holder.memo = {}
        full = (id(inner), *map(type, key), *key, *keywords)
        self.keep(inner)
        if full not in holder.memo:
            holder.memo[full] = self.isolated(lambda: self.call(inner, arguments, keywords))
        return holder.memo[full]

    def define_function(self, index: int, frame: Frame, owner: ClassV | None) -> Value:
        facts = frame.module.module.facts.functions[index]
        scope = frame
        if frame.body_of is not None:
            scope = frame.parent or frame.module.frame
        value: Value = FunctionV(frame.module, facts, index, scope, owner)
        if frame is not frame.module.frame and frame.body_of is None:
            # Inside a function defaults hold what names mean now; elsewhere they wait for the first call.
            for parameter in facts.parameters:
                if parameter.default is not None and parameter.default[0] != "v":
                    value.attrs[f"default:{parameter.name}"] = self.evaluate(parameter.default)
        for expression in reversed(facts.decorators):
            value = self._decorate(expression, value)
        return value

    def _decorate(self, expression: f.Expression, value: Value) -> Value:
        if expression[0] == "a" and expression[2] in ("setter", "deleter"):
            return value
        decorator = self.evaluate(expression)
        plain = single(decorator)
        if type(plain) is External:
            kind = _DECORATORS.get(plain.path)
            if kind is not None:
                return Wrapped(kind, value)
            if plain.path.split(".")[0] in (
                "abc",
                "typing",
                "typing_extensions",
                "torch",
                "functools",
                "contextlib",
                "triton",
            ):
                return value
            return value if type(value) is FunctionV else unknown(["decorator"])
        if type(decorator) is Fuzzy and decorator.open:
            return value
        return self.call(decorator, [value], {})

    # -- classes

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

    # -- outside the checkout

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

    # -- what cannot be evaluated

    def give_up(
        self, function: FunctionV, arguments: Sequence[Value], keywords: dict[str, Value], reason: str
    ) -> Value:
        """Make unknown what a function may write, and its result."""
        place = Place(function.module.module.path, function.facts.line, function.qualname)
        self.note(place, reason)
        forgotten = unknown([f"function:{function.qualname}"], place)
        names = [parameter.name for parameter in function.facts.parameters]
        given = dict(zip(names, arguments, strict=False)) | keywords
        body = function.module.module.evaluated_body(function.index)
        for statement in walking.walk(body):
            self._forget(statement, given, forgotten)
        return forgotten

    def havoc_body(self, body: Sequence[f.Statement]) -> None:
        forgotten = unknown([f"source:{self.place().file}:{self.line}"], self.place())
        frame = self.frames[-1]
        for statement in walking.walk(body):
            self._forget(statement, frame.names, forgotten)

    def _forget(self, statement: f.Statement, given: dict[str, Value], forgotten: Value) -> None:
        targets = statement[2] if statement[0] == "=" else [statement[2]] if statement[0] in ("+=", ":") else []
        for target in targets:
            if target[0] == "a" and target[1][0] == "n" and target[1][1] in given:
                for option in options_of(given[target[1][1]])[0]:
                    self.set_raw(option, target[2], forgotten, weak=True)
        for call in walking.calls_in(statement):
            name = call[1][1] if call[1][0] == "n" else call[1][2] if call[1][0] == "a" else ""
            words = [argument[1] for argument in call[2] if argument[0] == "k"]
            if name in profile.DECLARE_FUNCTIONS and any(argument[0] == "**" for argument in call[2]):
                words += self._overridable or []
            if name in profile.DECLARE_FUNCTIONS and words:
                receiver = next((given[a[1]] for a in call[2] if a[0] == "n" and a[1] in given), None)
                self.declare_unknown(receiver, words, forgotten)

    def recordable(self, function: Value) -> Sequence[str] | None:
        plain = single(function)
        if type(plain) is not FunctionV or plain.facts.name not in profile.DECLARE_FUNCTIONS:
            return None
        return self.overridable() or None

    def overridable(self) -> list[str]:
        """Arguments that model-specific code may decide: the keys of the dictionaries that it builds."""
        if self._overridable is None and self.declarations is not None:
            fields = {declaration.dest for declaration in self.declarations.items}
            names: dict[str, None] = {}
            for name in self.project.names():
                found = self.project.module(name) if name.startswith(profile.OVERRIDE_PACKAGE) else None
                if found is None:
                    continue
                found.asked.add(EVERY)
                for index in range(len(found.facts.functions)):
                    keys = walking.literal_keys(found.evaluated_body(index))
                    names.update(dict.fromkeys(key for key in keys if key in fields))
            self._overridable = list(names)
        return self._overridable or []

    def declare_unknown(self, receiver: Value, names: Sequence[str], forgotten: Value) -> None:
        """Fields recorded by a call that was not evaluated may hold anything."""
        for option in options_of(receiver)[0]:
            record = option
            if type(record) is not Instance:
                continue
            for slot in list(record.attrs.values()):
                plain = single(slot)
                if type(plain) is ListV and plain.items and _is_log(plain):
                    self.touch(plain)
                    table = DictV({name: fuzzy((forgotten, ABSENT), True, NO_DEPS) for name in names})
                    plain.items.append(("unknown", table))

    def note(self, place: object, reason: str) -> None:
        if isinstance(place, Place):
            self.problems.append((place, reason))


def _is_log(value: ListV) -> bool:
    last = value.items[-1]
    return type(last) is tuple and len(last) == 2 and type(single(last[1])) is DictV


def _optional(value: Value) -> bool:
    return type(value) is Fuzzy and ABSENT in value.options
