"""Import statements: names bound to references, which are followed when somebody reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.checkout.questions import question
from sgl_graph.analyzer.static.extract.facts import Statement
from sgl_graph.analyzer.static.link.cells import Cell
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.values import Constant, just
from sgl_graph.analyzer.static.linked import Absent

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


#: Code by which a module may bind names that its text does not have.
_BINDING = re.compile(rb"\b__getattr__\b|\bimport\s*\(?\s*\*|\bglobals\(\)|\bsys\.modules\b|\bsetattr\(")


@question
def may_bind(text: bytes, name: str) -> bool:
    """Whether a module's text has a name as a word, or binds names that it does not have."""
    return re.search(rb"\b%s\b" % re.escape(name.encode()), text) is not None or _BINDING.search(text) is not None


class Imports:
    """Interprets import statements."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._in = interpreter
        #: Depth of blocks that only type checkers execute.
        self.typing = 0

    def plain(self, frame: Frame, s: Statement) -> bool:
        """`import a.b as c`."""
        for _, dotted, renamed in s[2]:
            self._note(dotted)
            self._missed(frame, dotted, (), s[1])
            frame.imports.add(renamed or dotted.split(".")[0])
            if renamed is not None:
                self._in.assignments.bind(frame, renamed, just(self._in.expressions.reference(dotted, None)))
            else:
                self._in.assignments.bind(
                    frame, dotted.split(".")[0], self._in.attributes.imported(dotted.split(".")[0], None)
                )
        return True

    def names(self, frame: Frame, s: Statement) -> bool:
        """`from a import b as c`."""
        module = frame.activation.module.absolute(s[2], s[3])
        self._note(module)
        self._missed(frame, module, [name for _, name, _ in s[4]] if s[4] != "*" else (), s[1])
        if s[4] == "*":
            self._star(frame, module)
            return True
        for _, name, renamed in s[4]:
            self._note(f"{module}.{name}")
            self._missed_below(frame, module, name, s[1])
            reference = self._in.expressions.reference(module, name)
            frame.imports.add(renamed or name)
            self._in.assignments.bind(frame, renamed or name, just(reference))
        return True

    def _note(self, name: str) -> None:
        world = self._in.world
        if not self.typing and not world.survey and name not in world.imported and world.project.has_module(name):
            world.imported.add(name)

    def _missed(self, frame: Frame, module: str, names: Iterable[str], line: int) -> None:
        """Note an import of a file that lies in no folder any more, unless the code is prepared for that."""
        project = self._in.world.project
        if self._excused(frame) or project.has_module(module) or project.is_package(module):
            return
        if project.is_package(module.rpartition(".")[0]):
            self._absent(frame, module, names, line)

    def _missed_below(self, frame: Frame, package: str, name: str, line: int) -> None:
        """Note `from package import name` where neither the package's own file nor one below it may give the name."""
        project = self._in.world.project
        below = f"{package}.{name}"
        if self._excused(frame) or not project.is_package(package):
            return
        if project.has_module(below) or project.is_package(below) or name.startswith("_"):
            return  # what is private to a package is often compiled
        path = project.path_of(package)
        if path is None or not project.questions.ask(path, may_bind, name):
            self._absent(frame, below, (), line)

    def _excused(self, frame: Frame) -> bool:
        """Whether an import that fails here says nothing: it never runs, or the code is prepared for it."""
        return bool(self.typing or self._in.world.survey or frame.tolerant)

    def _absent(self, frame: Frame, module: str, names: Iterable[str], line: int) -> None:
        world = self._in.world
        known = world.absent.get(module)
        if known is None:
            known = Absent(frozenset(), frame.file, line, frozenset())
        taken, importers = known.names | frozenset(names), known.importers | {frame.file}
        world.absent[module] = Absent(taken, known.file, known.line, importers)

    def _star(self, frame: Frame, module: str) -> None:
        self._in.ensure_module(module)
        table = self._in.world.globals.get(module)
        if table is None:
            return
        activation = self._in.module_activation(module)
        if activation is not None and frame.activation.function is None and activation is not frame.activation:
            # Names that the other module binds later reach this one when it is interpreted again.
            self._in.world.heap.read(self._in.global_cell(module, "*"))
        listed = self._listed(table)
        for name in sorted(listed) if listed is not None else list(table):
            if listed is not None or (not name.startswith("_") and name != "*"):
                frame.imports.add(name)
                self._in.assignments.bind(frame, name, just(self._in.expressions.reference(module, name)))

    def _listed(self, table: dict[str, Cell]) -> set[str] | None:
        """Names of a module's `__all__`; None where it has none or it is computed."""
        if "__all__" not in table:
            return None
        values = self._in.models.iterate(self._in.world.heap.read(table["__all__"]))
        names = {v.value for v in values if isinstance(v, Constant) and isinstance(v.value, str)}
        return names if names and len(names) == len(values) else None
