"""Methods of containers, strings and generators."""

from __future__ import annotations

from collections.abc import Hashable

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.containers import Containers
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.objects import Container, Generated, Method, Typed
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    JUST_NONE,
    NONE,
    Bound,
    Constant,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    Values,
    just,
)
from sgl_graph.analyzer.static.link.world import CallRecord, key_of

_STRING_METHODS = {
    "lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "replace", "removeprefix", "removesuffix",
    "title", "capitalize", "isdigit", "find",
}  # fmt: skip
#: Methods that change a container; no tuple has them.
_CHANGING = {
    "append", "add", "appendleft", "put", "put_nowait", "insert", "extend", "extendleft", "update", "pop", "popleft", "sort",
    "reverse", "clear", "remove", "discard",
}  # fmt: skip
_MOST_TEXTS = 64
_LONGEST_TEXT = 2000


class ContainerMethods(Containers):
    """Calls of `x.append`, `x.items`, `text.split` and their like."""

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
                self._world.put(result, None, just(pair))
                return just(result)
            if name in ("get", "pop", "popleft", "setdefault", "__getitem__"):
                return receiver.elements | JUST_NONE
            if name == "values":
                return just(Typed.of(receiver.elements, False))
            if name == "copy":
                return just(receiver)
            self._in.implicit.escape(frame, arguments.every())
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
                self._world.put(result, Constant.of(position), just(Constant.of(part, receiver.origin)))
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
                    part = self._some_of(owner)
                found.add(part)
            elif (isinstance(owner, Typed) and not owner.mapping) or isinstance(owner, Unknown):
                found.add(owner)
            elif isinstance(owner, Instance):
                found |= self.load_item(frame, just(owner), ANYTHING)
            elif not (isinstance(owner, Constant) and owner.value is None):
                found |= ANYTHING
        return frozenset(found)

    def _some_of(self, owner: Container) -> Container:
        """A sequence of some elements of another one: one for each owner, which stands for its own parts as well."""
        if owner.length is None:
            return owner
        part = self._world.container(owner.kind, ("some of", owner))
        part.length = None
        self._world.put(part, None, self._world.all_elements(owner))
        return part

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
        if name in _CHANGING and not receiver.changeable:
            return ANYTHING
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
            if name in ("pop", "popleft"):
                receiver.length = None
            return self._fetch(receiver, name, arguments)
        if name == "items":
            return self._items(frame, receiver, site)
        if name == "values":
            result = self._new("list", site, frame)
            world.put(result, None, world.all_elements(receiver))
            return just(result)
        if name == "keys":
            result = self._new("list", site, frame)
            world.put(result, None, heap.read(world.keys(receiver)))
            return just(result)
        if name in ("copy", "union", "__iter__", "intersection", "difference"):
            if name == "union":
                world.put(receiver, None, self.iterate(first))
            return just(receiver)
        if name in ("sort", "reverse", "clear", "remove", "discard"):
            if name in ("sort", "reverse"):
                world.put(receiver, None, world.all_elements(receiver))  # any of them may be in any place
            else:
                receiver.length = None
            self._in.implicit.escape(frame, arguments.every())
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
        known = {key_of(k) for k in heap.read(self._world.keys(receiver))}
        return all(key_of(k) in known for k in keys)

    def _items(self, frame: Frame, receiver: Container, site: Hashable) -> Values:
        world = self._world
        heap = world.heap
        result = self._new("list", site, frame)
        keys = heap.read(world.keys(receiver))
        for key in sorted(keys, key=repr):
            pair = self._new("tuple", (site, key), frame)
            pair.length = 2
            world.put(pair, Constant.of(0), just(key))
            world.put(pair, Constant.of(1), world.element(receiver, key if key_of(key) is not None else None))
            world.put(result, None, just(pair))
        anywhere = heap.read(world.anywhere(receiver))
        if anywhere:
            pair = self._new("tuple", (site, None), frame)
            pair.length = 2
            world.put(pair, Constant.of(0), ANYTHING)
            world.put(pair, Constant.of(1), anywhere)
            world.put(result, None, just(pair))
        return just(result)
