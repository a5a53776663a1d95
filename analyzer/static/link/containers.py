"""What lists, tuples, sets and dictionaries hold, and what indexing and iterating them yields."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Builtin, Container, Generated, Scanned, Typed
from sgl_graph.analyzer.static.link.rowless import is_plain
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    BOTH,
    FALSE,
    NOTHING,
    ROWLESS,
    TRUE,
    ClassValue,
    Constant,
    EnumMember,
    External,
    Instance,
    Unknown,
    Value,
    Values,
    just,
    resting_on,
)
from sgl_graph.analyzer.static.link.world import key_of
from sgl_graph.analyzer.static.linked import Known

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Containers:
    """Elements of containers, and of objects that act as such."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world

    def iterate(self, values: Values) -> Values:
        """What iterating over any of the values yields."""
        found: set[Value] = set()
        heap = self._world.heap
        for value in values:
            if isinstance(value, Container):
                if value.kind == "dict":
                    keys = heap.read(self._world.keys(value))
                    found |= keys
                    if heap.read(self._world.anywhere(value)) and not keys:
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
            elif value is not ROWLESS and not (isinstance(value, Constant) and value.value is None):
                found |= ANYTHING
        return frozenset(found)

    def rows(self, values: Values) -> tuple[list[list[Values]], Values]:
        """The items, each in its place, of every sequence whose length is fixed; and what else there is among the values."""
        rows: list[list[Values]] = []
        others: set[Value] = set()
        for value in values:
            length = value.length if isinstance(value, Container) and value.kind in ("list", "tuple") else None
            if isinstance(value, Container) and length is not None:
                rows.append([self._world.element(value, Constant.of(place)) for place in range(length)])
            else:
                others.add(value)
        return rows, frozenset(others)

    def tuple_fields(self, value: Value) -> list[str] | None:
        """Fields of a named tuple, in order; None for any other value."""
        if not isinstance(value, Instance) or "namedtuple" not in value.cls.marks:
            return None
        owners = [base for base in reversed(value.cls.mro) if isinstance(base, ClassValue)]
        return list(dict.fromkeys(name for base in owners for name in base.fields))

    def _iterate_object(self, value: Instance) -> Values:
        found: set[Value] = set()
        for concrete in self._world.concrete(value):
            iterator = self._in.class_level.find(concrete.cls, concrete, "__iter__")
            if iterator:
                produced = self._in.implicit.call_simple(iterator, [])
                for item in produced:
                    if isinstance(item, Instance):
                        following = self._in.class_level.find(item.cls, item, "__next__")
                        found |= self._in.implicit.call_simple(following, [])
                    else:
                        found |= self.iterate(just(item))
                continue
            getter = self._in.class_level.find(concrete.cls, concrete, "__getitem__")
            if getter:
                found |= self._in.implicit.call_simple(getter, [ANYTHING])
            elif not is_plain(concrete.cls):
                found |= ANYTHING
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
        return just(container)

    def store(self, container: Container, keys: Values, values: Values) -> None:
        """`container[key] = values` for any of the keys."""
        for key in keys:
            known = key_of(key) is not None
            self._world.put(container, key if known else None, values)
            if not known and container.kind == "dict":
                heap = self._world.heap
                heap.write(self._world.keys(container), just(key))

    def update(self, container: Container, values: Values) -> None:
        """`container.update(values)`."""
        heap = self._world.heap
        for value in values:
            if isinstance(value, Container) and value.kind == "dict":
                for key in heap.read(self._world.keys(value)):
                    if key_of(key) is not None:
                        self._world.put(container, key, self._world.element(value, key))
                    elif isinstance(key, Scanned):
                        heap.write(self._world.keys(container), just(key))
                self._world.put(container, None, heap.read(self._world.anywhere(value)))
            elif isinstance(value, Container):
                for pair in self._world.all_elements(value):
                    if isinstance(pair, Container) and pair.length == 2:
                        self.store(
                            container,
                            self._world.element(pair, Constant.of(0)),
                            self._world.element(pair, Constant.of(1)),
                        )
            elif isinstance(value, Unknown):
                self._world.put(container, None, just(value))

    def store_item(self, frame: Frame, owners: Values, keys: Values, values: Values) -> None:
        """`owner[key] = values`."""
        for owner in owners:
            if isinstance(owner, Container):
                if owner.changeable:
                    self.store(owner, keys, values)
            elif isinstance(owner, Instance):
                for concrete in self._world.concrete(owner):
                    setter = self._in.class_level.find(concrete.cls, concrete, "__setitem__")
                    self._in.implicit.call_simple(setter, [keys, values])

    def store_slice(self, owners: Values, values: Values) -> Values:
        """`owner[a:b] = values`: a list takes the items, in any place and number; returns the owners that are no lists."""
        lists = frozenset(owner for owner in owners if isinstance(owner, Container) and owner.kind == "list")
        for owner in lists:
            owner.length = None
            self._world.put(owner, None, self.iterate(values))
        return owners - lists

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
                    getter = self._in.class_level.find(concrete.cls, concrete, "__getitem__")
                    if getter:
                        found |= self._in.implicit.call_simple(getter, [keys])
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
        return self._in.implicit.call_simple(owner.factory, [], ("missing", owner.serial), Known.REGISTRY)

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

    def _scan_gives(self, name: object, found: Value) -> bool:
        """Whether the scan that gave names of classes came upon a class of this name: a table of them is filled once."""
        if not isinstance(found, Scanned) or found.kind != "class name" or not isinstance(name, str):
            return False
        for module in self._world.scanned_class_files(found.package, name):
            given = self._in.attributes.of_module(module, found.attribute)
            listed = [self._world.all_elements(v) if isinstance(v, Container) else just(v) for v in given]
            if any(isinstance(v, ClassValue) and v.facts.name == name for values in listed for v in values):
                return True
        return False

    @staticmethod
    def common_length(sequences: Values) -> int | None:
        """The number of items of each of these sequences, where it is one number."""
        lengths = {v.length if isinstance(v, Container) and v.kind in ("list", "tuple") else None for v in sequences}
        return lengths.pop() if len(lengths) == 1 else None

    def _class_item(self, owner: ClassValue, keys: Values) -> Values:
        if "enum" in owner.marks:
            names = [k.value for k in keys if isinstance(k, Constant) and isinstance(k.value, str)]
            if names and len(names) == len(keys):
                members = {m.name: m for m in self.members(owner) if isinstance(m, EnumMember)}
                return frozenset(members[name] for name in names if name in members)
            return self.members(owner)
        return just(owner)

    def contains(self, left: Values, right: Values) -> Values:
        """`left in right`."""
        if not left or not right:
            return NOTHING
        results: set[bool | None] = set()
        for container in right:
            for item in left:
                results.add(self._contains_one(item, container))
        if results == {True}:
            return just(TRUE)
        if results == {False}:
            return just(FALSE)
        depends = resting_on(left, right)
        if depends:
            return just(Unknown.of(depends))
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
        world = self._world
        elements = heap.read(world.keys(container) if container.kind == "dict" else world.whole(container))
        if isinstance(item, Constant) and any(self._scan_gives(item.value, e) for e in elements):
            return True
        present = any(key_of(e) == key for e in elements)
        vague = any(key_of(e) is None for e in elements) or (
            container.kind == "dict" and bool(heap.read(self._world.anywhere(container)))
        )
        if container.length is None and container.kind not in ("set", "dict"):
            return None
        if present:
            return True if container.kind in ("tuple", "set") or container.length is not None else None
        return None if vague or (container.kind == "dict" and not container.given) else False

    def _new(self, kind: str, site: Hashable, frame: Frame) -> Container:
        return self._world.container(kind, (frame.activation, site))

    def _environment_values(self, keys: Values) -> Values:
        found: set[Value] = set()
        for key in keys:
            known: Values | None = None
            if isinstance(key, Constant) and isinstance(key.value, str):
                known = self._world.oracle.environment(self._in, key.value)
            found |= ANYTHING if known is None else known
        return frozenset(found)
