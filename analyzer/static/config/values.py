"""The value domain of the evaluator: native constants, heap objects, and sets of possibilities with their provenance.

A value is a native constant (None, bool, int, float, str, tuple of values ...), a heap object, or a `Fuzzy`: what it may be,
whether it may be something else too (`open`), and the facts that this rests on (`deps`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.protocol import Place

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.checkout.project import Module
    from sgl_graph.analyzer.static.extract.facts import ClassFacts, FunctionFacts, Statement

Value = Any
Deps = frozenset[str]
NO_DEPS: Deps = frozenset()
#: More possibilities than this are no longer told apart.
MAX_OPTIONS = 12
#: More objects of one record class than this are merged into one whose fields hold the possibilities.
MAX_RECORDS = 4
#: Nor are more lists than possibilities, as long as they hold no more different elements than this.
MAX_MEMBERS = 100
_ATOMS = (str, int, float, bool, type(None), bytes)


class _Absent:
    """An attribute, key or local that may not exist."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<absent>"


ABSENT = _Absent()


class Fuzzy:
    """A set of possible values; with one option and not `open` a known value that rests on facts."""

    __slots__ = ("deps", "open", "options", "place")

    def __init__(self, options: tuple[Value, ...], open_: bool, deps: Deps, place: Place | None = None) -> None:
        self.options = options
        self.open = open_
        self.deps = deps
        #: The statement at which the value began to rest on these facts.
        self.place = place

    def __repr__(self) -> str:
        tail = "|..." if self.open else ""
        return f"<{'|'.join(map(repr, self.options))}{tail} {sorted(self.deps)}>"


_births = itertools.count(1)


def moment() -> int:
    """A point in time, later than all earlier ones."""
    return next(_births)


class Heap:
    """Base of objects with mutable state; `state`/`restore` serve the journal of the evaluator.

    `born` orders objects in time: one that is younger than a level did not exist when the level was opened.
    """

    __slots__ = ("born",)
    born: int

    def state(self) -> Any:
        raise NotImplementedError

    def restore(self, state: Any) -> None:
        raise NotImplementedError


class Alternatives:
    """An element of a list that stands for one of several runs of elements."""

    __slots__ = ("deps", "runs")

    def __init__(self, runs: tuple[tuple[Value, ...], ...], deps: Deps) -> None:
        self.runs = runs
        self.deps = deps


class ListV(Heap):
    """A list; `opaque` holds the provenance once its content is not known."""

    __slots__ = ("items", "opaque")

    def __init__(self, items: list[Value], opaque: Deps | None = None) -> None:
        self.born = next(_births)
        self.items = items
        self.opaque = opaque

    def state(self) -> Any:
        return list(self.items), self.opaque

    def restore(self, state: Any) -> None:
        self.items, self.opaque = list(state[0]), state[1]

    @property
    def exact(self) -> bool:
        """Whether length and order of the elements are known."""
        return self.opaque is None and not any(type(item) is Alternatives for item in self.items)


class DictV(Heap):
    """A dict; a value with the option ABSENT may be missing, `opaque` tells that other keys may exist."""

    __slots__ = ("factory", "items", "opaque")

    def __init__(self, items: dict[Any, Value], opaque: Deps | None = None, factory: Value = None) -> None:
        self.born = next(_births)
        self.items = items
        self.opaque = opaque
        self.factory = factory

    def state(self) -> Any:
        return dict(self.items), self.opaque

    def restore(self, state: Any) -> None:
        self.items, self.opaque = dict(state[0]), state[1]


class SetV(Heap):
    """A set; members map to True, or to a Fuzzy with ABSENT when they may be missing."""

    __slots__ = ("items", "opaque")

    def __init__(self, items: dict[Any, Value], opaque: Deps | None = None) -> None:
        self.born = next(_births)
        self.items = items
        self.opaque = opaque

    def state(self) -> Any:
        return dict(self.items), self.opaque

    def restore(self, state: Any) -> None:
        self.items, self.opaque = dict(state[0]), state[1]


class Frame(Heap):
    """Local names of one activation (or of a comprehension, or a class body)."""

    __slots__ = (
        "body_of",
        "function",
        "module",
        "names",
        "owner",
        "parent",
        "qualname",
        "receiver",
        "scopes",
        "yielded",
    )

    def __init__(self, module: ModuleV, parent: Frame | None, qualname: str) -> None:
        self.born = next(_births)
        self.names: dict[str, Value] = {}
        self.module = module
        self.parent = parent
        self.qualname = qualname
        self.function: FunctionFacts | None = None
        #: The class whose method this activation is, and the object that it was called on.
        self.owner: ClassV | None = None
        self.receiver: Value = None
        #: Set for a class body.
        self.body_of: ClassV | None = None
        self.yielded: ListV | None = None
        #: Names declared `global` or `nonlocal`.
        self.scopes: dict[str, str] = {}

    def state(self) -> Any:
        return dict(self.names)

    def restore(self, state: Any) -> None:
        self.names = dict(state)


class ModuleV(Heap):
    """A module of the checkout; `names` fill as its body is evaluated, on demand."""

    __slots__ = ("executed", "frame", "module", "name", "names", "stars")

    def __init__(self, module: Module) -> None:
        self.born = next(_births)
        self.module = module
        self.name = module.name
        self.names: dict[str, Value] = {}
        self.executed = False
        #: Modules whose names `from m import *` brought in.
        self.stars: list[ModuleV] = []
        self.frame = Frame(self, None, f"{module.name}:<module>")

    def state(self) -> Any:
        return dict(self.names)

    def restore(self, state: Any) -> None:
        self.names = dict(state)

    def __repr__(self) -> str:
        return f"<module {self.name}>"


class Thunk:
    """A module-level or class-level binding that nobody has read yet."""

    __slots__ = ("evaluate",)

    def __init__(self, evaluate: Callable[[], Value]) -> None:
        self.evaluate = evaluate


class ClassV(Heap):
    """A class of the checkout, or one made by a class factory."""

    __slots__ = (
        "attrs", "base_values", "facts", "fields", "frame", "kind", "members", "module", "mro", "name",
        "qualname", "statements",
    )  # fmt: skip

    def __init__(self, module: ModuleV, facts: ClassFacts | None, name: str, frame: Frame | None) -> None:
        self.born = next(_births)
        self.module = module
        self.facts = facts
        self.name = name
        self.qualname = f"{module.name}:{facts.qualname if facts else name}"
        self.frame = frame
        self.attrs: dict[str, Value] = {}
        self.statements: dict[str, list[Statement]] | None = None
        self.base_values: list[Value] | None = None
        self.fields: list[FieldV] | None = None
        #: `record` (dataclass, struct, named tuple), `enum` or `plain`; None until somebody asks.
        self.kind: str | None = None
        self.members: dict[str, Value] | None = None
        self.mro: list[Value] | None = None

    def state(self) -> Any:
        return dict(self.attrs)

    def restore(self, state: Any) -> None:
        self.attrs = dict(state)

    def __repr__(self) -> str:
        return f"<class {self.qualname}>"


class FieldV:
    """A field of a record class: where it is declared and what it defaults to."""

    __slots__ = ("annotation", "default", "factory", "init", "line", "name", "owner")

    def __init__(self, name: str, owner: ClassV, line: int, annotation: Any) -> None:
        self.name = name
        self.owner = owner
        self.line = line
        self.annotation = annotation
        self.default: Value = ABSENT
        self.factory: Value = ABSENT
        self.init = True


class Instance(Heap):
    """An object; `opaque` holds the provenance when attributes beyond `attrs` may exist."""

    __slots__ = ("attrs", "cls", "opaque", "payload")

    def __init__(
        self, cls: ClassV | External, attrs: dict[str, Value] | None = None, opaque: Deps | None = None
    ) -> None:
        self.born = next(_births)
        self.cls = cls
        self.attrs: dict[str, Value] = attrs if attrs is not None else {}
        self.opaque = opaque
        self.payload: Any = None

    def state(self) -> Any:
        return dict(self.attrs), self.opaque

    def restore(self, state: Any) -> None:
        self.attrs, self.opaque = dict(state[0]), state[1]

    def __repr__(self) -> str:
        name = self.cls.qualname if isinstance(self.cls, ClassV) else self.cls.path
        label = self.attrs.get("_name_")
        return f"<{name} {label}>" if label is not None else f"<{name} object>"


class FunctionV:
    """A function or lambda of the checkout with what it closes over."""

    __slots__ = ("attrs", "facts", "frame", "index", "memo", "module", "owner", "qualname")

    def __init__(self, module: ModuleV, facts: FunctionFacts, index: int, frame: Frame, owner: ClassV | None) -> None:
        self.module = module
        self.facts = facts
        self.index = index
        self.frame = frame
        self.owner = owner
        self.qualname = f"{module.name}:{facts.qualname}"
        self.memo: dict[Any, Value] | None = None
        self.attrs: dict[str, Value] = {}

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


class Bound:
    """A function together with the object it is a method of."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Value, receiver: Value) -> None:
        self.function = function
        self.receiver = receiver


class Partial:
    """`functools.partial`."""

    __slots__ = ("arguments", "function", "keywords")

    def __init__(self, function: Value, arguments: list[Value], keywords: dict[str, Value]) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords


class Wrapped:
    """A function under a standard decorator: `property`, `staticmethod`, `classmethod`, `cached`, `contextmanager`."""

    __slots__ = ("function", "kind")

    def __init__(self, kind: str, function: Value) -> None:
        self.kind = kind
        self.function = function


class External:
    """Something outside the checkout, by access path; a call of it is written `path()`."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<external {self.path}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, External) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)


class Native:
    """A function that the evaluator implements itself: `call(evaluator, arguments, keywords)`."""

    __slots__ = ("call", "name")

    def __init__(self, name: str, call: Callable[[Any, list[Value], dict[str, Value]], Value]) -> None:
        self.name = name
        self.call = call

    def __repr__(self) -> str:
        return f"<native {self.name}>"


class Super:
    """`super()` inside a method."""

    __slots__ = ("owner", "receiver")

    def __init__(self, owner: ClassV, receiver: Value) -> None:
        self.owner = owner
        self.receiver = receiver


class Generic:
    """A subscripted type: `Optional[int]`, `Annotated[T, ...]`, `int | None`."""

    __slots__ = ("arguments", "origin")

    def __init__(self, origin: Value, arguments: tuple[Value, ...]) -> None:
        self.origin = origin
        self.arguments = arguments


class IteratorV(Heap):
    """An iterator over elements that are known."""

    __slots__ = ("items", "position")

    def __init__(self, items: list[Value]) -> None:
        self.born = next(_births)
        self.items = items
        self.position = 0

    def state(self) -> Any:
        return self.position

    def restore(self, state: Any) -> None:
        self.position = state


def unknown(deps: Iterable[str] = (), place: Place | None = None) -> Fuzzy:
    """A value of which nothing is known."""
    return Fuzzy((), True, frozenset(deps), place)


def same(a: Value, b: Value) -> bool:
    """Whether two values are the same possibility: one object, or equal constants of one type."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind in _ATOMS or kind is External:
        return bool(a == b)
    if kind is tuple:
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if kind is Fuzzy:
        return (
            a.open == b.open
            and a.deps == b.deps
            and len(a.options) == len(b.options)
            and all(same(x, y) for x, y in zip(a.options, b.options, strict=True))
        )
    if kind is Bound:
        return same(a.function, b.function) and same(a.receiver, b.receiver)
    return False


def fuzzy(options: Iterable[Value], open_: bool, deps: Deps, place: Place | None = None) -> Value:
    """Normalise possibilities: flat, without doubles, few; a single one that rests on nothing is itself."""
    flat: list[Value] = []
    for option in options:
        parts: tuple[Value, ...]
        if type(option) is Fuzzy:
            parts = option.options
            open_ = open_ or option.open
            deps |= option.deps
            place = place or option.place
        else:
            parts = (option,)
        for part in parts:
            if not any(same(part, known) for known in flat):
                flat.append(part)
    if len(flat) > MAX_RECORDS:
        flat = _merge_records(flat)
    if len(flat) > MAX_OPTIONS:
        flat = _merge_tables(_merge_lists(flat))
    if len(flat) > MAX_OPTIONS:
        flat, open_ = [], True
    if len(flat) == 1 and not open_ and not deps:
        return flat[0]
    return Fuzzy(tuple(flat), open_, deps, place)


def taint(value: Value, deps: Deps, place: Place | None = None) -> Value:
    """The value, resting on more facts."""
    if not deps:
        return value
    if type(value) is Fuzzy:
        if deps <= value.deps:
            return value
        return Fuzzy(value.options, value.open, value.deps | deps, value.place or place)
    return Fuzzy((value,), False, deps, place)


def join(a: Value, b: Value, deps: Deps = NO_DEPS, place: Place | None = None) -> Value:
    """Either of two values."""
    if same(a, b):
        return a
    return fuzzy((a, b), False, deps, place)


def deps_of(value: Value) -> Deps:
    """What a value rests on, elements of tuples included."""
    if type(value) is Fuzzy:
        return value.deps
    if type(value) is tuple:
        found = NO_DEPS
        for item in value:
            found |= deps_of(item)
        return found
    return NO_DEPS


def single(value: Value) -> Value:
    """The one value that is possible, without its provenance; ABSENT where there is no such one."""
    if type(value) is Fuzzy:
        if value.open or len(value.options) != 1:
            return ABSENT
        value = value.options[0]
    if type(value) is tuple and any(type(item) in (Fuzzy, tuple) for item in value):
        items = tuple(single(item) for item in value)
        return ABSENT if any(item is ABSENT for item in items) else items
    return value


def options_of(value: Value) -> tuple[tuple[Value, ...], bool]:
    """Known possibilities and whether there may be others."""
    if type(value) is Fuzzy:
        return value.options, value.open
    return (value,), False


def is_open(value: Value) -> bool:
    """Whether a value may be something that is not among its options."""
    return type(value) is Fuzzy and value.open


def _merge_records(options: list[Value]) -> list[Value]:
    groups: dict[int, list[Instance]] = {}
    for option in options:
        if type(option) is Instance and type(option.cls) is ClassV and option.cls.kind == "record":
            groups.setdefault(id(option.cls), []).append(option)
    merged: dict[int, Instance] = {}
    for key, group in groups.items():
        if len(group) < 2:
            continue
        names = dict.fromkeys(name for item in group for name in item.attrs)
        attrs = {n: fuzzy((item.attrs.get(n, ABSENT) for item in group), False, NO_DEPS) for n in names}
        opaque = next((item.opaque for item in group if item.opaque is not None), None)
        merged[key] = Instance(group[0].cls, attrs, opaque)
    result: list[Value] = []
    for option in options:
        summary = merged.get(id(option.cls)) if type(option) is Instance else None
        if summary is None:
            result.append(option)
        elif not any(item is summary for item in result):
            result.append(summary)
    return result


def _merge_lists(options: list[Value]) -> list[Value]:
    """Too many lists to tell apart: one that may hold any of their elements, in which each may be missing."""
    lists = [option for option in options if type(option) is ListV]
    if len(lists) < 2 or any(not item.exact for item in lists):
        return options
    members: list[Value] = []
    for item in lists:
        members += [element for element in item.items if not any(same(element, known) for known in members)]
    if len(members) > MAX_MEMBERS:
        return options
    rest = [option for option in options if type(option) is not ListV]
    return [ListV([Alternatives(((element,), ()), NO_DEPS) for element in members]), *rest]


def _merge_tables(options: list[Value]) -> list[Value]:
    """Too many dictionaries to tell apart: one that may hold what any of them holds under each key."""
    tables = [option for option in options if type(option) is DictV]
    if len(tables) < 2 or any(item.opaque is not None or item.factory is not None for item in tables):
        return options
    keys = dict.fromkeys(key for item in tables for key in item.items)
    if len(keys) > MAX_MEMBERS:
        return options
    merged = {key: fuzzy((item.items.get(key, ABSENT) for item in tables), False, NO_DEPS) for key in keys}
    return [DictV(merged), *(option for option in options if type(option) is not DictV)]
