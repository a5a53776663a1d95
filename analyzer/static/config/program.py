"""The analysed program as values: its modules, classes, functions and objects, and the frames that its code runs in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.values import ABSENT, Deps, External, Heap, ListV, Value, moment

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.checkout.project import Module
    from sgl_graph.analyzer.static.extract.facts import ClassFacts, FunctionFacts, Statement


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
        self.born = moment()
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
        self.born = moment()
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
        self.born = moment()
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
        self.born = moment()
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


class Super:
    """`super()` inside a method."""

    __slots__ = ("owner", "receiver")

    def __init__(self, owner: ClassV, receiver: Value) -> None:
        self.owner = owner
        self.receiver = receiver
