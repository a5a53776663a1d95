"""Entries of the report: every argument with its value, where that comes from, and what is left to settle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.heap_view import to_json
from sgl_graph.analyzer.static.config.possibilities import deps_of, options_of, single
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.protocol import Entry, Place, Source, Unresolved
from sgl_graph.analyzer.static.config.python_values import inner_deps
from sgl_graph.analyzer.static.config.records import fields_of
from sgl_graph.analyzer.static.config.values import ABSENT, Fuzzy, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration


def describe_entries(configuration: ResolvedConfiguration) -> list[Entry]:
    """One entry for every field of the arguments, nested settings included, and for the given environment."""
    record = configuration.record
    entries: list[Entry] = []
    if record is not None and isinstance(record.cls, ClassV):
        for field in fields_of(configuration.evaluator, record.cls):
            if field.name.startswith("_"):
                continue
            value = configuration.result(field.name)
            if value is ABSENT:
                continue
            entries.append(_entry(configuration, field.name, value, field.default))
            entries += _nested(configuration, field.name, value)
    for name, given in configuration.launch.environment.items():
        entries.append(Entry(f"env:{name}", given, Source.ENV))
    for name, given in configuration.launch.assumptions.environment.items():
        entries.append(Entry(f"env:{name}", given, Source.ASSUMPTION))
    return sorted(entries, key=lambda entry: entry.name)


def _nested(configuration: ResolvedConfiguration, name: str, value: Value) -> list[Entry]:
    """Settings of an argument that is itself a record (capture settings per phase)."""
    options, open_ = options_of(value)
    records = [o for o in options if type(o) is Instance and isinstance(o.cls, ClassV) and o.cls.kind == "record"]
    if open_ or not records or len(records) != len(options):
        return []
    machine = configuration.evaluator
    entries: list[Entry] = []
    for key in records[0].attrs:
        # The fields of a single record carry their own provenance; that of the record as a whole says less.
        holder = records[0] if len(records) == 1 else value
        inner = configuration.ask(lambda key=key, holder=holder: machine.get(holder, key))  # type: ignore[misc]
        path = f"{name}.{key}"
        plain = [o for o in options_of(inner)[0] if type(o) is Instance]
        if plain:
            entries += _nested(configuration, path, inner)
        else:
            entries.append(_entry(configuration, path, inner, ABSENT))
    return entries


def _entry(configuration: ResolvedConfiguration, name: str, value: Value, default: Value) -> Entry:
    deps = inner_deps(value)
    head = name.split(".")[0]
    place = _decided(configuration, name, value)
    depends = tuple(sorted(deps))
    declarations = configuration.evaluator.declarations
    given = declarations is not None and head in declarations.given
    plain = single(value)
    shown = to_json(value)
    assumed = head in configuration.launch.assumptions.fields
    if plain is ABSENT or (shown is None and plain is not None and type(plain) is not Instance):
        asked = _asked_for(configuration, name, value) if given else None
        return Entry(name, None, Source.UNRESOLVED, predicted=asked, decided_by=place, depends=depends)
    if assumed:
        return Entry(name, shown, Source.ASSUMPTION, decided_by=place, depends=depends)
    if not deps and _equal(plain, single(default)):
        return Entry(name, shown, Source.DEFAULT)
    facts = {dep for dep in deps if not dep.startswith(("flag:", "env:"))}
    if not given and name in configuration.dispatching and facts and not _equal(plain, single(default)):
        return Entry(name, None, Source.UNRESOLVED, automatic=True, predicted=shown, decided_by=place, depends=depends)
    if given and _as_given(configuration, head, value):
        return Entry(name, shown, Source.FLAG, depends=depends)
    automatic = any(dep.startswith("package:") for dep in deps) and isinstance(plain, str)
    if automatic:
        return Entry(name, None, Source.UNRESOLVED, automatic=True, predicted=shown, decided_by=place, depends=depends)
    return Entry(name, shown, _source(deps), decided_by=place, depends=depends)


def _source(deps: frozenset[str]) -> Source:
    if "device" in deps or any(dep.startswith("package:") for dep in deps):
        return Source.DEVICE
    if "model" in deps:
        return Source.MODEL
    if any(dep.startswith("env:") for dep in deps):
        return Source.ENV
    if any(dep.startswith("flag:") for dep in deps):
        return Source.FLAG
    return Source.DEFAULT


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is type(b) and isinstance(a, (str, int, float, bool)):
        return bool(a == b)
    return to_json(a) == to_json(b) and to_json(a) is not None


def _as_given(configuration: ResolvedConfiguration, name: str, value: Value) -> bool:
    """Whether resolution left an argument as the command gives it."""
    return _equal(_given_value(configuration, name), single(value))


def _given_value(configuration: ResolvedConfiguration, name: str) -> Value:
    """What the command gives for an argument, before any resolution."""
    return single(configuration.evaluator.declarations.values.get(name, ABSENT))


def _asked_for(configuration: ResolvedConfiguration, name: str, value: Value) -> Any:
    """What the command gives for an argument that resolution may leave as it is; None where it may not."""
    raw = _given_value(configuration, name)
    return to_json(raw) if any(_equal(option, raw) for option in options_of(value)[0]) else None


def _decided(configuration: ResolvedConfiguration, name: str, value: Value) -> Place | None:
    if type(value) is Fuzzy and value.place is not None and value.place.line:
        return value.place  # line 0: the question itself, asked once the resolution was over
    machine = configuration.evaluator
    record = configuration.record
    head = name.split(".")[0]
    declared = machine.written.get((0, head))
    if declared is not None:
        return declared
    return machine.written.get((id(record), head)) if record is not None else None


def describe_unresolved(configuration: ResolvedConfiguration) -> list[Unresolved]:
    """What source alone does not settle: missing facts first, then automatic choices, then unknown values."""
    found: list[Unresolved] = []
    facts = configuration.evaluator.facts
    if facts.device is None:
        found.append(Unresolved("device", None, None, "--device", ("device",)))
    for path in facts.missing_models:
        found.append(Unresolved(f"configuration of {path}", None, None, "--model-config FILE", ("model",)))
    later: list[Unresolved] = []
    for entry in configuration.entries:
        if entry.source is not Source.UNRESOLVED:
            continue
        item = Unresolved(entry.name, entry.predicted, entry.decided_by, f"--assume {entry.name}=VALUE", entry.depends)
        (found if entry.automatic else later).append(item)
    return found + later


__all__ = ["deps_of", "describe_entries", "describe_unresolved", "profile"]
