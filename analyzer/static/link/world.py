"""The state of one link: modules loaded, classes and functions known, calls recorded, and small services on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable

from sgl_graph.analyzer.static.facts import Expression
from sgl_graph.analyzer.static.link.frame import Frame, GuardLink
from sgl_graph.analyzer.static.link.heap import Activation, Cell, Heap
from sgl_graph.analyzer.static.link.oracle import Oracle
from sgl_graph.analyzer.static.link.values import (
    Bound,
    ClassValue,
    Constant,
    Container,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    Value,
    Values,
)
from sgl_graph.analyzer.static.linked import Known
from sgl_graph.analyzer.static.project import Module, Project
from sgl_graph.analyzer.static.questions import question

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

    __slots__ = ("caller", "constructs", "entered", "expression", "externals", "guards", "known", "line", "live",
                 "module", "now", "placed", "receivers", "targets")  # fmt: skip

    def __init__(self, caller: str, module: Module, expression: Expression, line: int) -> None:
        self.caller = caller
        self.module = module
        self.expression = expression
        self.line = line
        self.targets: dict[str, Known] = {}
        self.constructs: set[str] = set()
        self.externals: set[str] = set()
        self.receivers: set[str] = set()
        #: The weakest way in which any evaluation knows its callees, and that of the evaluation under way.
        self.known = Known.DIRECT
        self.now = Known.DIRECT
        self.entered = False
        self.guards: GuardLink | None = None
        self.placed = False
        self.live = False

    def add_target(self, qualname: str) -> None:
        """Note a callee; where several evaluations find it, the strongest way in which one knows it counts."""
        known = self.targets.get(qualname)
        if known is None or _STRENGTH[self.now] < _STRENGTH[known]:
            self.targets[qualname] = self.now


class World:
    """Shared state of the interpreter's parts."""

    def __init__(self, project: Project, oracle: Oracle, kept_externals: tuple[str, ...]) -> None:
        self.project = project
        self.oracle = oracle
        self.heap = Heap()
        self.kept_externals = (*kept_externals, *_STANDARD)
        self.globals: dict[str, dict[str, Cell]] = {}
        #: Modules that executed import statements name, whether or not anything reads a name of them.
        self.imported: set[str] = set()
        self.functions: dict[Hashable, FunctionValue] = {}
        self.classes: dict[Hashable, ClassValue] = {}
        self.containers: dict[Hashable, Container] = {}
        self.activations: dict[Hashable, Activation] = {}
        self.records: dict[tuple[str, int], CallRecord] = {}
        self.survey = False
        self.surveyed: frozenset[str] = frozenset()
        self.problems: dict[str, str] = {}
        self.unsettled_scans: dict[str, set[str]] = {}
        self._serial = 0
        #: Keeps callees alive whose identity serves as a key.
        self._held: list[Value] = []
        self._class_files: dict[str, dict[str, list[str]]] = {}

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

    # -- class-level names

    def class_cell(self, cls: ClassValue, name: str) -> Cell:
        """The cell of a name in a class body, made on first use; lookups that missed it are told."""
        key = ("class", cls, name)
        known = self.heap.known(key)
        if known is not None:
            return known
        cell = self.heap.cell(key)
        for sub in (cls, *cls.subclasses):
            missed = self.heap.known(("missed", sub, name))
            if missed is not None:
                self.heap.write(missed, frozenset((cls,)))
        return cell

    def missed(self, cls: ClassValue, name: str) -> None:
        """Note that the activation at work found no such name in a class or its bases."""
        self.heap.read(self.heap.cell(("missed", cls, name)))

    # -- containers

    def put(self, container: Container, key: Value | None, values: Values) -> None:
        """Store an element: under a known key, or under any."""
        heap = self.heap
        name = key_of(key) if key is not None else None
        heap.write(heap.cell(("e", container, name)), values)
        heap.write(heap.cell(("all", container)), values)
        if key is not None and container.kind == "dict":
            heap.write(heap.cell(("keys", container)), frozenset((key,)))

    def element(self, container: Container, key: Value | None) -> Values:
        """What an element may be."""
        heap = self.heap
        name = key_of(key) if key is not None else None
        if name is None:
            return heap.read(heap.cell(("all", container)))
        known = heap.read(heap.cell(("e", container, name)))
        anywhere = heap.read(heap.cell(("e", container, None)))
        return known | anywhere if anywhere else known

    def all_elements(self, container: Container) -> Values:
        return self.heap.read(self.heap.cell(("all", container)))

    # -- hierarchy

    def instantiated(self, instance: Instance) -> None:
        """Note that an object of exactly this class may exist."""
        exact = frozenset((instance,))
        for base in instance.cls.mro:
            if isinstance(base, ClassValue):
                self.heap.write(self.heap.cell(("sub", base)), exact)

    def concrete(self, instance: Instance) -> list[Instance]:
        """The exact instances that a possibly fuzzy one stands for."""
        if not instance.fuzzy:
            return [instance]
        known = self.heap.read(self.heap.cell(("sub", instance.cls)))
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
        receivers: Iterable[str] = (),
        entered: bool = False,
    ) -> CallRecord:
        """The record of a call expression, updated with where it stands now."""
        caller = frame.activation.qualname
        key = (caller, id(expression))
        record = self.records.get(key)
        if record is None:
            record = self.records[key] = CallRecord(caller, frame.activation.module, expression, line)
        if not self.survey or not record.placed:
            record.guards = frame.guards
            record.placed = True
        if not self.survey:
            record.live = True
        record.receivers.update(receivers)
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
            record.guards = frame.guards
            record.placed = True
        if not self.survey:
            record.live = True
        record.now = known
        if _STRENGTH[known] > _STRENGTH[record.known]:
            record.known = known
        return record


def key_of(value: Value) -> Hashable:
    """The dictionary key of a value; None when it is not one particular thing."""
    if isinstance(value, Constant):
        return ("k", value.value)
    if isinstance(value, (EnumMember, ClassValue, FunctionValue, External, Bound)):
        return value
    return None


Caller = Callable[..., Values]
