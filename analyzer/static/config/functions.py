"""Functions of the checkout: defined with their decorators, and run in a frame of their own."""

from __future__ import annotations

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config import python_values
from sgl_graph.analyzer.static.config.construction import Construction
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.machine import Exhausted, Unsupported
from sgl_graph.analyzer.static.config.possibilities import fuzzy, single, unknown
from sgl_graph.analyzer.static.config.program import ClassV, Frame, FunctionV, Instance, Partial, Wrapped
from sgl_graph.analyzer.static.config.protocol import Place
from sgl_graph.analyzer.static.config.values import ABSENT, DictV, External, Fuzzy, ListV, Value
from sgl_graph.analyzer.static.extract import facts as f

_DECORATORS = {
    "builtins.property": "property", "functools.cached_property": "cached_property",
    "builtins.staticmethod": "staticmethod", "builtins.classmethod": "classmethod", "functools.cache": "cached",
    "functools.lru_cache": "cached", "contextlib.contextmanager": "contextmanager",
}  # fmt: skip
_UNKNOWN_BUDGET = 1_500
_UNKNOWN_RECURSION, _KNOWN_RECURSION = 1, 30


class Functions(Construction):
    """The part of the evaluator that runs functions."""

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

    def call_cached(self, function: Wrapped, arguments: list[Value], keywords: dict[str, Value]) -> Value:
        """Call a function that remembers its results."""
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


def _optional(value: Value) -> bool:
    return type(value) is Fuzzy and ABSENT in value.options
