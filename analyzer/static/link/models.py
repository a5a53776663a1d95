"""Models of what the language and the standard library do with values: containers, builtins, functools and friends."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.facts import Expression
from sgl_graph.analyzer.static.link.calls import Arguments
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.truth import payload_of
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    BOTH,
    FALSE,
    JUST_NONE,
    NONE,
    NOTHING,
    TRUE,
    Bound,
    Builtin,
    ClassValue,
    Configured,
    Constant,
    Container,
    EnumMember,
    External,
    FunctionValue,
    Generated,
    Instance,
    Method,
    ModuleValue,
    Pattern,
    Scanned,
    Super,
    Typed,
    Unknown,
    Value,
    Values,
    Wrapped,
    depends_of,
)
from sgl_graph.analyzer.static.link.world import CallRecord, key_of
from sgl_graph.analyzer.static.linked import Known

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

_WRAPPERS = {"property": "property", "staticmethod": "staticmethod", "classmethod": "classmethod"}
_PASSING = {"reversed", "sorted", "iter"}
_TYPES: dict[str, type] = {"str": str, "int": int, "float": float, "bool": bool}
_STRING_METHODS = {
    "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "removeprefix", "removesuffix",
    "title", "capitalize", "isdigit", "find",
}  # fmt: skip
_MOST_TEXTS = 64
#: A module imported by a name that may be any of more than these is not followed: it would be every one of them.
_MOST_IMPORTS = 12
#: Results of results of calls outside the checkout are followed this far: `torch.cuda.CUDAGraph().pool()`.
_MOST_CALLS = 2
_LONGEST_TEXT = 2000
_QUEUES = (
    "queue.Queue", "queue.SimpleQueue", "queue.LifoQueue", "queue.PriorityQueue", "asyncio.Queue", "weakref.WeakSet",
)  # fmt: skip


class Models:
    """Semantics of values that are no code of the checkout."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world
        self._externals: dict[str, Callable[[Frame, Arguments, CallRecord, Hashable], Values]] = {
            "functools.partial": self._partial, "functools.partialmethod": self._partialmethod,
            "functools.wraps": self._wraps, "functools.update_wrapper": self._first, "functools.lru_cache": self._cache,
            "functools.cache": self._cache, "functools.cached_property": self._property,
            "contextlib.contextmanager": self._contextmanager, "contextlib.asynccontextmanager": self._contextmanager,
            "contextlib.nullcontext": self._nullcontext, "copy.copy": self._first, "copy.deepcopy": self._first,
            "typing.cast": self._second, "dataclasses.replace": self._first, "dataclasses.field": self._field,
            "collections.defaultdict": self._defaultdict, "collections.OrderedDict": self._dict_call,
            "collections.deque": self._sequence_call, "importlib.import_module": self._import_module,
            "pkgutil.iter_modules": self._iter_modules, "pkgutil.walk_packages": self._iter_modules,
            "os.environ.get": self._environment, "os.getenv": self._environment, "weakref.ref": self._weak,
            "weakref.proxy": self._first, "asyncio.run": self._first, "types.MethodType": self._method_type,
            "itertools.chain": self._chain, "operator.attrgetter": self._unknown,
            "types.SimpleNamespace": self._namespace, "threading.local": self._namespace,
            "contextvars.ContextVar": self._context_variable, "types.MappingProxyType": self._first,
            "weakref.WeakKeyDictionary": self._dict_call, "weakref.WeakValueDictionary": self._dict_call,
            "functools.reduce": self._reduce, "torch.nn.ModuleList": self._sequence_call,
            "torch.nn.ModuleDict": self._dict_call, "torch.nn.Sequential": self._sequential,
        }  # fmt: skip
        self._externals |= dict.fromkeys(_QUEUES, self._sequence_call)

    # -- containers

    def iterate(self, values: Values) -> Values:
        """What iterating over any of the values yields."""
        found: set[Value] = set()
        heap = self._world.heap
        for value in values:
            if isinstance(value, Container):
                if value.kind == "dict":
                    keys = heap.read(heap.cell(("keys", value)))
                    found |= keys
                    if heap.read(heap.cell(("e", value, None))) and not keys:
                        found |= ANYTHING
                else:
                    found |= self._world.all_elements(value)
            elif isinstance(value, Typed):
                found |= ANYTHING if value.mapping else value.elements
            elif isinstance(value, Generated):
                found |= heap.read(value.activation.yields)
            elif isinstance(value, ClassValue) and "enum" in value.marks:
                found |= self.members(value)
            elif isinstance(value, Instance):
                fields = self.tuple_fields(value)
                if fields is not None:
                    for name in fields:
                        found |= self._in.attributes.of_instance(value, name)
                else:
                    found |= self._iterate_object(value)
            elif isinstance(value, (Unknown, Scanned)):
                found.add(value)
            elif isinstance(value, Constant) and value.value is None:
                continue
            else:
                found |= ANYTHING
        return frozenset(found)

    def tuple_fields(self, value: Value) -> list[str] | None:
        """Fields of a named tuple, in order; None for any other value."""
        if not isinstance(value, Instance) or "namedtuple" not in value.cls.marks:
            return None
        owners = [base for base in reversed(value.cls.mro) if isinstance(base, ClassValue)]
        return list(dict.fromkeys(name for base in owners for name in base.fields))

    def _iterate_object(self, value: Instance) -> Values:
        found: set[Value] = set()
        for concrete in self._world.concrete(value):
            iterator = self._in.attributes.class_level(concrete.cls, "__iter__", concrete)
            if iterator:
                produced = self._in.calls.call_simple(iterator, [])
                for item in produced:
                    if isinstance(item, Instance):
                        following = self._in.attributes.class_level(item.cls, "__next__", item)
                        found |= self._in.calls.call_simple(following, [])
                    else:
                        found |= self.iterate(frozenset((item,)))
                continue
            getter = self._in.attributes.class_level(concrete.cls, "__getitem__", concrete)
            found |= self._in.calls.call_simple(getter, [ANYTHING]) if getter else ANYTHING
        return frozenset(found)

    def members(self, cls: ClassValue) -> Values:
        """Members of an enumeration, nothing for any other class."""
        found: set[Value] = set()
        for base in cls.mro:
            if isinstance(base, ClassValue) and "enum" in base.marks:
                for statement in base.facts.body:
                    if statement[0] == "=" and statement[2][0][0] == "n":
                        found.add(EnumMember.of(base, statement[2][0][1]))
        return frozenset(found)

    def list_of(self, frame: Frame, key: Expression, values: Values) -> Values:
        container = self._world.container("list", (frame.activation, id(key), "rest"))
        self._world.put(container, None, values)
        return frozenset((container,))

    def combine(self, frame: Frame, e: Expression, left: Values, right: Values) -> Values:
        """`a + b`, `a * n`, `a | b` where a side is a container."""
        containers = [v for v in (*left, *right) if isinstance(v, Container)]
        kind = containers[0].kind
        result = self._world.container(kind, (frame.activation, id(e)))
        for container in containers:
            if kind == "dict":
                self.update(result, frozenset((container,)))
            else:
                self._world.put(result, None, self._world.all_elements(container))
        if any(isinstance(v, Unknown) for v in (*left, *right)) and e[1] == "+":
            self._world.put(result, None, ANYTHING)
        return frozenset((result,))

    def store(self, container: Container, keys: Values, values: Values) -> None:
        """`container[key] = values` for any of the keys."""
        for key in keys:
            known = key_of(key) is not None
            self._world.put(container, key if known else None, values)
            if not known and container.kind == "dict":
                heap = self._world.heap
                heap.write(heap.cell(("keys", container)), frozenset((key,)))

    def update(self, container: Container, values: Values) -> None:
        """`container.update(values)`."""
        heap = self._world.heap
        for value in values:
            if isinstance(value, Container) and value.kind == "dict":
                for key in heap.read(heap.cell(("keys", value))):
                    if key_of(key) is not None:
                        self._world.put(container, key, self._world.element(value, key))
                self._world.put(container, None, heap.read(heap.cell(("e", value, None))))
            elif isinstance(value, Container):
                for pair in self._world.all_elements(value):
                    if isinstance(pair, Container) and pair.length == 2:
                        self.store(
                            container,
                            self._world.element(pair, Constant.of(0)),
                            self._world.element(pair, Constant.of(1)),
                        )
            elif isinstance(value, Unknown):
                self._world.put(container, None, frozenset((value,)))

    def store_item(self, frame: Frame, owners: Values, keys: Values, values: Values) -> None:
        """`owner[key] = values`."""
        for owner in owners:
            if isinstance(owner, Container):
                self.store(owner, keys, values)
            elif isinstance(owner, Instance):
                for concrete in self._world.concrete(owner):
                    setter = self._in.attributes.class_level(concrete.cls, "__setitem__", concrete)
                    self._in.calls.call_simple(setter, [keys, values])

    def load_item(self, frame: Frame, owners: Values, keys: Values) -> Values:
        """`owner[key]`."""
        found: set[Value] = set()
        for owner in owners:
            if isinstance(owner, Container):
                found |= self._load(owner, keys)
            elif isinstance(owner, Typed):
                found |= owner.elements
            elif isinstance(owner, ClassValue):
                found |= self._class_item(owner, keys)
            elif isinstance(owner, Instance):
                fields = self.tuple_fields(owner)
                if fields is not None:
                    found |= self._field_item(owner, fields, keys)
                    continue
                for concrete in self._world.concrete(owner):
                    getter = self._in.attributes.class_level(concrete.cls, "__getitem__", concrete)
                    if getter:
                        found |= self._in.calls.call_simple(getter, [keys])
                    else:
                        found |= ANYTHING
            elif isinstance(owner, External):
                if owner.path == "os.environ":
                    found |= self._environment_values(keys)
                elif "(" in owner.path:
                    found |= ANYTHING
                else:
                    found.add(owner)
            elif isinstance(owner, (Unknown, Builtin)):
                found.add(owner)
            elif isinstance(owner, Constant) and owner.value is None:
                continue
            else:
                found |= ANYTHING
        return frozenset(found)

    def _field_item(self, owner: Instance, fields: list[str], keys: Values) -> Values:
        """`named_tuple[index]`."""
        found: set[Value] = set()
        for key in keys:
            index = key.value if isinstance(key, Constant) else None
            exact = isinstance(index, int) and -len(fields) <= index < len(fields)
            for name in [fields[index]] if exact else fields:  # type: ignore[index]
                found |= self._in.attributes.of_instance(owner, name)
        return frozenset(found)

    def _load(self, owner: Container, keys: Values) -> Values:
        found: set[Value] = set()
        for key in keys:
            known = key_of(key)
            if isinstance(key, Constant) and isinstance(key.value, int) and owner.kind in ("tuple", "list"):
                position = key.value
                if position < 0 and owner.length is not None:
                    position += owner.length
                if position < 0 or owner.length is None:
                    found |= self._world.all_elements(owner)
                else:
                    found |= self._world.element(owner, Constant.of(position))
                continue
            values = self._world.element(owner, key if known is not None else None)
            found |= self._specialized(values, key)
            if owner.factory and (known is None or not values):
                found |= self._missing(owner)
        return frozenset(found)

    def _missing(self, owner: Container) -> Values:
        """The value that a `defaultdict` makes for a missing key."""
        return self._in.calls.call_simple(owner.factory, [], ("missing", owner.serial), Known.REGISTRY)

    def _specialized(self, values: Values, key: Value) -> Values:
        """Classes of a scanned package under a known name."""
        if not any(isinstance(v, Scanned) and v.kind == "class" for v in values):
            return values
        if not isinstance(key, Constant) or not isinstance(key.value, str):
            return values
        found: set[Value] = set()
        for value in values:
            if isinstance(value, Scanned) and value.kind == "class":
                for module in self._world.scanned_class_files(value.package, key.value):
                    found |= self._in.attributes.of_module(module, key.value)
            else:
                found.add(value)
        return frozenset(found)

    def _class_item(self, owner: ClassValue, keys: Values) -> Values:
        if "enum" in owner.marks:
            names = [k.value for k in keys if isinstance(k, Constant) and isinstance(k.value, str)]
            if names and len(names) == len(keys):
                members = {m.name: m for m in self.members(owner) if isinstance(m, EnumMember)}
                return frozenset(members[name] for name in names if name in members)
            return self.members(owner)
        return frozenset((owner,))

    def contains(self, left: Values, right: Values) -> Values:
        """`left in right`."""
        if not left or not right:
            return NOTHING
        results: set[bool | None] = set()
        for container in right:
            for item in left:
                results.add(self._contains_one(item, container))
        if results == {True}:
            return frozenset((TRUE,))
        if results == {False}:
            return frozenset((FALSE,))
        depends = depends_of(left) + depends_of(right)
        if depends:
            return frozenset((Unknown.of(depends),))
        return BOTH if None not in results else ANYTHING

    def _contains_one(self, item: Value, container: Value) -> bool | None:
        if isinstance(item, Constant) and isinstance(container, Constant):
            if isinstance(item.value, str) and isinstance(container.value, str):
                return item.value in container.value
            return None
        if not isinstance(container, Container):
            return None
        heap = self._world.heap
        key = key_of(item)
        if key is None:
            return None
        cell = ("keys", container) if container.kind == "dict" else ("all", container)
        elements = heap.read(heap.cell(cell))
        present = any(key_of(e) == key for e in elements)
        vague = any(key_of(e) is None for e in elements) or (
            container.kind == "dict" and bool(heap.read(heap.cell(("e", container, None))))
        )
        if container.length is None and container.kind not in ("set", "dict"):
            return None
        if present:
            return True if container.kind in ("tuple", "set") or container.length is not None else None
        return None if vague or container.kind == "dict" else False

    def _new(self, kind: str, site: Hashable, frame: Frame) -> Container:
        return self._world.container(kind, (frame.activation, site))

    # -- methods of containers and strings

    def method(self, frame: Frame, callee: Method, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """A call of a container's, string's or generator's method."""
        receiver, name = callee.receiver, callee.name
        if isinstance(receiver, Container):
            return self._container_method(frame, receiver, name, arguments, site)
        if isinstance(receiver, Typed):
            if name in ("items",):
                pair = self._new("tuple", (site, "pair"), frame)
                pair.length = 2
                self._world.put(pair, Constant.of(0), ANYTHING)
                self._world.put(pair, Constant.of(1), receiver.elements)
                result = self._new("list", site, frame)
                self._world.put(result, None, frozenset((pair,)))
                return frozenset((result,))
            if name in ("get", "pop", "popleft", "setdefault", "__getitem__"):
                return receiver.elements | JUST_NONE
            if name == "values":
                return frozenset((Typed.of(receiver.elements, False),))
            if name == "copy":
                return frozenset((receiver,))
            self._in.calls.escape(frame, arguments.every())
            return ANYTHING
        if isinstance(receiver, Constant):
            return self._string_method(receiver, name, arguments, frame, site)
        if isinstance(receiver, Generated):
            return self._world.heap.read(receiver.activation.yields) if name in ("__next__", "send") else ANYTHING
        if isinstance(receiver, FunctionValue) and name == "__get__":
            return frozenset(Bound.of(receiver, v) for v in arguments.get(0, "instance"))
        return ANYTHING

    def _string_method(
        self, receiver: Constant, name: str, arguments: Arguments, frame: Frame, site: Hashable
    ) -> Values:
        if not isinstance(receiver.value, str):
            return ANYTHING
        if name in ("split", "rsplit", "splitlines", "partition", "rpartition"):
            return self._split(receiver, name, arguments, frame, site)
        if name not in _STRING_METHODS or arguments.keywords or arguments.star:
            return ANYTHING
        choices: list[list[str | int]] = [[]]
        for values in arguments.positional:
            constants: list[str | int] = []
            for value in values:
                if isinstance(value, Container) and value.kind == "tuple" and name in ("startswith", "endswith"):
                    return ANYTHING
                if not isinstance(value, Constant) or not isinstance(value.value, (str, int)):
                    return ANYTHING
                constants.append(value.value)
            choices = [[*head, item] for head in choices for item in constants]
            if len(choices) > _MOST_TEXTS:
                return ANYTHING
        found: set[Value] = set()
        for choice in choices:
            try:
                result = getattr(receiver.value, name)(*choice)
            except (TypeError, ValueError, OverflowError):
                continue
            if isinstance(result, str) and len(result) > _LONGEST_TEXT:
                return ANYTHING
            found.add(Constant.of(result, receiver.origin))
        return frozenset(found)

    def _split(self, receiver: Constant, name: str, arguments: Arguments, frame: Frame, site: Hashable) -> Values:
        """`"a.b".rsplit(".", 1)`: a list of fixed length for each way that the arguments may be."""
        given = [
            *arguments.positional,
            *(arguments.keywords[k] for k in ("sep", "maxsplit") if k in arguments.keywords),
        ]
        choices: list[list[str | int]] = [[]]
        for values in given:
            constants = [v.value for v in values if isinstance(v, Constant) and isinstance(v.value, (str, int))]
            choices = [[*head, item] for head in choices for item in constants]
        found: set[Value] = set()
        for choice in choices[:_MOST_TEXTS]:
            try:
                parts = getattr(receiver.value, name)(*choice)
            except (TypeError, ValueError, OverflowError):
                continue
            result = self._new("list" if "split" in name else "tuple", (site, receiver.value, *choice), frame)
            result.length = len(parts)
            for position, part in enumerate(parts):
                self._world.put(result, Constant.of(position), frozenset((Constant.of(part, receiver.origin),)))
            found.add(result)
        return frozenset(found) or ANYTHING

    def slice(self, frame: Frame, e: Expression, owners: Values, bounds: list[Values]) -> Values:
        """`owner[a:b:c]`: a sequence of the same elements."""
        known: list[int | None] = []
        for values in bounds:
            constants = [v.value for v in values if isinstance(v, Constant)]
            if len(constants) != 1 or len(values) != 1 or not isinstance(constants[0], (int, type(None))):
                known = []
                break
            known.append(constants[0])
        found: set[Value] = set()
        for owner in owners:
            if isinstance(owner, Constant) and isinstance(owner.value, str) and known and known[2] != 0:
                found.add(Constant.of(owner.value[slice(*known)], owner.origin))
            elif isinstance(owner, Container) and owner.kind in ("list", "tuple"):
                # One part for each length: `rest = rest[1:]` shall not make another one each time around.
                length = owner.length
                if length is not None and known and known[2] != 0:
                    part = self._new(owner.kind, (id(e), "slice", length), frame)
                    positions = range(length)[slice(*known)]
                    part.length = len(positions)
                    for place, position in enumerate(positions):
                        self._world.put(part, Constant.of(place), self._world.element(owner, Constant.of(position)))
                else:
                    part = self._new(owner.kind, (id(e), "slice"), frame)
                    part.length = None
                    self._world.put(part, None, self._world.all_elements(owner))
                found.add(part)
            elif (isinstance(owner, Typed) and not owner.mapping) or isinstance(owner, Unknown):
                found.add(owner)
            elif isinstance(owner, Instance):
                found |= self.load_item(frame, frozenset((owner,)), ANYTHING)
            elif not (isinstance(owner, Constant) and owner.value is None):
                found |= ANYTHING
        return frozenset(found)

    def _container_method(
        self, frame: Frame, receiver: Container, name: str, arguments: Arguments, site: Hashable
    ) -> Values:
        world = self._world
        heap = world.heap
        first = arguments.get(0, "key")
        if receiver.kind == "contextvar":
            if name == "set":
                world.put(receiver, None, first)
            return world.all_elements(receiver) | first if name == "get" else ANYTHING
        if name in ("append", "add", "appendleft", "put", "put_nowait"):
            receiver.length = None
            world.put(receiver, None, first)
            return JUST_NONE
        if name == "insert":
            receiver.length = None
            world.put(receiver, None, arguments.get(1, "object"))
            return JUST_NONE
        if name in ("extend", "extendleft"):
            receiver.length = None
            world.put(receiver, None, self.iterate(first))
            return JUST_NONE
        if name == "update":
            if receiver.kind == "dict":
                self.update(receiver, first)
                for key, values in arguments.keywords.items():
                    world.put(receiver, Constant.of(key), values)
            else:
                world.put(receiver, None, self.iterate(first))
            return JUST_NONE
        if name in ("get", "get_nowait", "pop", "setdefault", "__getitem__", "popleft", "popitem"):
            return self._fetch(receiver, name, arguments)
        if name == "items":
            return self._items(frame, receiver, site)
        if name == "values":
            result = self._new("list", site, frame)
            world.put(result, None, world.all_elements(receiver))
            return frozenset((result,))
        if name == "keys":
            result = self._new("list", site, frame)
            world.put(result, None, heap.read(heap.cell(("keys", receiver))))
            return frozenset((result,))
        if name in ("copy", "union", "__iter__", "intersection", "difference"):
            if name == "union":
                world.put(receiver, None, self.iterate(first))
            return frozenset((receiver,))
        if name in ("sort", "reverse", "clear", "remove", "discard"):
            self._in.calls.escape(frame, arguments.every())
            return JUST_NONE
        return ANYTHING

    def _fetch(self, receiver: Container, name: str, arguments: Arguments) -> Values:
        world = self._world
        if receiver.kind != "dict" or not arguments.positional:
            return world.all_elements(receiver)
        keys = arguments.positional[0]
        found: set[Value] = set(self._load(receiver, keys))
        default = arguments.get(1, "default")
        if name == "setdefault":
            self.store(receiver, keys, default)
            return frozenset(found) | default
        if name == "get":
            if default:
                found |= default
            elif not found or any(key_of(k) is None for k in keys) or not self._certain(receiver, keys):
                found.add(NONE)
        elif name == "pop" and default:
            found |= default
        return frozenset(found)

    def _certain(self, receiver: Container, keys: Values) -> bool:
        heap = self._world.heap
        known = {key_of(k) for k in heap.read(heap.cell(("keys", receiver)))}
        return all(key_of(k) in known for k in keys)

    def _items(self, frame: Frame, receiver: Container, site: Hashable) -> Values:
        world = self._world
        heap = world.heap
        result = self._new("list", site, frame)
        keys = heap.read(heap.cell(("keys", receiver)))
        for key in sorted(keys, key=repr):
            pair = self._new("tuple", (site, key), frame)
            pair.length = 2
            world.put(pair, Constant.of(0), frozenset((key,)))
            world.put(pair, Constant.of(1), world.element(receiver, key if key_of(key) is not None else None))
            world.put(result, None, frozenset((pair,)))
        anywhere = heap.read(heap.cell(("e", receiver, None)))
        if anywhere:
            pair = self._new("tuple", (site, None), frame)
            pair.length = 2
            world.put(pair, Constant.of(0), ANYTHING)
            world.put(pair, Constant.of(1), anywhere)
            world.put(result, None, frozenset((pair,)))
        return frozenset((result,))

    # -- builtins

    def builtin(self, frame: Frame, name: str, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """A call of a builtin."""
        first = arguments.get(0, "object")
        if name == "getattr":
            return self._getattr(first, arguments)
        if name == "setattr":
            self._setattr(first, arguments)
            return JUST_NONE
        if name == "hasattr":
            return self._hasattr(first, arguments.get(1, "name"))
        if name == "isinstance":
            return self._isinstance(first, arguments.get(1, "cls"))
        if name == "issubclass":
            return ANYTHING
        if name == "callable":
            return (
                BOTH
                if any(isinstance(v, Unknown) for v in first)
                else frozenset(
                    TRUE if isinstance(v, (FunctionValue, Bound, ClassValue, Wrapped)) else FALSE for v in first
                )
            )
        if name == "super":
            return self._super(frame, arguments)
        if name == "object.__new__":
            made = frozenset(Instance.of(v) for v in first if isinstance(v, ClassValue))
            for instance in made:
                self._world.instantiated(instance)
            return made or ANYTHING
        if name in _WRAPPERS:
            return frozenset(Wrapped.of(v, _WRAPPERS[name]) for v in first)
        if name in ("list", "tuple", "set", "frozenset"):
            return self._sequence_call(frame, arguments, record, (site, name))
        if name == "dict":
            return self._dict_call(frame, arguments, record, site)
        if name in _PASSING:
            self._in.calls.escape(frame, arguments.keywords.values())
            result = self._new("list", site, frame)
            self._world.put(result, None, self.iterate(first))
            return frozenset((result,))
        if name in ("next", "min", "max"):
            self._in.calls.escape(frame, arguments.keywords.values())
            return self._next(name, first, arguments)
        if name == "enumerate":
            return self._pairs(frame, site, [ANYTHING, self.iterate(first)])
        if name == "zip":
            return self._pairs(frame, site, [self.iterate(values) for values in arguments.positional])
        if name in ("map", "filter"):
            elements = [self.iterate(values) for values in arguments.positional[1:]]
            result = self._new("list", site, frame)
            returned: set[Value] = set()
            for callee in first:
                returned |= self._in.calls.invoke(frame, callee, Arguments(list(elements)), record, (site, name))
            self._world.put(
                result, None, frozenset(returned) if name == "map" else elements[0] if elements else NOTHING
            )
            return frozenset((result,))
        if name == "type":
            return self._type(first, arguments)
        if name in _TYPES:
            return self._convert(_TYPES[name], first, arguments)
        if name in ("any", "all"):
            return self._quantifier(name, first)
        if name == "len":
            lengths = [v.length for v in first if isinstance(v, Container)]
            if lengths and len(lengths) == len(first) and all(n is not None for n in lengths):
                return frozenset(Constant.of(n) for n in lengths)
            return ANYTHING
        if name == "vars" or name == "globals":
            return ANYTHING
        if name == "__import__":
            return self._import_module(frame, arguments, record, site)
        if name == "print":
            return JUST_NONE
        self._in.calls.escape(frame, arguments.every())
        return ANYTHING

    def _getattr(self, owners: Values, arguments: Arguments) -> Values:
        names = arguments.get(1, "name")
        default = arguments.get(2, "default")
        found: set[Value] = set()
        for name in names:
            if isinstance(name, Constant) and isinstance(name.value, str):
                for owner in owners:
                    if default and isinstance(owner, Instance) and not self._exists(owner, name.value):
                        found |= default
                        continue
                    found |= self._in.attributes.get(frozenset((owner,)), name.value) or default
            elif isinstance(name, Pattern):
                found |= self._matching(owners, name)
                found |= default
            else:
                found.add(Unknown.of(depends_of(names)))
        if default and not names:
            return NOTHING
        return frozenset(found)

    def _exists(self, owner: Instance, name: str) -> bool:
        """Whether anything gives this attribute; a read that finds nothing waits for it."""
        heap = self._world.heap
        settled = self._world.oracle.field(self._in, owner.cls.qualname, name)
        if settled is not None:
            return True
        for concrete in self._world.concrete(owner):
            if heap.read(heap.cell(("attribute", concrete.key, name))):
                return True
            if self._in.attributes.class_level(concrete.cls, name, concrete):
                return True
            if self._in.attributes.has_dynamic(concrete.cls):
                return True
            if any(isinstance(b, External) and not b.path.startswith(("abc.", "typing.")) for b in concrete.cls.mro):
                return True
        return False

    def _matching(self, owners: Values, pattern: Pattern) -> Values:
        found: set[Value] = set()
        for owner in owners:
            if isinstance(owner, Instance):
                for concrete in self._world.concrete(owner):
                    for base in concrete.cls.mro:
                        if isinstance(base, ClassValue):
                            for name in _defined_names(base):
                                if name.startswith(pattern.prefix) and name.endswith(pattern.suffix):
                                    found |= self._in.attributes.of_instance(concrete, name)
            elif isinstance(owner, ModuleValue):
                for name in list(self._world.globals.get(owner.name, {})):
                    if name.startswith(pattern.prefix) and name.endswith(pattern.suffix):
                        found |= self._in.attributes.of_module(owner.name, name)
        return frozenset(found)

    def _setattr(self, owners: Values, arguments: Arguments) -> None:
        values = arguments.get(2, "value")
        for name in arguments.get(1, "name"):
            if isinstance(name, Constant) and isinstance(name.value, str):
                self._in.attributes.put(owners, name.value, values)

    def _hasattr(self, owners: Values, names: Values) -> Values:
        found: set[Value] = set()
        for owner in owners:
            for name in names:
                if isinstance(owner, Instance) and isinstance(name, Constant) and isinstance(name.value, str):
                    own = self._in.attributes.class_level(owner.cls, name.value, owner)
                    if own and not owner.fuzzy:
                        found.add(TRUE)
                        continue
                    if not self._exists(owner, name.value):
                        found.add(FALSE)
                        continue
                found |= ANYTHING
        return frozenset(found)

    def _isinstance(self, owners: Values, classes: Values) -> Values:
        wanted: set[Value] = set()
        for value in classes:
            wanted |= self._world.all_elements(value) if isinstance(value, Container) else {value}
        found: set[Value] = set()
        for owner in owners:
            found |= self.is_instance(owner, wanted)
        return frozenset(found)

    def is_instance(self, owner: Value, wanted: set[Value]) -> Values:
        """Whether one value is an instance of any of the classes."""
        if isinstance(owner, Unknown):
            return frozenset((owner,))
        names = {v.name for v in wanted if isinstance(v, Builtin)}
        own = [v for v in wanted if isinstance(v, ClassValue)]
        if "object" in names:
            return frozenset((TRUE,))
        if any(isinstance(b, External) and b.path.endswith("Protocol") for cls in own for b in cls.mro):
            return BOTH  # a protocol asks for attributes, not for a base
        settled = len(own) + len(names) == len(wanted)
        if isinstance(owner, (Instance, EnumMember, Configured)):
            if any(cls in owner.cls.mro for cls in own):
                return frozenset((TRUE,))
            externals = {b.path for b in owner.cls.mro if isinstance(b, External)}
            if names & externals or any(isinstance(v, External) and v.path in externals for v in wanted):
                return frozenset((TRUE,))
            if isinstance(owner, Instance) and owner.fuzzy:
                return BOTH
            # A class from outside may stand above a base from outside, not above one of the checkout alone.
            return frozenset((FALSE,)) if len(own) == len(wanted) or not externals else BOTH
        if not settled:
            return BOTH
        kinds = _builtin_kinds(owner)
        if kinds is None:
            return BOTH if names else frozenset((FALSE,)) if not isinstance(owner, (External, Typed)) else BOTH
        return frozenset((TRUE if names & kinds else FALSE,))

    def _super(self, frame: Frame, arguments: Arguments) -> Values:
        owner = frame.activation.owner
        receiver: Value | None = frame.activation.receiver
        if arguments.positional:
            owners = [v for v in arguments.positional[0] if isinstance(v, ClassValue)]
            owner = owners[0] if owners else owner
        function = frame.activation.function
        parent = frame.activation.parent
        while owner is None and parent is not None:  # a nested function of a method
            owner, receiver, function = parent.owner, parent.receiver, parent.function
            parent = parent.parent
        if owner is None or function is None:
            return ANYTHING
        if receiver is None:
            parameters = function.facts.parameters
            values = self._world.heap.read(frame.activation.parameter(parameters[0].name)) if parameters else NOTHING
            return frozenset(Super.of(owner, v) for v in values if isinstance(v, (Instance, ClassValue)))
        return frozenset((Super.of(owner, receiver),))

    def _next(self, name: str, first: Values, arguments: Arguments) -> Values:
        if name == "next":
            return self.iterate(first) | arguments.get(1, "default")
        groups = [self.iterate(first)] if len(arguments.positional) == 1 else arguments.positional
        if len(groups) > 1:
            constants = [[v.value for v in g if isinstance(v, Constant)] for g in groups]
            if all(len(c) == len(g) == 1 for c, g in zip(constants, groups, strict=True)):
                try:
                    chosen = (min if name == "min" else max)(c[0] for c in constants)  # type: ignore[type-var]
                    return frozenset((Constant.of(chosen),))
                except TypeError:
                    return ANYTHING
        found: set[Value] = set()
        for group in groups:
            found |= {v for v in group if not isinstance(v, Constant)} or (ANYTHING if group else NOTHING)
        return frozenset(found)

    def _pairs(self, frame: Frame, site: Hashable, columns: list[Values]) -> Values:
        pair = self._new("tuple", (site, "row"), frame)
        pair.length = len(columns)
        for position, values in enumerate(columns):
            self._world.put(pair, Constant.of(position), values)
        result = self._new("list", site, frame)
        if all(columns):
            self._world.put(result, None, frozenset((pair,)))
        return frozenset((result,))

    def _type(self, first: Values, arguments: Arguments) -> Values:
        if len(arguments.positional) > 1:
            return ANYTHING
        found: set[Value] = set()
        for value in first:
            if isinstance(value, (Instance, EnumMember, Configured)):
                found.add(value.cls)
            elif isinstance(value, Unknown):
                found.add(value)
            else:
                found |= ANYTHING
        return frozenset(found)

    def _convert(self, kind: type, first: Values, arguments: Arguments) -> Values:
        if not arguments.positional:
            return frozenset((Constant.of(kind()),))
        found: set[Value] = set()
        for value in first:
            if isinstance(value, Constant) and len(arguments.positional) == 1:
                try:
                    found.add(Constant.of(kind(value.value), value.origin))
                except (TypeError, ValueError, OverflowError):
                    continue
            elif isinstance(value, Unknown):
                found.add(value)
            elif kind is bool:
                from sgl_graph.analyzer.static.link.truth import truth_of_one

                truth = truth_of_one(value)
                found |= BOTH if truth is None else frozenset((Constant.of(truth),))
            else:
                found |= ANYTHING
        return frozenset(found)

    def _quantifier(self, name: str, first: Values) -> Values:
        from sgl_graph.analyzer.static.link.truth import truth_of_one

        elements = self.iterate(first)
        truths = {truth_of_one(v) for v in elements}
        stops = name == "any"
        if truths == {not stops}:
            return frozenset((Constant.of(not stops),))
        if all(isinstance(v, Container) and v.length for v in first) and truths == {stops}:
            return frozenset((Constant.of(stops),))
        if not elements:
            return NOTHING if not first else ANYTHING
        depends = depends_of(elements)
        return frozenset((Unknown.of(depends),)) if depends else ANYTHING

    # -- the standard library and other code outside the checkout

    def external(self, frame: Frame, path: str, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """A call of something outside the checkout."""
        model = self._externals.get(path)
        if model is not None:
            return model(frame, arguments, record, site)
        target = arguments.keywords.get("target")
        if target is not None:
            return self._spawn(frame, target, arguments, record, site, path)
        if path.endswith((".submit", ".run_in_executor", ".call_soon", ".to_thread")):
            return self._submit(frame, arguments, record, site, path)
        if path.endswith(".enter_context") and arguments.positional:
            return self._in.calls.enter_values(frame, arguments.positional[0])
        wrapped: Values = NOTHING
        if arguments.positional:
            first = arguments.positional[0]
            wrapped = frozenset(v for v in first if isinstance(v, (FunctionValue, Bound, Wrapped)))
        if path == "functools.wraps()":
            return arguments.get(0, "wrapper")
        self._in.calls.escape(frame, arguments.every())
        result: set[Value] = set(wrapped)
        if self._in.keeps(path) and path.count("(") < _MOST_CALLS:
            result.add(External.of(f"{path}()"))
        else:
            result |= ANYTHING
        return frozenset(result)

    def _spawn(
        self, frame: Frame, target: Values, arguments: Arguments, record: CallRecord, site: Hashable, path: str
    ) -> Values:
        """`Thread(target=..., args=...)`, `Process(target=..., kwargs=...)`."""
        given = Arguments()
        items = arguments.keywords.get("args", NOTHING)
        for value in items:
            if isinstance(value, Container) and value.length is not None and len(items) == 1:
                given.positional = [self._world.element(value, Constant.of(index)) for index in range(value.length)]
            else:
                given.star |= self.iterate(frozenset((value,)))
        for value in arguments.keywords.get("kwargs", NOTHING):
            if isinstance(value, Container) and value.kind == "dict":
                heap = self._world.heap
                for key in heap.read(heap.cell(("keys", value))):
                    if isinstance(key, Constant) and isinstance(key.value, str):
                        given.keywords[key.value] = self._world.element(value, key)
        for callee in target:
            implicit = self._world.record_implicit(frame, callee, self._in.line)
            self._in.calls.invoke(frame, callee, given, implicit, (site, "target"))
        return frozenset((External.of(f"{path}()"),)) if self._in.keeps(path) else ANYTHING

    def _submit(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable, path: str) -> Values:
        """`executor.submit(function, *arguments)`."""
        positional = arguments.positional
        start = 1 if path.endswith(".run_in_executor") else 0
        if len(positional) > start:
            for callee in positional[start]:
                if isinstance(callee, (FunctionValue, Bound)):
                    implicit = self._world.record_implicit(frame, callee, self._in.line)
                    given = Arguments(positional[start + 1 :], arguments.keywords)
                    self._in.calls.invoke(frame, callee, given, implicit, (site, "submit"))
        return ANYTHING

    def _first(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return arguments.get(0, "object")

    def _second(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return arguments.get(1, "val")

    def _unknown(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return ANYTHING

    def _partial(
        self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable, kind: str = "partial"
    ) -> Values:
        world = self._world
        heap = world.heap
        container = self._new(kind, site, frame)
        container.length = max(len(arguments.positional) - 1, 0)
        if arguments.positional:
            world.put(container, Constant.of("func"), arguments.positional[0])
        for index, values in enumerate(arguments.positional[1:]):
            heap.write(heap.cell(("partial", container, index)), values)
        for name, values in arguments.keywords.items():
            heap.write(heap.cell(("partial-names", container)), frozenset((Constant.of(name),)))
            heap.write(heap.cell(("partial", container, name)), values)
        return frozenset((container,))

    def _partialmethod(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return self._partial(frame, arguments, record, site, "partialmethod")

    def _wraps(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return frozenset((External.of("functools.wraps()"),))

    def _cache(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        first = arguments.get(0, "user_function")
        functions = frozenset(v for v in first if isinstance(v, (FunctionValue, Bound, Wrapped)))
        return functions or frozenset((External.of("functools.wraps()"),))

    def _property(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return frozenset(Wrapped.of(v, "property") for v in arguments.get(0, "func"))

    def _contextmanager(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return frozenset(Wrapped.of(v, "contextmanager") for v in arguments.get(0, "func"))

    def _nullcontext(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        return frozenset((External.of("contextlib.nullcontext()"),))

    def _field(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        if "default" in arguments.keywords:
            return arguments.keywords["default"]
        found: set[Value] = set()
        for callee in arguments.keywords.get("default_factory", NOTHING):
            found |= self._in.calls.invoke(frame, callee, Arguments(), record, (site, "default"))
        return frozenset(found)

    def _defaultdict(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("dict", site, frame)
        container.factory = container.factory | arguments.get(0, "default_factory")
        if len(arguments.positional) > 1:
            self.update(container, arguments.positional[1])
        for key, values in arguments.keywords.items():
            self._world.put(container, Constant.of(key), values)
        return frozenset((container,))

    def _dict_call(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("dict", site, frame)
        for values in arguments.positional:
            self.update(container, values)
        for key, values in arguments.keywords.items():
            self._world.put(container, Constant.of(key), values)
        return frozenset((container,))

    def _sequence_call(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        kind = site[1] if isinstance(site, tuple) and site[1] in ("tuple", "set") else "list"
        first = arguments.get(0, "iterable")
        if kind == "tuple" and first and all(isinstance(v, Container) and v.kind == "tuple" for v in first):
            return first
        container = self._new(str(kind), site, frame)
        self._world.put(container, None, self.iterate(first))
        return frozenset((container,))

    def _sequential(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """`torch.nn.Sequential(*steps)`: calling it calls each step."""
        container = self._new("sequential", site, frame)
        for values in arguments.every():
            for value in values:
                nested = isinstance(value, Container) and value.kind == "dict"
                steps = self._world.all_elements(value) if nested else frozenset((value,))  # type: ignore[arg-type]
                self._world.put(container, None, steps)
        return frozenset((container,))

    def _namespace(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        """An object of which only the attributes that are stored are known."""
        container = self._new("namespace", site, frame)
        for name, values in arguments.keywords.items():
            self._world.put(container, Constant.of(name), values)
        if arguments.double:
            self._world.put(container, None, arguments.double)
        return frozenset((container,))

    def _context_variable(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("contextvar", site, frame)
        self._world.put(container, None, arguments.keywords.get("default", NOTHING))
        return frozenset((container,))

    def _reduce(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        elements = self.iterate(arguments.get(1, "iterable")) | arguments.get(2, "initial")
        found: set[Value] = set(elements)
        for callee in arguments.get(0, "function"):
            found |= self._in.calls.invoke(frame, callee, Arguments([elements, elements]), record, (site, "reduce"))
        return frozenset(found)

    def _chain(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("list", site, frame)
        for values in arguments.positional:
            self._world.put(container, None, self.iterate(values))
        return frozenset((container,))

    def _weak(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        container = self._new("partial", site, frame)
        container.length = 1
        self._world.put(container, Constant.of("func"), frozenset((External.of("copy.copy"),)))
        self._world.heap.write(self._world.heap.cell(("partial", container, 0)), arguments.get(0, "object"))
        return frozenset((container,))

    def _method_type(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        receivers = arguments.get(1, "instance")
        return frozenset(
            Bound.of(function, receiver) for function in arguments.get(0, "function") for receiver in receivers
        )

    def _import_module(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        found: set[Value] = set()
        names = arguments.get(0, "name")
        if len(names) > _MOST_IMPORTS:
            return frozenset((Unknown.of(depends_of(names)),))
        for name in names:
            if isinstance(name, Constant) and isinstance(name.value, str):
                dotted = name.value
                if dotted.startswith("."):
                    level = len(dotted) - len(dotted.lstrip("."))
                    dotted = frame.activation.module.absolute(dotted.lstrip("."), level)
                found |= self._in.attributes.imported(dotted, None)
            elif isinstance(name, Scanned):
                found.add(Scanned.of(name.package, "module"))
            else:
                found.add(Unknown.of(depends_of(frozenset((name,)))))
        return frozenset(found)

    def _iter_modules(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        packages = [v for v in arguments.get(0, "path") if isinstance(v, Scanned) and v.kind == "path"]
        if not packages:
            return ANYTHING
        rows = self._new("tuple", (site, "row"), frame)
        rows.length = 3
        for package in packages:
            self._world.put(rows, Constant.of(0), ANYTHING)
            self._world.put(rows, Constant.of(1), frozenset((Scanned.of(package.package, "name"),)))
            self._world.put(rows, Constant.of(2), ANYTHING)
        result = self._new("list", site, frame)
        self._world.put(result, None, frozenset((rows,)))
        return frozenset((result,))

    def _environment(self, frame: Frame, arguments: Arguments, record: CallRecord, site: Hashable) -> Values:
        values = self._environment_values(arguments.get(0, "key"))
        default = arguments.get(1, "default")
        if default and NONE in values:
            return frozenset(v for v in values if v is not NONE) | default
        return values

    def _environment_values(self, keys: Values) -> Values:
        found: set[Value] = set()
        for key in keys:
            known: Values | None = None
            if isinstance(key, Constant) and isinstance(key.value, str):
                known = self._world.oracle.environment(self._in, key.value)
            found |= ANYTHING if known is None else known
        return frozenset(found)

    def enum_member(self, cls: ClassValue, arguments: Arguments) -> Values:
        """`Color(value)`: the member of that value."""
        wanted = arguments.get(0, "value")
        members = [m for m in self.members(cls) if isinstance(m, EnumMember)]
        found: set[Value] = set()
        for value in wanted:
            if isinstance(value, EnumMember):
                found.add(value)
            elif isinstance(value, Constant):
                for member in members:
                    payload = payload_of(member)
                    if type(payload) is type(value.value) and payload == value.value:
                        found.add(member)
            else:
                return frozenset(members)
        return frozenset(found)


def _builtin_kinds(value: Value) -> set[str] | None:
    """Names of the builtin types that a value is an instance of; None when that is not known."""
    if isinstance(value, Constant):
        kind = type(value.value).__name__
        return {"bool", "int"} if kind == "bool" else {kind}
    if isinstance(value, Container):
        return {value.kind} if value.kind in ("list", "tuple", "dict", "set") else set()
    if isinstance(value, ClassValue):
        return {"type"}
    if isinstance(value, Typed):
        return {"dict"} if value.mapping else None
    if isinstance(value, (FunctionValue, Bound, ModuleValue, Super, Generated)):
        return set()
    return None


def _defined_names(cls: ClassValue) -> list[str]:
    functions = cls.module.facts.functions
    names = [functions[s[2]].name for s in cls.facts.body if s[0] == "def"]
    names += [s[2][0][1] for s in cls.facts.body if s[0] == "=" and s[2][0][0] == "n"]
    return names


__all__ = ["Known", "Models"]
