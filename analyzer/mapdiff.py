"""What changed between two path maps: paths, classes, labels, sizes, gaps; what a reviewer of a change wants to see."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sgl_graph.analyzer.records.pathmap import ConfigValue, PathEntry, PathMap, Site

#: So many changes that are alike are told one by one.
_FEW = 2


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `kind` is what it is about, `sign` is + - or ~; `shared` is what of its text others may say too."""

    kind: str
    sign: str
    text: str
    shared: str = ""


@dataclass(slots=True)
class Difference:
    """All differences of two maps, in a fixed order; empty when they say the same."""

    changes: list[Change] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.changes)

    def lines(self) -> list[str]:
        """One line a change."""
        return [f"{change.sign} {change.kind}: {change.text}" for change in self.changes]

    def brief(self) -> list[str]:
        """One line a change, and one, with their number, for all of a kind that more than a few have alike."""
        alike = Counter((change.kind, change.sign, change.shared) for change in self.changes if change.shared)
        found: dict[str, None] = {}  # in order, each once
        for change, line in zip(self.changes, self.lines(), strict=True):
            count = alike[change.kind, change.sign, change.shared]
            found[f"{change.sign} {change.kind}: {count} {change.kind}s: {change.shared}" if count > _FEW else line] = (
                None
            )
        return list(found)


def difference(old: PathMap, new: PathMap) -> Difference:
    """Differences from one map to another; line numbers and statistics count for nothing."""
    found = Difference()
    if old.starts.value != new.starts.value:
        why = new.starts.why or old.starts.why
        found.changes.append(Change("starts", "~", f"{old.starts.value} -> {new.starts.value}: {why}"))
    _appeared(found, "path", {p.id for p in old.paths}, {p.id for p in new.paths})
    before, after = {p.id: p for p in old.paths}, {p.id: p for p in new.paths}
    for name in sorted(before.keys() & after.keys()):
        found.changes += _path(before[name], after[name])
    _appeared(found, "label", old.labels, new.labels)
    _appeared(
        found, "gap", {f"{g.severity}: {g.text}" for g in old.gaps}, {f"{g.severity}: {g.text}" for g in new.gaps}
    )
    found.changes += _config({c.name: c for c in old.config}, {c.name: c for c in new.config})
    found.changes += _sites({s.id: s for s in old.sites}, {s.id: s for s in new.sites})
    return found


def _appeared(found: Difference, kind: str, old: Iterable[str], new: Iterable[str]) -> None:
    before, after = set(old), set(new)
    found.changes += [Change(kind, "-", item) for item in sorted(before - after)]
    found.changes += [Change(kind, "+", item) for item in sorted(after - before)]


def _path(old: PathEntry, new: PathEntry) -> list[Change]:
    found = []
    pairs = (
        ("class", old.inspectability, new.inspectability),
        ("reachable", old.reachable, new.reachable),
        ("trigger", old.trigger, new.trigger),
        ("key", old.label.key, new.label.key),
        ("label expression", old.label.expression, new.label.expression),
        ("sizes", _sizes(old.label.buckets), _sizes(new.label.buckets)),
        ("clamped by", old.label.clamped_by, new.label.clamped_by),
        ("variants", old.label.variants, new.label.variants),
        ("components", [c.class_ for c in old.components], [c.class_ for c in new.components]),
        ("chain", [c.qualname for c in old.chain], [c.qualname for c in new.chain]),
        ("depends on", old.depends_on_unconfirmed, new.depends_on_unconfirmed),
    )
    for name, before, after in pairs:
        if before != after:
            found.append(Change("path", "~", f"{new.id}: {name}: {_text(before)} -> {_text(after)}"))
    return found


def _sites(old: Mapping[str, Site], new: Mapping[str, Site]) -> list[Change]:
    found = [Change("site", "-", f"{name} ({old[name].api})") for name in sorted(old.keys() - new.keys())]
    found += [
        Change("site", "+", f"{name} ({new[name].api}) at {new[name].file}:{new[name].line}")
        for name in sorted(new.keys() - old.keys())
    ]
    for name in sorted(old.keys() & new.keys()):
        before, after = old[name], new[name]
        for what, a, b in (
            ("class", before.inspectability, after.inspectability),
            ("reachable", before.reachable, after.reachable),
        ):
            if a != b:
                shared = f"{what}: {a} -> {b} ({after.why})"
                found.append(Change("site", "~", f"{name}: {shared}", shared))
    return found


def _config(old: Mapping[str, ConfigValue], new: Mapping[str, ConfigValue]) -> list[Change]:
    # A release brings and drops settings by the dozen; those left at their defaults are one line.
    gone = [name for name in sorted(old.keys() - new.keys()) if _untouched(old[name])]
    come = [name for name in sorted(new.keys() - old.keys()) if _untouched(new[name])]
    found = [
        Change("config", sign, f"{_settings(len(names))} at the default: {', '.join(names)}")
        for sign, names in (("-", gone), ("+", come))
        if names
    ]
    changed = {
        name: (old.get(name), new.get(name))
        for name in sorted((old.keys() | new.keys()) - {*gone, *come})
        if _stated(old.get(name)) != _stated(new.get(name))
    }
    for name, (before, after) in changed.items():
        if not _told_by_parts(name, before, after, changed):
            text = f"{name}: {_value(before)} -> {_value(after)}{_cause(before, after)}"
            found.append(Change("config", "~", text))
    return found


def _stated(item: ConfigValue | None) -> tuple[object, object] | None:
    return (item.value, item.predicted) if item is not None else None


def _told_by_parts(name: str, before: ConfigValue | None, after: ConfigValue | None, changed: Iterable[str]) -> bool:
    """Whether a setting is a table on both sides, and each part of it that differs is a changed setting of its own."""
    if before is None or after is None:
        return False
    a, b = before.value, after.value
    if not isinstance(a, Mapping) or not isinstance(b, Mapping) or before.predicted != after.predicted:
        return False
    old, new = _leaves(a, name), _leaves(b, name)
    same = {part for part in old.keys() & new.keys() if old[part] == new[part]}
    return (old.keys() | new.keys()) - same <= {*changed} - {name}


def _leaves(table: Mapping[str, object], name: str) -> dict[str, object]:
    """Values of a table, and of the tables in it, by dotted name."""
    found: dict[str, object] = {}
    for key, value in table.items():
        part = f"{name}.{key}"
        found |= _leaves(value, part) if isinstance(value, Mapping) and value else {part: value}
    return found


def _untouched(item: ConfigValue) -> bool:
    return item.source == "default" and not item.automatic and not item.depends


def _settings(count: int) -> str:
    return "1 setting" if count == 1 else f"{count} settings"


def _cause(before: ConfigValue | None, after: ConfigValue | None) -> str:
    """Where the new value comes from, what it rests on, and what the old one rested on besides."""
    if after is None:
        return ""
    parts = [str(after.source)]
    if after.depends:
        parts.append(f"rests on {', '.join(after.depends)}")
    gone = sorted(set(before.depends) - set(after.depends)) if before is not None else []
    if gone:
        parts.append(f"no longer on {', '.join(gone)}")
    if after.decided_by is not None:
        parts.append(f"decided by {after.decided_by.qualname.rpartition(':')[2]} in {after.decided_by.file}")
    return f" ({'; '.join(parts)})"


def _value(item: ConfigValue | None) -> str:
    if item is None:
        return "absent"
    if item.source == "unresolved" or (item.automatic and item.value is None):
        return f"unresolved (predicted {_text(item.predicted)})"
    return _text(item.value)


def _sizes(sizes: tuple[int, ...] | None) -> str:
    if sizes is None:
        return "not settled"
    return f"{len(sizes)} sizes {min(sizes)}..{max(sizes)}: {list(sizes)}" if sizes else "none"


def _text(value: object) -> str:
    text = str(value)
    return text if len(text) <= 300 else text[:299] + "…"
