"""What linking yields: the call graph of one configuration, every call with its targets and guards, and class knowledge.

`link.py` builds it; `sites.py`, `classify.py`, `paths.py` and the reports read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

import networkx as nx
from sgl_graph.analyzer.static.checkout.project import Module, Project
from sgl_graph.analyzer.static.extract.facts import ClassFacts, Expression, FunctionFacts


class Known(StrEnum):
    """How an edge of the call graph is known, strongest first."""

    DIRECT = "direct"
    TYPE = "type"
    OVERRIDE = "override"
    REGISTRY = "registry"
    NAME_ONLY = "name-only"


class Truth(StrEnum):
    """Three-valued logic."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition that must hold for a statement to execute.

    Attributes:
        text: source-like text of the condition, as needed: `not (x)` when the statement stands in the other branch.
        value: whether this configuration satisfies it.
        depends: configuration names (fields, environment variables) that the unknown rests on.
    """

    text: str
    file: str
    line: int
    value: Truth
    depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """One call expression (or `with` item) of an analysed function, with all that it may call.

    Attributes:
        caller: qualified name of the enclosing function, `module:<module>` for module level.
        text: source-like text of the callee, `self.backend.replay`.
        targets: qualified names of functions in the checkout.
        constructs: qualified names of classes in the checkout that the call instantiates.
        externals: access paths outside the checkout in normal form: `torch.cuda.CUDAGraph` (called),
            `torch.cuda.CUDAGraph().replay` (a method of what such a call returns), `torch.get_device_module().graph`.
        receivers: qualified names of the classes (or external access paths) that the receiver may be an instance of.
        entered: the call's value is entered as a context manager (a `with` item).
        guards: enclosing conditions, outermost first.
        active: False when a guard is known false under this configuration.
    """

    caller: str
    module: str
    file: str
    line: int
    text: str
    expression: Expression
    targets: frozenset[str]
    constructs: frozenset[str]
    externals: frozenset[str]
    receivers: frozenset[str]
    known: Known
    entered: bool
    guards: tuple[Guard, ...]
    active: bool


@dataclass(frozen=True, slots=True)
class Closure:
    """What one call of a function that returns closures made: the call expression, and the functions that call the result."""

    expression: Expression
    callers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function of the checkout: where it stands and what it is."""

    qualname: str
    module: Module
    facts: FunctionFacts
    index: int
    owner: str | None
    #: Qualified name of the class whose body holds it, if any.


@dataclass(frozen=True, slots=True)
class Absent:
    """A module that code which runs imports although the checkout has no such file, and what it takes from it.

    Attributes:
        file, line: the first of these imports.
        importers: files that have one.
    """

    names: frozenset[str]
    file: str
    line: int
    importers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An assertion that surely fails: its test, and where it stands."""

    text: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """A call on a way: the function that makes it, and where."""

    caller: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Making:
    """What makes objects of a class for one side of a launch that speculates, the draft's or the target's.

    Attributes:
        truth: TRUE when such an object is certainly made.
        ways: for the draft: calls from functions that serve both sides, over the draft's alone, to where an object is made;
            the shortest for each function that they start from.
    """

    truth: Truth
    ways: tuple[tuple[Step, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """A test that start-up decides once, decided one way, and what is certain then.

    Attributes:
        text, file, line: the test, as the guards of its positive branch have it.
        reached, sides: as `Linked` has them.
    """

    text: str
    file: str
    line: int
    holds: bool
    reached: dict[str, Truth] = field(default_factory=dict)
    sides: dict[str, dict[bool, Making]] = field(default_factory=dict)

    def decided(self, guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
        """Guards, of which those of the test are settled."""
        return tuple(self._decided(guard) for guard in guards)

    def _call(self, call: Call) -> Call:
        guards = self.decided(call.guards)
        if guards == call.guards:
            return call
        return replace(call, guards=guards, active=call.active and all(g.value is not Truth.FALSE for g in guards))

    def _decided(self, guard: Guard) -> Guard:
        if guard.line != self.line or guard.file != self.file or guard.text not in (self.text, f"not ({self.text})"):
            return guard
        return replace(guard, value=Truth.TRUE if (guard.text == self.text) is self.holds else Truth.FALSE, depends=())

    def of(self, linked: Linked) -> Linked:
        """The same configuration in this case."""
        calls = {caller: [self._call(call) for call in made] for caller, made in linked.calls.items()}
        return replace(linked, reached=self.reached, sides=self.sides, calls=calls, cases=())


@dataclass(slots=True)
class ClassInfo:
    """A class of the checkout with what the hierarchy says of it.

    Attributes:
        ancestors: qualified names in resolution order, itself first; external bases appear as access paths (`torch.nn.Module`).
        methods: name to qualified name of the function, own body only.
        attributes: attribute name to access paths or qualified class names that it may hold (instances), as inferred.
    """

    qualname: str
    module: Module
    facts: ClassFacts
    ancestors: tuple[str, ...]
    methods: dict[str, str]
    attributes: dict[str, frozenset[str]] = field(default_factory=dict)
    subclasses: frozenset[str] = frozenset()


@dataclass(slots=True)
class Linked:
    """The result of linking one configuration.

    Attributes:
        graph: nodes are qualified names of functions (`module:Class.method`, `module:<module>`); edges carry
            `file`, `line`, `guards` (tuple of Guard), `known` (Known).
        reached: functions that execute under this configuration when started at the entry points, over edges whose
            guards are not known false; value True when only guards known true and edges other than name-only lead there.
        calls: by caller; functions in `reached` and all others of modules that may hold graph primitives.
        problems: file to reason, for files that could not be read.
        arguments: by class of the receiver (empty for none) and function: the texts, or None, that reached executions pass
            for a parameter; parameters that may be anything else are left out.
        closures: by function and line of the call that made them.
        made: by class of the receiver, function and class of an immutable record that it makes: texts, or None, that the
            record's fields have; fields that may have anything else are left out.
        absent: by dotted name.
        sides: by class whose constructor is given an object of either side: what makes it for the draft (True) and for the
            target (False).
        refused: by function that ends at an assertion whoever calls it.
        cases: of each test by which start-up chooses what captures, that it holds and that it does not.
    """

    project: Project
    graph: nx.MultiDiGraph[str]
    entries: dict[str, str]
    reached: dict[str, Truth]
    calls: dict[str, list[Call]]
    definitions: dict[str, Definition]
    classes: dict[str, ClassInfo]
    problems: dict[str, str]
    functions_total: int
    arguments: dict[tuple[str, str], dict[str, frozenset[str | None]]] = field(default_factory=dict)
    closures: dict[tuple[str, int], list[Closure]] = field(default_factory=dict)
    made: dict[tuple[str, str, str], dict[str, frozenset[str | None]]] = field(default_factory=dict)
    absent: dict[str, Absent] = field(default_factory=dict)
    sides: dict[str, dict[bool, Making]] = field(default_factory=dict)
    refused: dict[str, Refusal] = field(default_factory=dict)
    cases: tuple[tuple[Case, Case], ...] = ()
