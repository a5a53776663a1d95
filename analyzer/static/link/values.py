"""Abstract values: what an expression may be. All are interned, so equality is identity and sets of them are cheap."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.checkout.project import Module
    from sgl_graph.analyzer.static.extract.facts import ClassFacts, FunctionFacts
    from sgl_graph.analyzer.static.link.cells import Cell
    from sgl_graph.analyzer.static.link.heap import Activation

Scalar = str | int | float | bool | None


class Value:
    """Base of abstract values; `only` is the set of just this one, made on first use by `just`."""

    __slots__ = ("only",)
    only: Values


Values = frozenset[Value]
NOTHING: Values = frozenset()


def just(value: Value) -> Values:
    """The set of one value: one object for each."""
    try:
        return value.only
    except AttributeError:
        only = value.only = frozenset((value,))
        return only


class Constant(Value):
    """A scalar. `origin` names configuration entries whose automatic choice put it there."""

    __slots__ = ("origin", "value")
    _known: ClassVar[dict[tuple[type, Scalar, tuple[str, ...]], Constant]] = {}

    def __init__(self, value: Scalar, origin: tuple[str, ...]) -> None:
        self.value = value
        self.origin = origin

    @classmethod
    def of(cls, value: Scalar, origin: tuple[str, ...] = ()) -> Constant:
        key = (type(value), value, origin)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(value, origin)
        return known

    def __repr__(self) -> str:
        return f"{self.value!r}"


class Unknown(Value):
    """Anything. `depends` names the configuration that would settle it; empty when only running code can tell."""

    __slots__ = ("depends",)
    _known: ClassVar[dict[tuple[str, ...], Unknown]] = {}

    def __init__(self, depends: tuple[str, ...]) -> None:
        self.depends = depends

    @classmethod
    def of(cls, depends: Iterable[str] = ()) -> Unknown:
        key = tuple(sorted(set(depends))[:6])
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(key)
        return known

    def __repr__(self) -> str:
        return f"?{','.join(self.depends)}"


UNKNOWN = Unknown.of()
ANYTHING = just(UNKNOWN)
NONE = Constant.of(None)
TRUE = Constant.of(True)
FALSE = Constant.of(False)
JUST_NONE = just(NONE)
BOTH: Values = frozenset((TRUE, FALSE))


class Rowless(Value):
    """An array of which a test says that it has no rows (see `rowless`)."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<array without rows>"


ROWLESS = Rowless()


class External(Value):
    """Something outside the checkout, by its access path: `torch.cuda.CUDAGraph`, `torch.cuda.CUDAGraph().replay`."""

    __slots__ = ("path",)
    _known: ClassVar[dict[str, External]] = {}

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def of(cls, path: str) -> External:
        known = cls._known.get(path)
        if known is None:
            known = cls._known[path] = cls(path)
        return known

    def __repr__(self) -> str:
        return f"<{self.path}>"


class ModuleValue(Value):
    """A module of the checkout."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<module {self.name}>"


class ImportReference(Value):
    """A name bound by an import, resolved when somebody reads it."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str | None) -> None:
        self.module = module
        self.name = name

    def __repr__(self) -> str:
        return f"<import {self.module}.{self.name}>"


class FunctionValue(Value):
    """A function of the checkout, closed over the activation in which it was defined."""

    __slots__ = ("defaults", "facts", "index", "module", "owner", "parent", "qualname")

    def __init__(self, module: Module, index: int, parent: Activation | None, owner: ClassValue | None) -> None:
        self.module = module
        self.index = index
        self.facts: FunctionFacts = module.facts.functions[index]
        self.parent = parent
        self.owner = owner
        self.qualname = f"{module.name}:{self.facts.qualname}"
        #: Cells of the defaults of its parameters.
        self.defaults: dict[str, Cell] = {}

    def __repr__(self) -> str:
        return f"<function {self.qualname}>"


class ClassValue(Value):
    """A class of the checkout; bases are filled when its statement is interpreted."""

    __slots__ = (
        "attributes", "bases", "declared", "facts", "fields", "index", "line", "made", "marks", "missing", "module",
        "mro", "own", "parent", "qualname", "setters", "subclasses",
    )  # fmt: skip

    def __init__(self, module: Module, index: int, parent: Activation | None) -> None:
        self.module = module
        self.index = index
        self.facts: ClassFacts = module.facts.classes[index]
        self.parent = parent
        self.qualname = f"{module.name}:{self.facts.qualname}"
        self.bases: list[ClassValue | External] = []
        self.mro: tuple[ClassValue | External, ...] = (self,)
        #: Those of its resolution order that belong to the checkout.
        self.line: tuple[ClassValue, ...] = (self,)
        #: Cells by name: of the class body, of attributes of its objects, of their declared types, of setters; and
        #: those that whoever looked for a name in vain has read.
        self.own: dict[str, Cell] = {}
        self.attributes: dict[str, Cell] = {}
        self.declared: dict[str, Cell] = {}
        self.setters: dict[str, Cell] = {}
        self.missing: dict[str, Cell] = {}
        #: Objects of exactly this class or of a subclass that may exist.
        self.made: Cell | None = None
        self.subclasses: set[ClassValue] = set()
        #: `dataclass`, `enum`, `namedtuple`, `struct`: what its decorators and bases make of it.
        self.marks: set[str] = set()
        #: Annotated fields in order, for generated constructors: name to (has default).
        self.fields: dict[str, bool] = {}

    def resolve_in(self, mro: tuple[ClassValue | External, ...]) -> None:
        """Set the resolution order."""
        self.mro = mro
        self.line = tuple(base for base in mro if isinstance(base, ClassValue))

    def __repr__(self) -> str:
        return f"<class {self.qualname}>"


class Draft:
    """The place of objects that are made for the draft model's worker (`sides`), wherever that is."""

    __slots__ = ()


DRAFT = Draft()


@dataclass(frozen=True, slots=True)
class Named:
    """The place of an object that its class keeps on itself under a name: there is one of each."""

    name: str


class Instance(Value):
    """An instance of a class; `fuzzy` when only an annotation says so, so that it may be of any subclass.

    `place` tells apart the objects of a class that wraps functions: one for each place of creation. It also tells apart what
    is made for the draft model's worker, and the objects that a class keeps by name, as an enumeration its members.
    """

    __slots__ = ("attributes", "cls", "fuzzy", "place")
    _known: ClassVar[dict[tuple[ClassValue, bool, Hashable], Instance]] = {}

    def __init__(self, cls: ClassValue, fuzzy: bool, place: Hashable) -> None:
        self.cls = cls
        self.fuzzy = fuzzy
        self.place = place
        #: Cells of its attributes.
        self.attributes: dict[str, Cell] = cls.attributes if place is None else {}

    @classmethod
    def placed(cls) -> Iterable[Instance]:
        """Objects that are told apart by where they were made."""
        return (instance for instance in cls._known.values() if instance.place is not None)

    @classmethod
    def of(cls, owner: ClassValue, fuzzy: bool = False, place: Hashable = None) -> Instance:
        key = (owner, fuzzy, place)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(owner, fuzzy, place)
        return known

    def __repr__(self) -> str:
        side = "draft " if self.place is DRAFT else ""
        return f"<{'maybe ' if self.fuzzy else ''}{side}{self.cls.facts.name} instance>"


def is_named(value: Value) -> bool:
    """Whether a value is an object that its class keeps by name."""
    return isinstance(value, Instance) and isinstance(value.place, Named)


class EnumMember(Value):
    """A member of an enumeration of the checkout."""

    __slots__ = ("cls", "name")
    _known: ClassVar[dict[tuple[ClassValue, str], EnumMember]] = {}

    def __init__(self, cls: ClassValue, name: str) -> None:
        self.cls = cls
        self.name = name

    @classmethod
    def of(cls, owner: ClassValue, name: str) -> EnumMember:
        key = (owner, name)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(owner, name)
        return known

    def __repr__(self) -> str:
        return f"<{self.cls.facts.name}.{self.name}>"


class Bound(Value):
    """A function with its receiver."""

    __slots__ = ("function", "receiver")
    _known: ClassVar[dict[tuple[Value, Value], Bound]] = {}

    def __init__(self, function: Value, receiver: Value) -> None:
        self.function = function
        self.receiver = receiver

    @classmethod
    def of(cls, function: Value, receiver: Value) -> Bound:
        key = (function, receiver)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(function, receiver)
        return known

    def __repr__(self) -> str:
        return f"<bound {self.function!r} of {self.receiver!r}>"


class Wrapped(Value):
    """A function seen through a decorator of the standard library: property, classmethod, context manager ..."""

    __slots__ = ("function", "kind")
    _known: ClassVar[dict[tuple[Value, str], Wrapped]] = {}

    def __init__(self, function: Value, kind: str) -> None:
        self.function = function
        self.kind = kind

    @classmethod
    def of(cls, function: Value, kind: str) -> Wrapped:
        key = (function, kind)
        known = cls._known.get(key)
        if known is None:
            known = cls._known[key] = cls(function, kind)
        return known

    def __repr__(self) -> str:
        return f"<{self.kind} {self.function!r}>"


def depends_of(values: Iterable[Value]) -> tuple[str, ...]:
    """Configuration names that a set of values rests on."""
    names: set[str] = set()
    for value in values:
        if isinstance(value, Unknown):
            names.update(value.depends)
        elif isinstance(value, Constant):
            names.update(value.origin)
    return tuple(sorted(names))


def resting_on(left: Values, right: Values) -> tuple[str, ...]:
    """Configuration that an operation on two sides rests on; none where one side is only known while serving."""
    if any(value is UNKNOWN or value is ROWLESS for value in (*left, *right)):
        return ()
    return depends_of((*left, *right))
