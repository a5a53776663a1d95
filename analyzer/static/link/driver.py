"""Linking one configuration: from the entry points first, then a survey of all code that may hold graph primitives."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import networkx as nx
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link import sets, texts
from sgl_graph.analyzer.static.link.alternatives import Alternatives
from sgl_graph.analyzer.static.link.cells import Cell
from sgl_graph.analyzer.static.link.certain import certain
from sgl_graph.analyzer.static.link.interpreter import Interpreter
from sgl_graph.analyzer.static.link.moments import Moments, Serving
from sgl_graph.analyzer.static.link.oracle import NoOracle, Oracle
from sgl_graph.analyzer.static.link.values import (
    ANYTHING,
    ClassValue,
    External,
    FunctionValue,
    Instance,
    Value,
    Wrapped,
    just,
)
from sgl_graph.analyzer.static.link.world import CallRecord, World
from sgl_graph.analyzer.static.linked import Call, Case, ClassInfo, Definition, Linked, Truth

#: Python frames that nested interpretations may take: each call of the program interpreted costs a dozen.
_DEEPEST_STACK = 12_000


def link(
    project: Project,
    entries: Sequence[str],
    *,
    oracle: Oracle | None = None,
    survey: Iterable[str] = (),
    kept_externals: tuple[str, ...] = (),
    serving: Serving | None = None,
    draft_parameters: frozenset[str] = frozenset(),
    capturing: Callable[[], frozenset[str]] = frozenset,
    on_progress: Callable[[int], None] | None = None,
) -> Linked:
    """Link a checkout from its entry points.

    Args:
        entries: qualified names (`module:function`, `module:<module>`) where processes start.
        oracle: answers about the configuration.
        survey: dotted names of modules whose functions are interpreted even where no entry point leads,
            so that their call expressions are resolved.
        kept_externals: prefixes of access paths outside the checkout whose results are followed.
        serving: which functions begin to serve; None: no code is told apart by when it runs.
        draft_parameters: names of the parameters that tell a constructor that the object is for the draft model's worker.
        capturing: asked at the end for the classes whose objects capture: of two that a test chooses between, start-up makes one.
        on_progress: called with the number of interpretations now and then.
    """
    depth = sys.getrecursionlimit()
    sys.setrecursionlimit(max(depth, _DEEPEST_STACK))
    try:
        sets.reset()
        world = World(project, oracle or NoOracle(), kept_externals, draft_parameters)
        return _link(world, entries, survey, serving, capturing, on_progress)
    finally:
        sys.setrecursionlimit(depth)


def _link(
    world: World,
    entries: Sequence[str],
    survey: Iterable[str],
    serving: Serving | None,
    capturing: Callable[[], frozenset[str]],
    on_progress: Callable[[int], None] | None,
) -> Linked:
    interpreter = Interpreter(world, on_progress, entries)
    for entry in entries:
        _start(interpreter, entry)
    interpreter.settle()
    surveyed = sorted(survey)
    live = {k: _copy(record) if surveyed else record for k, record in world.records.items() if record.live}
    reached_names = {a.qualname for a in world.activations.values() if a.runs}
    given, made = texts.arguments(world), texts.records_made()
    closures = world.closures.by_place()
    refused = world.refusals.found(world.activations.values())
    if surveyed:
        _survey(interpreter, surveyed)
    moments = Moments(world, entries, live.values(), serving)
    functions = {function.qualname: function for function in world.functions.values()}
    alternatives = Alternatives(live.values(), capturing(), moments.once, functions.get)
    linked = _assemble(world, entries, live, reached_names, moments, alternatives)
    linked.arguments, linked.made = given, made
    linked.closures = closures
    linked.refused = refused
    linked.sides = world.sides.found(linked.reached)
    linked.cases = tuple(
        tuple(_in_case(world, linked, entries, case) for case in pair)  # type: ignore[misc]
        for pair in alternatives.cases
    )
    linked.absent = dict(sorted(world.absent.items()))
    return linked


def _in_case(world: World, linked: Linked, entries: Sequence[str], case: Case) -> Case:
    reached = certain(world, linked.graph, linked.calls, entries, linked.reached, case)
    return replace(case, reached=reached, sides=world.sides.found(reached))


def _start(interpreter: Interpreter, entry: str) -> None:
    module, _, name = entry.partition(":")
    interpreter.ensure_module(module)
    if name == "<module>":
        return
    function = _find(interpreter, module, name)
    if function is None:
        return
    activation = interpreter.activation(function, None, None)
    for parameter in function.facts.parameters:
        if parameter.annotation is None:
            interpreter.world.heap.write(activation.parameter(parameter.name), ANYTHING)
    activation.pessimistic = True
    interpreter.demand(activation)


def _find(interpreter: Interpreter, module: str, name: str) -> FunctionValue | None:
    values = interpreter.attributes.of_module(module, name)
    for value in values:
        inner: Value = value.function if isinstance(value, Wrapped) else value
        if isinstance(inner, FunctionValue):
            return inner
    return None


def _survey(interpreter: Interpreter, modules: list[str]) -> None:
    world = interpreter.world
    world.survey = True
    world.surveyed = frozenset(modules)
    heap = world.heap
    for name in modules:
        interpreter.ensure_module(name)
        activation = interpreter.module_activation(name)
        if activation is not None:
            heap.agenda.add(activation)
    interpreter.settle()
    inside = set(modules)
    for activation in list(world.activations.values()):
        if activation.module.name in inside:
            activation.runs = 0
            heap.agenda.add(activation)
    for function in sorted(world.functions.values(), key=lambda f: f.qualname):
        if function.module.name not in inside:
            continue
        receiver: Value | None = None
        if function.owner is not None and function.facts.parameters and not _is_static(function):
            receiver = function.owner if _is_classmethod(function) else Instance.of(function.owner)
        if any(key[0] is function for key in world.activations if isinstance(key, tuple)):
            continue
        activation = interpreter.activation(function, receiver, None)
        parameters = function.facts.parameters
        if receiver is not None:
            heap.write(activation.parameter(parameters[0].name), just(receiver))
        activation.pessimistic = True
        heap.agenda.add(activation)
    interpreter.settle()


def _is_static(function: FunctionValue) -> bool:
    return any(d == ["n", "staticmethod"] for d in function.facts.decorators)


def _is_classmethod(function: FunctionValue) -> bool:
    return any(d == ["n", "classmethod"] for d in function.facts.decorators)


def _copy(record: CallRecord) -> CallRecord:
    copied = CallRecord(record.caller, record.module, record.expression, record.line)
    copied.targets = dict(record.targets)
    copied.constructs = record.constructs
    copied.externals = record.externals
    copied.receivers = record.receivers
    copied.known = record.known
    copied.entered = record.entered
    copied.guards = record.firmest_guards()
    copied.live = record.live
    return copied


def _assemble(
    world: World,
    entries: Sequence[str],
    live: dict[tuple[str, int], CallRecord],
    reached_names: set[str],
    moments: Moments,
    alternatives: Alternatives,
) -> Linked:
    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    calls: dict[str, list[Call]] = {}
    for key, record in world.records.items():
        alive = live.get(key)
        call = _call(alive or record, alive is not None, moments, alternatives)
        calls.setdefault(call.caller, []).append(call)
        if alive is None:
            continue
        for target, known in sorted(alive.targets.items()):
            graph.add_edge(call.caller, target, file=call.file, line=call.line, guards=call.guards, known=known)
    for items in calls.values():
        items.sort(key=lambda c: (c.line, c.text, sorted(c.targets)))
    reached = certain(world, graph, calls, entries, reached_names)
    definitions = {
        function.qualname: Definition(
            function.qualname, function.module, function.facts, function.index,
            function.owner.qualname if function.owner is not None else None,
        )
        for function in world.functions.values()
    }  # fmt: skip
    return Linked(
        project=world.project,
        graph=graph,
        entries={entry: entry for entry in entries},
        reached=reached,
        calls=calls,
        definitions=definitions,
        classes=_classes(world),
        problems=dict(sorted(world.problems.items())),
        functions_total=0,
    )


def _call(record: CallRecord, active: bool, moments: Moments, alternatives: Alternatives) -> Call:
    e = record.expression
    callee = e[1] if e[0] == "c" else e
    guards = moments.settled(record.caller, alternatives.guards(record.caller, record.firmest_guards()))
    return Call(
        caller=record.caller,
        module=record.module.name,
        file=record.module.path,
        line=record.line,
        text="" if e[0] == "x" else render(callee),
        expression=e,
        targets=frozenset(record.targets),
        constructs=record.constructs,
        externals=record.externals,
        receivers=record.receivers,
        known=record.known,
        entered=record.entered,
        guards=guards,
        active=active and all(guard.value is not Truth.FALSE for guard in guards),
    )


def _classes(world: World) -> dict[str, ClassInfo]:
    found: dict[str, ClassInfo] = {}
    for cls in world.classes.values():
        functions = cls.module.facts.functions
        methods = {
            functions[s[2]].name: f"{cls.module.name}:{functions[s[2]].qualname}"
            for s in cls.facts.body
            if s[0] == "def"
        }
        found[cls.qualname] = ClassInfo(
            qualname=cls.qualname,
            module=cls.module,
            facts=cls.facts,
            ancestors=tuple(base.qualname if isinstance(base, ClassValue) else base.path for base in cls.mro),
            methods=methods,
            subclasses=frozenset(sub.qualname for sub in cls.subclasses if sub is not cls),
        )
    attributes: dict[str, dict[str, set[str]]] = {}
    holders: list[tuple[ClassValue, dict[str, Cell]]] = [(cls, cls.attributes) for cls in world.classes.values()]
    holders += [(instance.cls, instance.attributes) for instance in Instance.placed()]
    for cls, cells in holders:
        for name, cell in cells.items():
            names = {n for n in map(_type_name, cell.peek()) if n}
            attributes.setdefault(cls.qualname, {}).setdefault(name, set()).update(names)
    for qualname, table in attributes.items():
        if qualname in found:
            found[qualname].attributes = {name: frozenset(items) for name, items in sorted(table.items())}
    return found


def _type_name(value: Value) -> str | None:
    if isinstance(value, Instance):
        return value.cls.qualname
    if isinstance(value, External):
        return value.path
    return None
