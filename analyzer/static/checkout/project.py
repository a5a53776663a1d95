"""A checkout as modules: dotted names, files, facts on demand, and the symbols that a module binds at its top level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sgl_graph.analyzer.static.checkout.questions import Questions
from sgl_graph.analyzer.static.checkout.sources import Sources
from sgl_graph.analyzer.static.extract.effective import Speech, effective, speech_of
from sgl_graph.analyzer.static.extract.facts import (
    Expression,
    FunctionFacts,
    ModuleFacts,
    Statement,
    share,
    statements,
)

_BLANK = b" \t"


class Cell(Protocol):
    """What a name is bound to, with who has read it."""

    readers: Any


@dataclass(slots=True)
class Module:
    """One module of the checkout.

    Attributes:
        name: dotted name, `sglang.srt.server_args`.
        path: file relative to the folder that holds the top-level package.
        package: whether the file is an `__init__.py`.
        read: indices of the functions whose bodies were read. A stored map holds over edits of the others, so nobody
            may look into a body, or at what only a body decides (`locals`, `end_line`), past the methods below.
        evaluated: of these, the functions whose messages were read as well.
        declared: names that functions were asked for by `may_declare`.
        asked: names that were looked up among those that its top level binds, found or not (see `unasked`). `EVERY`
            stands for who went through all functions or names, `STEPS` for who counted the statements it executed.
    """

    name: str
    path: str
    package: bool
    facts: ModuleFacts
    read: set[int] = field(default_factory=set, repr=False)
    evaluated: set[int] = field(default_factory=set, repr=False)
    declared: set[str] = field(default_factory=set, repr=False)
    asked: set[str] = field(default_factory=set, repr=False)
    _names: dict[str, Expression] = field(default_factory=dict, repr=False)
    _bodies: dict[int, list[Statement]] = field(default_factory=dict, repr=False)
    _evaluated: dict[int, list[Statement]] = field(default_factory=dict, repr=False)
    _speech: Speech | None = field(default=None, repr=False)

    def function_body(self, index: int) -> list[Statement]:
        """Statements of the function with this index, decoded once, without what they only say (see `effective`)."""
        body = self._bodies.get(index)
        if body is None:
            self.read.add(index)
            body = self._bodies[index] = self._decoded(index, messages=False)
        return body

    def evaluated_body(self, index: int) -> list[Statement]:
        """The same with the messages of exceptions, for who shows them."""
        body = self._evaluated.get(index)
        if body is None:
            self.read.add(index)
            self.evaluated.add(index)
            body = self._evaluated[index] = self._decoded(index, messages=True)
        return body

    def _decoded(self, index: int, *, messages: bool) -> list[Statement]:
        if self._speech is None:
            self._speech = speech_of(self.facts)
        body = effective(statements(self.facts.functions[index]), self._speech, messages=messages)
        share(body, self._names)
        return body

    def function_named(self, qualname: str) -> FunctionFacts | None:
        """The first function of this name."""
        self.asked.add(qualname.partition(".")[0])
        return next((item for item in self.facts.functions if item.qualname == qualname), None)

    def may_declare(self, index: int, name: str) -> bool:
        """Whether a function may assign a global of this name; its body need not be decoded for it."""
        self.declared.add(name)
        return may_declare(self.facts.functions[index], name)

    def imports(self) -> list[str]:
        """Dotted names that the top level's `import` and `from` statements may mean, modules or not."""
        found: list[str] = []
        stack = list(reversed(self.facts.body))
        while stack:
            statement = stack.pop()
            kind = statement[0]
            if kind == "import":
                found += [dotted for _, dotted, _ in statement[2]]
            elif kind == "from":
                base = self.absolute(statement[2], statement[3])
                found.append(base)
                if statement[4] != "*":
                    found += [f"{base}.{name}" for _, name, _ in statement[4]]
            elif kind == "if":
                stack += [*statement[3], *statement[4]]
            elif kind == "try":
                stack += statement[2]
        return found

    def absolute(self, module: str, level: int) -> str:
        """The dotted name that a `from` import of this module means."""
        if level == 0:
            return module
        parts = self.name.split(".")
        keep = len(parts) - level + (1 if self.package else 0)
        base = parts[: max(keep, 0)]
        return ".".join([*base, module] if module else base)


class Project:
    """All modules of one checkout, loaded on demand."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._files: dict[str, tuple[str, bool]] = {}
        self._packages: set[str] = set()
        for path in sources.paths():
            name, package = module_name(path)
            known = self._files.get(name)
            # A package and a module of one name: Python prefers the package.
            if known is None or package:
                self._files[name] = (path, package)
            parts = name.split(".")
            self._packages.update(".".join(parts[:n]) for n in range(1, len(parts) + (1 if package else 0)))
        #: The one expression for a name, shared by the decoded bodies of all modules.
        self._names: dict[str, Expression] = {}
        self._loaded: dict[str, Module] = {}
        #: All that is asked of text; and by `TextIndex`, which modules to read for theirs.
        self.questions = Questions(sources.text)
        self.hints: list[HintLog] = []
        #: Names that were looked for in classes, found or not, and beginnings and ends of names that were looked for.
        self.sought: set[str] = set()
        self.patterns: set[tuple[str, str]] = set()
        #: The linker's cells by module and name; who reads a cell has looked the name up.
        self.cells: Mapping[str, Mapping[str, Cell]] = {}
        #: Headers of functions in files, where they were counted.
        self.counted: dict[str, int] = {}

    def has_module(self, name: str) -> bool:
        """Whether a file stands for this dotted name."""
        return name in self._files

    def is_package(self, name: str) -> bool:
        """Whether the name is a package, namespace packages without `__init__.py` included."""
        return name in self._packages

    def path_of(self, name: str) -> str | None:
        """The file of a module, or None."""
        entry = self._files.get(name)
        return entry[0] if entry else None

    def names(self) -> Iterator[str]:
        """All dotted module names."""
        return iter(self._files)

    def module(self, name: str) -> Module | None:
        """Load a module; None when the checkout has no such file."""
        module = self._loaded.get(name)
        if module is None:
            entry = self._files.get(name)
            if entry is None:
                return None
            path, package = entry
            facts = self.sources.facts(path)
            module = self._loaded.get(name)  # while this waited for the parser, another thread may have loaded it
            if module is None:
                module = self._loaded[name] = Module(name, path, package, facts, _names=self._names)
        return module

    def loaded(self) -> list[Module]:
        """Modules loaded so far, in order of name."""
        return [self._loaded[name] for name in sorted(self._loaded)]

    def note_lookups(self) -> None:
        """Keep which names of modules linking has looked up, and let go of its cells."""
        for name, cells in self.cells.items():
            module = self._loaded.get(name)
            if module is not None:
                module.asked.update(key for key, cell in cells.items() if cell.readers is not None)
        self.cells = {}

    def prefetch(self, names: Iterable[str]) -> None:
        """Begin to parse modules that will be wanted."""
        wanted = self._unloaded(names)
        if wanted:
            self.sources.prefetch(wanted)

    def _unloaded(self, names: Iterable[str]) -> list[str]:
        return [self._files[name][0] for name in names if name in self._files and name not in self._loaded]


@dataclass(slots=True)
class HintLog:
    """Why modules of one folder were read for their text.

    Attributes:
        rounds: what was looked for, in order: `["tokens"]`, `["names", [...]]` or `["pattern", text]`.
        taken: files that were found, with the number of the round.
    """

    folder: str
    rounds: list[list[Any]] = field(default_factory=list)
    taken: dict[str, int] = field(default_factory=dict)


def may_declare(function: FunctionFacts, name: str) -> bool:
    """Whether a function mentions a name that is none of its locals."""
    return name not in function.locals and name.encode() in bytes(function.body)


def headers_in(text: bytes) -> int:
    """How many functions a text defines, by their headers: lines that begin with `def` or `async def`."""
    count = 0
    before, *rest = text.split(b"def")  # far quicker than a pattern that is tried at each line
    starts = True  # whether what stands before the word reaches back to the start of its line
    for after in rest:
        line = before.rpartition(b"\n")
        if after[:1] in (b" ", b"\t") and (starts or line[1]):
            words = line[2].strip(_BLANK)
            count += not words or (words == b"async" and line[2][-1:] in (b" ", b"\t"))
        before, starts = after, False
    return count


def module_name(path: str) -> tuple[str, bool]:
    """Dotted name of a file and whether it is a package's `__init__`."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        return ".".join(parts[:-1]), True
    return ".".join(parts), False


def dotted_text(expression: Expression | None) -> str | None:
    """`a.b.c` of a name or attribute chain, else None."""
    if expression is None:
        return None
    if expression[0] == "n":
        return str(expression[1])
    if expression[0] == "a":
        base = dotted_text(expression[1])
        return f"{base}.{expression[2]}" if base is not None else None
    return None
