"""Construction: what calling a class makes, where it was made, and what its initializer is given."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.sides import is_draft
from sgl_graph.analyzer.static.link.values import (
    NOTHING,
    Bound,
    ClassValue,
    Constant,
    External,
    FunctionValue,
    Instance,
    Named,
    Value,
    Values,
    Wrapped,
    just,
)
from sgl_graph.analyzer.static.link.world import CallRecord, World

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter

#: A class with one of these wraps a function as a rule; its objects are told apart by where they are made, up to a number.
_WRAPPING = ("__call__", "__get__")
_MOST_PLACES = 400
#: Ends of the access paths of torch modules, and of the base of transformers' models.
_MODULES = ("nn.Module", ".PreTrainedModel")


class Construction:
    """Makes objects for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world
        self._places: dict[ClassValue, set[Hashable]] = {}
        self._wrapping: dict[ClassValue, bool] = {}
        self._keeping: dict[ClassValue, bool] = {}

    def construct(
        self, frame: Frame, cls: ClassValue, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> Values:
        """Call a class: its `__new__`, and `__init__` of what that gives."""
        record.add_construct(cls.qualname)
        world = self._world
        heap = world.heap
        if "enum" in cls.marks:
            return self._in.models.enum_member(cls, arguments)
        sides = world.sides
        place = sides.place(cls, arguments, heap) or self._place(cls, site) or self._named(cls, arguments)
        instance = Instance.of(cls, place=place)
        if not world.survey:
            sides.made(cls, arguments, heap.current, record)
        made: Values = just(instance)
        for base in cls.mro:
            if isinstance(base, ClassValue):
                maker = base.own.get("__new__")
                if maker is not None:
                    for value in heap.read(maker):
                        inner = value.function if isinstance(value, Wrapped) else value
                        if isinstance(inner, FunctionValue):
                            with_cls = Arguments(
                                [just(cls), *arguments.positional],
                                arguments.keywords, arguments.star, arguments.double, arguments.spread,
                            )  # fmt: skip
                            returned = self._in.calls.function(inner, None, with_cls, record, site)
                            objects = frozenset(v for v in returned if isinstance(v, Instance))
                            made = objects or made
                    break
        for item in made:
            if not isinstance(item, Instance):
                continue
            world.instantiated(item)
            self._initialize(frame, item, arguments, record, site)
        return made

    def _place(self, cls: ClassValue, site: Hashable) -> Hashable:
        """Where an object is created, for classes whose objects stand for a function or carry values from there."""
        if not self._wraps(cls):
            return None
        current = self._world.heap.current
        maker = current.receiver if current is not None else None
        if isinstance(maker, Instance) and maker.place is not None and not is_draft(maker):
            return None  # a wrapper that makes wrappers shall not make ever more of them
        places = self._places.setdefault(cls, set())
        place = (current, site)
        if place not in places:
            if len(places) >= _MOST_PLACES:
                return None
            places.add(place)
        return place

    def _named(self, cls: ClassValue, arguments: Arguments) -> Named | None:
        """The name of an object, for classes that keep their objects on themselves by names."""
        first = arguments.positional[0] if arguments.positional else NOTHING
        if len(first) != 1:
            return None
        (name,) = first
        if not isinstance(name, Constant) or not isinstance(name.value, str):
            return None
        return Named(name.value) if self.keeps(cls) else None

    def keeps(self, cls: ClassValue) -> bool:
        """Whether a class keeps its objects on itself, as an enumeration its members: each is made once, under its name."""
        known = self._keeping.get(cls)
        if known is None:
            functions = (value for base in cls.line for cell in base.own.values() for value in cell.peek())
            known = self._keeping[cls] = any(_keeps_objects(value) for value in functions)
        return known

    def _wraps(self, cls: ClassValue) -> bool:
        known = self._wrapping.get(cls)
        if known is None:
            wraps = any(name in base.own for base in cls.line for name in _WRAPPING)
            known = (wraps and not is_torch_module(cls)) or _is_immutable_record(cls)
            self._wrapping[cls] = known
        return known

    def _initialize(
        self, frame: Frame, instance: Instance, arguments: Arguments, record: CallRecord, site: Hashable
    ) -> None:
        cls = instance.cls
        heap = self._world.heap
        for base in cls.line:
            initializers = heap.read(cell_in(base.own, "__init__"))
            for value in initializers:
                if isinstance(value, FunctionValue):
                    self._in.calls.function(value, instance, arguments, record, site)
                    if "dataclass" not in base.marks:
                        return
            if initializers:
                return
            if "dataclass" in base.marks:
                self._generated_init(instance, arguments)
                after = self._in.class_level.find(cls, instance, "__post_init__")
                for value in after:
                    if isinstance(value, Bound):
                        self._in.calls.bound(frame, value, Arguments(), record, site)
                return

    def _generated_init(self, instance: Instance, arguments: Arguments) -> None:
        heap = self._world.heap
        fields: dict[str, ClassValue] = {}
        for base in reversed(instance.cls.mro):
            if isinstance(base, ClassValue):
                for name in base.fields:
                    fields[name] = base
        for position, (name, base) in enumerate(fields.items()):
            cell = cell_in(instance.attributes, name)
            if position < len(arguments.positional):
                heap.write(cell, arguments.positional[position])
            elif name in arguments.keywords:
                heap.write(cell, arguments.keywords[name])
            else:
                if arguments.star or arguments.double:
                    heap.write(cell, arguments.star | arguments.double)
                heap.write(cell, self._in.attributes.resolve(heap.read(cell_in(base.own, name))))


def _keeps_objects(value: Value) -> bool:
    """Whether a function of a class stores what it makes on the class, under names that it is given."""
    if not isinstance(value, Wrapped) or value.kind != "classmethod" or not isinstance(value.function, FunctionValue):
        return False
    function = value.function
    receiver = ["n", function.facts.parameters[0].name] if function.facts.parameters else None
    makes = stores = False
    stack: list[object] = [function.module.function_body(function.index)]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            if part and part[0] == "c":
                makes |= part[1] == receiver
                stores |= part[1] == ["n", "setattr"] and part[2][:1] == [receiver]
            stack += part
    return makes and stores


def _is_immutable_record(cls: ClassValue) -> bool:
    """Whether objects keep the fields that they are made with: each carries what its maker had, and nothing else."""
    if "dataclass" not in cls.marks:
        return False
    decorators = (argument for item in cls.facts.decorators if item[0] == "c" for argument in item[2])
    given = [(argument[1], argument[2]) for argument in decorators if argument[0] == "k"]
    return any(name == "frozen" and value == ["v", True] for name, value in [*cls.facts.keywords, *given])


def is_torch_module(cls: ClassValue) -> bool:
    """Whether a class is a torch module, by itself or through a library's base of models."""
    return any(isinstance(base, External) and base.path.endswith(_MODULES) for base in cls.mro)


def none_made(world: World, classes: Sequence[ClassValue], count: int) -> bool:
    """Whether all of `count` classes are torch modules of which this configuration makes none: none can be met.

    Modules are made where they are used; without the model's configuration, any of them may be made.
    """
    if len(classes) != count or not classes or world.unsettled_scans:
        return False
    return all(is_torch_module(cls) and not world.any_made(cls) for cls in classes)
