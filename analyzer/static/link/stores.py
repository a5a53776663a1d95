"""Stores into attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.objects import Configured, Container, Foreign
from sgl_graph.analyzer.static.link.values import (
    Bound,
    ClassValue,
    Constant,
    EnumMember,
    External,
    FunctionValue,
    Instance,
    ModuleValue,
    Values,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Stores:
    """Stores for an interpreter."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        self._world = interpreter.world

    def put(self, targets: Values, name: str, values: Values) -> None:
        """`x.name = values` for anything in `targets`."""
        if not values:
            return
        heap = self._world.heap
        for target in targets:
            if isinstance(target, Instance):
                for concrete in self._world.concrete(target):
                    self._instance(concrete, name, values)
                if target.fuzzy:
                    heap.write(cell_in(target.cls.attributes, name), values)
            elif isinstance(target, ClassValue):
                heap.write(self._world.class_cell(target, name), values)
            elif isinstance(target, (Configured, Foreign)):
                heap.write(heap.cell(("configured", target.handle, name)), values)
                heap.write(heap.cell(("rewritten", name)), values)
            elif isinstance(target, ModuleValue):
                heap.write(self._in.global_cell(target.name, name), values)
            elif isinstance(target, FunctionValue):
                heap.write(heap.cell(("function", target, name)), values)
            elif isinstance(target, External):
                heap.write(heap.cell(("external", f"{target.path}.{name}")), values)
            elif isinstance(target, EnumMember):
                heap.write(self._world.class_cell(target.cls, name), values)
            elif isinstance(target, Container) and target.kind == "namespace":
                self._world.put(target, Constant.of(name), values)

    def _instance(self, instance: Instance, name: str, values: Values) -> None:
        world = self._world
        heap = world.heap
        cls = instance.cls
        for base in cls.line:
            setter = base.setters.get(name)
            if setter is not None:
                functions = frozenset(Bound.of(f, instance) for f in heap.read(setter) if isinstance(f, FunctionValue))
                world.latches.set_by(functions, heap.current)
                self._in.implicit.call_simple(functions, [values])
                return
        writer = heap.current
        if writer is not None and world.oracle.settles(cls.qualname, name, writer):
            return
        if world.latches.note(cls, name, values, writer):
            heap.write(heap.cell(("turned", cls, name)), values)
        heap.write(cell_in(instance.attributes, name), values)
