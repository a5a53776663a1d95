"""Python's built-in functions on numbers, texts and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config import containers, operators, python_values
from sgl_graph.analyzer.static.config.methods import apply_plain, sort_values
from sgl_graph.analyzer.static.config.possibilities import deps_of, fuzzy, single, taint, unknown
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.python_values import from_python, inner_deps
from sgl_graph.analyzer.static.config.registry import native
from sgl_graph.analyzer.static.config.runs import members, turned
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Alternatives,
    Deps,
    DictV,
    Fuzzy,
    IteratorV,
    ListV,
    SetV,
    Value,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.calls import Calls

Arguments = list[Value]
Keywords = dict[str, Value]


def _plain(path: str, function: Any) -> None:
    native(path)(lambda machine, arguments, keywords: apply_plain(machine, function, arguments, keywords))


for _name, _function in {
    "abs": abs, "round": round, "divmod": divmod, "pow": pow, "ord": ord, "chr": chr, "hex": hex, "oct": oct,
    "float": float, "bytes": bytes, "format": format, "ascii": ascii, "complex": complex,
}.items():  # fmt: skip
    _plain(f"builtins.{_name}", _function)


def _nothing(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return None


native("builtins.print", "builtins.object.__init__", "builtins.object.__init_subclass__", "builtins.input")(_nothing)


@native("builtins.int")
def _int(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return apply_plain(machine, int, arguments, keywords)


@native("builtins.str", "builtins.repr")
def _str(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return ""

    def work(value: Value) -> Value:
        if type(value) is Instance and type(value.cls) is ClassV:
            found = machine.call_method(value, "__str__", [])
            if found is not ABSENT:
                return found
        if type(value) is Instance:
            if "_text" in value.attrs:
                return value.attrs["_text"]
            if "args" in value.attrs and type(value.attrs["args"]) is tuple:
                return operators.concatenate(value.attrs["args"])
        if (
            type(value) in (str, int, float, bool, type(None))
            or python_values.to_python_or(value, ABSENT) is not ABSENT
        ):
            return from_python(str(python_values.to_python(value)))
        return unknown(inner_deps(value), machine.place())

    return operators.lift(machine, work, arguments[0])


@native("builtins.bool")
def _bool(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return False
    truth, deps = machine.truth(arguments[0])
    return unknown(deps, machine.place()) if truth is None else taint(truth, deps)


@native("builtins.len")
def _len(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    def work(value: Value) -> Value:
        if type(value) is Instance:
            found = machine.call_method(value, "__len__", [])
            if found is not ABSENT:
                return found
            value = value.payload if type(value.payload) in (DictV, ListV) else value
        items = machine.elements(value) if type(value) is not IteratorV else None
        if items is None:
            return unknown(inner_deps(value), machine.place())
        return len(items)

    return operators.lift(machine, work, arguments[0])


def _sequence(machine: Calls, arguments: Arguments) -> tuple[list[Value] | None, Deps]:
    if not arguments:
        return [], NO_DEPS
    items = machine.runs(arguments[0])
    deps = deps_of(arguments[0])
    if items is None:
        plain = single(arguments[0])
        return None, deps | (getattr(plain, "opaque", None) or NO_DEPS)
    return [taint(i, deps) if deps and type(i) is not Alternatives else i for i in items], deps


@native("builtins.list", "collections.deque")
def _list(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    items, deps = _sequence(machine, arguments)
    return ListV([], deps) if items is None else ListV(items)


@native("builtins.tuple")
def _tuple(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if not arguments:
        return ()
    items = machine.elements(arguments[0])
    return unknown(inner_deps(arguments[0]), machine.place()) if items is None else tuple(items)


@native("builtins.set", "builtins.frozenset")
def _set(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    result = SetV({})
    items, deps = _sequence(machine, arguments)
    if items is None:
        result.opaque = deps
        return result
    if not machine.control and all(type(item) in (str, int, float) for item in items):
        result.items = dict.fromkeys(items, True)
        return result
    for item in items:
        for value, _ in members([item]):
            if type(item) is Alternatives:
                value = fuzzy([value, ABSENT], False, item.deps)
            if type(value) is Fuzzy and ABSENT in value.options:
                for option in value.options:
                    if option is not ABSENT:
                        result.items.setdefault(
                            python_values.hashable(option), fuzzy([True, ABSENT], False, value.deps)
                        )
                continue
            containers.add_member(machine, result, value)
    return result


@native("builtins.dict", "collections.OrderedDict")
def _dict(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    result = DictV({})
    machine.call(machine.get(result, "update"), arguments, keywords)
    return result


@native("collections.defaultdict")
def _defaultdict(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    result = DictV({}, None, arguments[0] if arguments else None)
    machine.call(machine.get(result, "update"), arguments[1:], keywords)
    return result


@native("builtins.range")
def _range(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    return apply_plain(machine, range, arguments, keywords)


@native("builtins.sorted")
def _sorted(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    def work(value: Value) -> Value:
        items = machine.elements(value)
        ordered = sort_values(machine, items, keywords) if items is not None else None
        return ListV([], inner_deps(value)) if ordered is None else ListV(ordered)

    return operators.lift(machine, work, arguments[0])


@native("builtins.reversed")
def _reversed(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    items = machine.runs(arguments[0])
    if items is None:
        return unknown(inner_deps(arguments[0]), machine.place())
    return ListV(turned(items))


@native("builtins.enumerate")
def _enumerate(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    items = machine.elements(arguments[0])
    start = single(keywords.get("start", arguments[1] if len(arguments) > 1 else 0))
    if items is None or type(start) is not int:
        return unknown(inner_deps(arguments[0]), machine.place())
    return ListV([(start + position, item) for position, item in enumerate(items)])


@native("builtins.zip")
def _zip(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    columns = [machine.elements(value) for value in arguments]
    if any(column is None for column in columns):
        return unknown(frozenset().union(*(inner_deps(value) for value in arguments)), machine.place())
    return ListV([tuple(row) for row in zip(*(column or [] for column in columns), strict=False)])


@native("builtins.map")
def _map(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    columns = [machine.elements(value) for value in arguments[1:]]
    if any(column is None for column in columns):
        return unknown(frozenset().union(*(inner_deps(value) for value in arguments)), machine.place())
    rows = zip(*(column or [] for column in columns), strict=False)
    return ListV([machine.call(arguments[0], list(row), {}) for row in rows])


@native("builtins.filter")
def _filter(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    items = machine.elements(arguments[1])
    if items is None:
        return unknown(inner_deps(arguments[1]), machine.place())
    kept: list[Value] = []
    for item in items:
        truth, deps = machine.truth(item if arguments[0] is None else machine.call(arguments[0], [item], {}))
        if truth is not False:
            kept.append(item if truth else fuzzy([item, ABSENT], False, deps))
    return ListV(kept)


@native("builtins.iter")
def _iter(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    if type(arguments[0]) is IteratorV:
        return arguments[0]
    items = machine.elements(arguments[0])
    return unknown(inner_deps(arguments[0]), machine.place()) if items is None else IteratorV(items)


@native("builtins.next")
def _next(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    value = single(arguments[0])
    if type(value) is IteratorV:
        if value.position < len(value.items):
            machine.touch(value)
            value.position += 1
            return value.items[value.position - 1]
        if len(arguments) > 1:
            return arguments[1]
        raise machine.fail("StopIteration")
    items = machine.runs(arguments[0])
    if items is None:
        return unknown(inner_deps(arguments[0]), machine.place())
    found: list[Value] = []
    for item in items:
        if type(item) is Alternatives:
            return unknown(item.deps, machine.place())
        if type(item) is Fuzzy and ABSENT in item.options:
            found.append(fuzzy([o for o in item.options if o is not ABSENT], item.open, item.deps))
            continue
        found.append(item)
        break
    else:
        if len(arguments) > 1:
            found.append(arguments[1])
        elif not found:
            raise machine.fail("StopIteration")
    return fuzzy(found, False, deps_of(arguments[0]), machine.place())


def _any_or_all(stop: bool) -> Any:
    def call(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
        items = machine.runs(arguments[0])
        if items is None:
            return unknown(inner_deps(arguments[0]), machine.place())
        deps = deps_of(arguments[0])
        result: bool | None = not stop
        for item in items:
            if type(item) is Alternatives:
                deps |= item.deps
                result = None
                continue
            truth, more = machine.truth(item)
            maybe = type(item) is Fuzzy and ABSENT in item.options
            deps |= more
            if truth is stop and not maybe:
                return taint(stop, deps)
            if truth is not (not stop):
                result = None
        return unknown(deps, machine.place()) if result is None else taint(result, deps)

    return call


native("builtins.any")(_any_or_all(True))
native("builtins.all")(_any_or_all(False))


def _extreme(function: Any) -> Any:
    def call(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
        if "key" in keywords:
            items = machine.elements(arguments[0]) if len(arguments) == 1 else arguments
            ordered = sort_values(machine, items, {"key": keywords["key"]}) if items else None
            if not ordered:
                return unknown(inner_deps(arguments[0]), machine.place())
            return ordered[0 if function is min else -1]
        values = arguments
        if len(arguments) == 1:
            items = machine.elements(arguments[0])
            if items is None:
                return unknown(inner_deps(arguments[0]), machine.place())
            if not items and "default" in keywords:
                return keywords["default"]
            values = items
        if len(values) > 4:
            return apply_plain(machine, function, [ListV(list(values))], {})
        if not values:
            raise machine.fail("ValueError", "empty sequence")
        return apply_plain(machine, lambda *plain: function(plain), list(values), {})

    return call


native("builtins.min")(_extreme(min))
native("builtins.max")(_extreme(max))


@native("builtins.sum")
def _sum(machine: Calls, arguments: Arguments, keywords: Keywords) -> Value:
    items = machine.elements(arguments[0])
    if items is None:
        return unknown(inner_deps(arguments[0]), machine.place())
    total: Value = arguments[1] if len(arguments) > 1 else keywords.get("start", 0)
    for item in items:
        total = operators.binary(machine, "+", total, item)
    return total
