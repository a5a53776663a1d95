"""The state of one link: modules loaded, classes and functions known, calls recorded, and small services on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable

from sgl_graph.analyzer.static.checkout.project import Module, Project
from sgl_graph.analyzer.static.checkout.questions import question
from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.extract.unasked import EVERY
from sgl_graph.analyzer.static.link.cells import Cell, cell_in
from sgl_graph.analyzer.static.link.closures import Closures
from sgl_graph.analyzer.static.link.frame import Frame, GuardLink, openness
from sgl_graph.analyzer.static.link.heap import Activation, Heap
from sgl_graph.analyzer.static.link.latches import Latches
from sgl_graph.analyzer.static.link.objects import Configured, Container
from sgl_graph.analyzer.static.link.oracle import Oracle
from sgl_graph.analyzer.static.link.refusals import Refusals
from sgl_graph.analyzer.static.link.sides import Sides
from sgl_graph.analyzer.static.link.values import (
    NOTHING,
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    Unknown,
    Value,
    Values,
    just,
)
from sgl_graph.analyzer.static.linked import Absent, Known, Truth

_CLASSES = re.compile(rb"^class (\w+)", re.MULTILINE)
_STRENGTH = {Known.DIRECT: 0, Known.TYPE: 1, Known.REGISTRY: 2, Known.OVERRIDE: 3, Known.NAME_ONLY: 4}


@question
def top_classes(text: bytes) -> list[str]:
    """Names of the classes that a file's top level defines."""
    return [found.decode() for found in _CLASSES.findall(text)]


#: Parts of the standard library whose objects take functions to call or contexts to enter.
_STANDARD = ("contextlib.ExitStack", "contextlib.AsyncExitStack", "concurrent.futures.", "threading.", "asyncio.")


class CallRecord:
    """What is known of one call expression, over all contexts in which it was interpreted."""

    __slots__ = ("caller", "constructs", "entered", "evaluated_by", "expression", "externals", "guards", "known", "line", "live",
                 "module", "now", "placed", "received", "receivers", "targets")  # fmt: skip

    def __init__(self, caller: str, module: Module, expression: Expression, line: int) -> None:
        self.caller = caller
        self.module = module
        self.expression = expression
        self.line = line
        self.targets: dict[str, Known] = {}
        # Sets that are shared: there are tens of thousands of records, and most hold few names or none.
        self.constructs: frozenset[str] = _NO_NAMES
        self.externals: frozenset[str] = _NO_NAMES
        self.receivers: frozenset[str] = _NO_NAMES
        self.received: Values = NOTHING
        #: The weakest way in which any evaluation knows its callees, and that of the evaluation under way.
        self.known = Known.DIRECT
        self.now = Known.DIRECT
        self.entered = False
        #: Under what it stands where an activation evaluated it last; by activation as soon as there is a second one.
        self.guards: GuardLink | dict[Activation, GuardLink | None] | None = None
        self.evaluated_by: Activation | None = None
        self.placed = False
        self.live = False

    def stand(self, activation: Activation, guards: GuardLink | None) -> None:
        """Note the conditions around it in one activation."""
        self.placed = True
        if isinstance(self.guards, dict):
            self.guards[activation] = guards
        elif self.evaluated_by is None or self.evaluated_by is activation:
            self.evaluated_by, self.guards = activation, guards
        else:
            self.guards = {self.evaluated_by: self.guards, activation: guards}

    def firmest_guards(self) -> GuardLink | None:
        """Of the conditions under which several activations evaluate it, those that leave least open: one of them is enough."""
        return min(self.guards.values(), key=openness) if isinstance(self.guards, dict) else self.guards

    def receive(self, values: Values) -> None:
        """Note what the receiver may be."""
        self.received = values
        self.receivers = _with(self.receivers, frozenset(map(_name_of, values)))

    def add_external(self, path: str) -> None:
        """Note something outside the checkout that is called."""
        if path not in self.externals:
            self.externals = _with(self.externals, frozenset((path,)))

    def add_construct(self, qualname: str) -> None:
        """Note a class that is instantiated."""
        if qualname not in self.constructs:
            self.constructs = _with(self.constructs, frozenset((qualname,)))

    def add_target(self, qualname: str) -> None:
        """Note a callee; where several evaluations find it, the strongest way in which one knows it counts."""
        known = self.targets.get(qualname)
        if known is None or _STRENGTH[self.now] < _STRENGTH[known]:
            self.targets[qualname] = self.now


def _with(names: frozenset[str], more: frozenset[str]) -> frozenset[str]:
    """Both sets of names; one object for each result."""
    both = names | more
    return _names.setdefault(both, both)


_NO_NAMES: frozenset[str] = frozenset()
_names: dict[frozenset[str], frozenset[str]] = {}


class World:
    """Shared state of the interpreter's parts."""

    def __init__(
        self,
        project: Project,
        oracle: Oracle,
        kept_externals: tuple[str, ...],
        draft_parameters: frozenset[str] = frozenset(),
    ) -> None:
        _names.clear()
        self.project = project
        self.oracle = oracle
        self.heap = Heap()
        self.kept_externals = (*kept_externals, *_STANDARD)
        self.globals: dict[str, dict[str, Cell]] = {}
        project.cells = self.globals
        #: Modules that executed import statements name, whether or not anything reads a name of them.
        self.imported: set[str] = set()
        #: Modules of the checkout's packages that they name, and that it does not have.
        self.absent: dict[str, Absent] = {}
        self.functions: dict[Hashable, FunctionValue] = {}
        self.classes: dict[Hashable, ClassValue] = {}
        self.containers: dict[Hashable, Container] = {}
        self.activations: dict[Hashable, Activation] = {}
        self.records: dict[tuple[str, int], CallRecord] = {}
        self.closures = Closures()
        self.latches = Latches()
        self.refusals = Refusals()
        self.sides = Sides(draft_parameters)
        self.survey = False
        self.surveyed: frozenset[str] = frozenset()
        self.problems: dict[str, str] = {}
        self.unsettled_scans: dict[str, set[str]] = {}
        self._serial = 0
        #: Keeps callees alive whose identity serves as a key.
        self._held: list[Value] = []
        self._guards: dict[Hashable, GuardLink] = {}
        self._class_files: dict[str, dict[str, list[str]]] = {}

    # -- guards

    def guard(
        self,
        outer: GuardLink | None,
        test: Expression,
        negated: bool,
        file: str,
        line: int,
        truth: Truth,
        depends: tuple[str, ...],
    ) -> GuardLink:
        """The one link for a condition below another."""
        key = (id(outer), id(test), negated, file, line, truth, depends)  # uses of one name are one object
        known = self._guards.get(key)
        if known is None:
            known = self._guards[key] = GuardLink(outer, test, negated, file, line, truth, depends)
        return known

    # -- identity

    def function(
        self, module: Module, index: int, parent: Activation | None, owner: ClassValue | None
    ) -> FunctionValue:
        key = (module.name, index, parent, owner)
        known = self.functions.get(key)
        if known is None:
            known = self.functions[key] = FunctionValue(module, index, parent, owner)
        return known

    def class_value(self, module: Module, index: int, parent: Activation | None) -> ClassValue:
        key = (module.name, index, parent)
        known = self.classes.get(key)
        if known is None:
            known = self.classes[key] = ClassValue(module, index, parent)
        return known

    def container(self, kind: str, key: Hashable) -> Container:
        """The container created at one place in one activation."""
        known = self.containers.get((kind, key))
        if known is None:
            self._serial += 1
            known = self.containers[(kind, key)] = Container(kind, self._serial, self.heap)
        return known

    def enumerated(self, name: str) -> None:
        """Note that all names of a module's top level were gone through."""
        module = self.project.module(name)
        if module is not None:
            module.asked.add(EVERY)

    # -- class-level names

    def class_cell(self, cls: ClassValue, name: str) -> Cell:
        """The cell of a name in a class body, made on first use; lookups that missed it are told."""
        known = cls.own.get(name)
        if known is not None:
            return known
        cell = cls.own[name] = Cell()
        for sub in (cls, *cls.subclasses):
            missed = sub.missing.get(name)
            if missed is not None:
                self.heap.write(missed, just(cls))
        return cell

    def missed(self, cls: ClassValue, name: str) -> None:
        """Note that the activation at work found no such name in a class or its bases."""
        self.heap.read(cell_in(cls.missing, name))

    # -- containers

    def put(self, container: Container, key: Value | None, values: Values) -> None:
        """Store an element: under a known key, or under any."""
        heap = self.heap
        name = key_of(key) if key is not None else None
        heap.write(cell_in(container.elements, name), values)
        heap.write(self.whole(container), values)
        if key is not None and container.kind == "dict":
            heap.write(self.keys(container), just(key))

    def element(self, container: Container, key: Value | None) -> Values:
        """What an element may be."""
        heap = self.heap
        name = key_of(key) if key is not None else None
        if name is None:
            return heap.read(self.whole(container))
        known = heap.read(cell_in(container.elements, name))
        anywhere = heap.read(cell_in(container.elements, None))
        return known | anywhere if anywhere else known

    def all_elements(self, container: Container) -> Values:
        return self.heap.read(self.whole(container))

    def whole(self, container: Container) -> Cell:
        """The cell of all elements together."""
        cell = container.whole
        if cell is None:
            cell = container.whole = Cell()
        return cell

    def keys(self, container: Container) -> Cell:
        """The cell of a dictionary's keys."""
        cell = container.keys
        if cell is None:
            cell = container.keys = Cell()
        return cell

    def anywhere(self, container: Container) -> Cell:
        """The cell of elements under no particular key."""
        return cell_in(container.elements, None)

    # -- hierarchy

    def instantiated(self, instance: Instance) -> None:
        """Note that an object of exactly this class may exist."""
        exact = just(instance)
        for base in instance.cls.line:
            self.heap.write(self._made(base), exact)

    def _made(self, cls: ClassValue) -> Cell:
        cell = cls.made
        if cell is None:
            cell = cls.made = Cell()
        return cell

    def any_made(self, cls: ClassValue) -> bool:
        """Whether an object of a class, or of one below it, may exist."""
        return bool(self.heap.read(self._made(cls)))

    def concrete(self, instance: Instance) -> list[Instance]:
        """The exact instances that a possibly fuzzy one stands for."""
        if not instance.fuzzy:
            return [instance]
        known = self.heap.read(self._made(instance.cls))
        found = sorted((v for v in known if isinstance(v, Instance)), key=lambda v: v.cls.qualname)
        return found or [Instance.of(instance.cls)]

    # -- packages scanned for classes

    def scanned_class_files(self, package: str, name: str) -> list[str]:
        """Modules below a package whose text defines a class of this name."""
        table = self._class_files.get(package)
        if table is None:
            table = self._class_files[package] = {}
            for module in self.project.names():
                if module.startswith(package + "."):
                    path = self.project.path_of(module)
                    assert path is not None
                    for found in self.project.questions.ask(path, top_classes):
                        table.setdefault(found, []).append(module)
        return table.get(name, [])

    # -- recording

    def record(
        self,
        frame: Frame,
        expression: Expression,
        line: int,
        known: Known,
        *,
        receivers: Values = NOTHING,
        entered: bool = False,
        place: object = None,
    ) -> CallRecord:
        """The record of a call expression, updated with where it stands now; `place` tells it apart if it does not itself."""
        caller = frame.activation.qualname
        key = (caller, id(expression if place is None else place))
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = CallRecord(caller, frame.activation.module, expression, line)
        if not self.survey or not record.placed:
            record.stand(frame.activation, frame.guards)
        if not self.survey:
            record.live = True
        if receivers is not record.received:
            record.receive(receivers)
        record.entered |= entered
        record.now = known
        if _STRENGTH[known] > _STRENGTH[record.known]:
            record.known = known
        return record

    def record_implicit(self, frame: Frame, callee: Value, line: int, known: Known = Known.DIRECT) -> CallRecord:
        """The record of a call that no call expression writes: property, descriptor, decorator, callback."""
        caller = frame.activation.qualname
        key = (caller, id(callee))
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = CallRecord(caller, frame.activation.module, ["x"], line)
            self._held.append(callee)
        if not self.survey or not record.placed:
            record.stand(frame.activation, frame.guards)
        if not self.survey:
            record.live = True
        record.now = known
        if _STRENGTH[known] > _STRENGTH[record.known]:
            record.known = known
        return record


def _name_of(value: Value) -> str:
    if isinstance(value, (Instance, Configured)):
        return value.cls.qualname
    if isinstance(value, External):
        return value.path
    if isinstance(value, ClassValue):
        return value.qualname
    return "?" if isinstance(value, Unknown) else type(value).__name__.lower()


def key_of(value: Value) -> Hashable:
    """The dictionary key of a value; None when it is not one particular thing."""
    if isinstance(value, Constant):
        return ("k", value.value)
    if isinstance(value, (EnumMember, ClassValue, FunctionValue, External, Bound)):
        return value
    return None


Caller = Callable[..., Values]
