"""Abstract values that are no code and no instances of it: containers, builtins, methods of both, objects of the configuration."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar

from sgl_graph.analyzer.static.link.values import ANYTHING, NOTHING, ClassValue, Value, Values

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.cells import Cell
    from sgl_graph.analyzer.static.link.heap import Activation, Heap


class Container(Value):
    """A list, tuple, set, dict or partial created at one place; its elements live in the heap."""

    __slots__ = (
        "_heap", "_length", "_lengths", "_settled", "configured", "elements", "factory", "given", "keys", "kind", "serial",
        "whole",
    )  # fmt: skip

    def __init__(self, kind: str, serial: int, heap: Heap) -> None:
        self.kind = kind
        self.serial = serial
        self._heap = heap
        self._length: int | None = None
        self._lengths: Cell | None = None
        self._settled = False
        #: Cells of elements by key (None: under any key); of all of them together; and of the keys of a dictionary.
        self.elements: dict[Hashable, Cell] = {}
        self.whole: Cell | None = None
        self.keys: Cell | None = None
        #: For `defaultdict`: the callable that makes a missing value.
        self.factory: Values = NOTHING
        #: Whether a call made it of its keywords: no other key is in it than those that code is seen to put there.
        self.given = False
        #: Whether the configuration says what is in it, and not whether it is a tuple, a list or a set.
        self.configured = False

    @property
    def changeable(self) -> bool:
        """Whether its items may be changed: where code that does so meets a tuple, it means a tensor in its place."""
        return self.kind != "tuple" or self.configured

    @property
    def length(self) -> int | None:
        """Number of positions when it is fixed (tuples and list displays); who reads it is told when it is not any more."""
        lengths = self._lengths
        if lengths is None:
            lengths = self._lengths = self._heap.new_cell()
        self._heap.read(lengths)
        return self._length

    @length.setter
    def length(self, length: int | None) -> None:
        """The first length stands until another one, or None, is given: then it is never fixed again."""
        if not self._settled:
            self._settled = True
            self._length = length
        elif self._length is not None and length != self._length:
            self._length = None
            if self._lengths is not None:
                self._heap.write(self._lengths, ANYTHING)

    def peek(self) -> Values:
        """All elements, without becoming a reader."""
        return self.whole.peek() if self.whole is not None else NOTHING

    def __repr__(self) -> str:
        return f"<{self.kind} #{self.serial}>"


class Method(Value):
    """A method of a container or of a string, to be modelled when called."""

    __slots__ = ("name", "receiver")
    _known: ClassVar[dict[tuple[Value, str], Method]] = {}

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name

    @classmethod
    def of(cls, receiver: Value, name: str) -> Method:
        key = (receiver, name)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(receiver, name)
        return known

    def __repr__(self) -> str:
        return f"<{self.receiver!r}.{self.name}>"


class Builtin(Value):
    """A builtin function or type."""

    __slots__ = ("name",)
    _known: ClassVar[dict[str, Builtin]] = {}

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def of(cls, name: str) -> Builtin:
        known = cls._known.get(name)
        if known is None:
            known = cls._known[name] = cls(name)
        return known

    def __repr__(self) -> str:
        return f"<builtin {self.name}>"


class Super(Value):
    """`super()` inside a method of `cls`, for a receiver."""

    __slots__ = ("cls", "receiver")
    _known: ClassVar[dict[tuple[ClassValue, Value], Super]] = {}

    def __init__(self, cls: ClassValue, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver

    @classmethod
    def of(cls, owner: ClassValue, receiver: Value) -> Super:
        key = (owner, receiver)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(owner, receiver)
        return known


class Generated(Value):
    """What a call of a generator, or of a `contextmanager` function, returns: its yields are in the heap."""

    __slots__ = ("activation", "context")

    def __init__(self, activation: Activation, context: bool) -> None:
        self.activation = activation
        self.context = context


class Typed(Value):
    """A container of which only an annotation is known: its elements, and whether it maps keys to them."""

    __slots__ = ("elements", "mapping")
    _known: ClassVar[dict[tuple[Values, bool], Typed]] = {}

    def __init__(self, elements: Values, mapping: bool) -> None:
        self.elements = elements
        self.mapping = mapping

    @classmethod
    def of(cls, elements: Values, mapping: bool) -> Typed:
        key = (elements, mapping)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(elements, mapping)
        return known


class Pattern(Value):
    """A string of which a prefix and a suffix are known: `f"_handle_{name}"`."""

    __slots__ = ("prefix", "suffix")

    def __init__(self, prefix: str, suffix: str) -> None:
        self.prefix = prefix
        self.suffix = suffix


class Scanned(Value):
    """Something found by a scan over a package: the name of a submodule, a submodule, a class of one, or that class's name.

    `attribute` is the name by which the submodules give their classes.
    """

    __slots__ = ("attribute", "kind", "package")
    _known: ClassVar[dict[tuple[str, str, str], Scanned]] = {}

    def __init__(self, package: str, kind: str, attribute: str) -> None:
        self.package = package
        self.kind = kind
        self.attribute = attribute

    @classmethod
    def of(cls, package: str, kind: str, attribute: str = "") -> Scanned:
        key = (package, kind, attribute)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(package, kind, attribute)
        return known

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.package}>"


class Configured(Value):
    """One object of the resolved configuration; the oracle knows what its attributes hold."""

    __slots__ = ("cls", "handle")
    _known: ClassVar[dict[tuple[ClassValue, object], Configured]] = {}

    def __init__(self, cls: ClassValue, handle: object) -> None:
        self.cls = cls
        self.handle = handle

    @classmethod
    def of(cls, owner: ClassValue, handle: object) -> Configured:
        key = (owner, handle)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(owner, handle)
        return known

    def __repr__(self) -> str:
        return f"<configured {self.cls.facts.name}>"


class Foreign(Value):
    """An object of the resolved configuration whose class lies outside the checkout (a model's configuration file)."""

    __slots__ = ("handle", "path")
    _known: ClassVar[dict[object, Foreign]] = {}

    def __init__(self, handle: object, path: str) -> None:
        self.handle = handle
        self.path = path

    @classmethod
    def of(cls, handle: object, path: str) -> Foreign:
        known = cls._known.get(handle)
        if known is None:
            known = cls._known[handle] = cls(handle, path)
        return known

    def __repr__(self) -> str:
        return f"<configured {self.path}>"
