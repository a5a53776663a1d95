"""What cannot be proven under a configuration, or will not be seen: material gaps first, then notes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from sgl_graph.analyzer.records.pathmap import (
    DeviceFacts,
    Gap,
    PathEntry,
    Site,
    Starts,
    TrafficItem,
    Unresolved,
    WorkerEntry,
)
from sgl_graph.analyzer.static.paths.deaths import Death
from sgl_graph.analyzer.static.paths.parts import PHASES
from sgl_graph.analyzer.static.paths.traffic import USING_ADAPTERS, uncovered

#: So many batch sizes that fall to eager execution are not worth a note.
_FEW = 3
_SOURCE = ".py"


def gaps_of(
    *,
    starts: Starts,
    device: DeviceFacts,
    model_known: bool,
    workers: Sequence[WorkerEntry],
    sites: Sequence[Site],
    paths: Sequence[PathEntry],
    unresolved: Sequence[Unresolved],
    labels: Sequence[str],
    traffic: Sequence[TrafficItem],
    problems: Mapping[str, str],
    cut_short: Mapping[str, str],
    dying: Sequence[Death] = (),
    lost: Collection[str] = (),
    missing: str = "",
    adapters: bool = False,
) -> tuple[Gap, ...]:
    """The gaps of one map, material ones first, each list in a fixed order.

    Args:
        lost: unreadable files that code which runs imports, or whose text speaks of graphs.
        missing: why no entry of the worker was found; empty where one was.
        adapters: whether the launch serves adapters.
    """
    if starts.value == "no":
        at = f" ({starts.file}:{starts.line})" if starts.file else ""
        return (Gap(severity="material", code="SGG060", text=f"the server does not start: {starts.why}{at}"),)
    material = [Gap(severity="material", code="SGG065", text=f"{missing}: no path can be told")] if missing else []
    material += [*_facts(device, model_known), *map(_of_death, dying), *_of_workers(workers), *_of_paths(paths)]
    missed = uncovered(labels, traffic)
    if missed:
        text = f"no planned request replays {', '.join(missed)}: the budget does not hold them"
        material.append(Gap(severity="material", code="SGG050", text=text))
    material += [*_folders(problems), *_files(problems, lost)]
    notes = [*_notes(paths, labels), *_files(problems, problems.keys() - set(lost), "note"), *_cut_short(cut_short)]
    if adapters and labels and all(item.variant not in USING_ADAPTERS for item in traffic):
        text = (
            "the launch serves adapters and no planned request uses one: name some with --lora-paths, or raise --budget"
        )
        notes.append(Gap(severity="note", code="SGG055", text=text))
    if not paths and not any(site.reachable != "no" and site.role == "capture" for site in sites):
        notes.append(Gap(severity="note", code="SGG062", text="no capture is reachable under this configuration"))
    if unresolved:
        # A fact of the host and the argument of that name are told apart in `unresolved`, by how each is settled.
        names = list(dict.fromkeys(item.what for item in unresolved))
        listed = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        are = "value is" if len(names) == 1 else "values are"
        text = f"{len(names)} {are} settled only by the server: {listed}"
        notes.append(Gap(severity="note", code="SGG040", text=text))
    unique = {(gap.severity, gap.text): gap for gap in (*material, *notes)}
    return tuple(unique.values())


def _facts(device: DeviceFacts, model_known: bool) -> list[Gap]:
    found = []
    if not model_known:
        text = (
            "the model's configuration is not known: give --model-config FILE; attention, experts and towers are open"
        )
        found.append(Gap(severity="material", code="SGG042", text=text))
    if device.name is None and device.kind is None:
        text = "the device is not known: give --device NAME, as in --device h200; sizes and defaults are open"
        found.append(Gap(severity="material", code="SGG043", text=text))
    return found


def _of_death(death: Death) -> Gap:
    text = f"{death.name}: the capture ends in {death.text} ({death.by}, {death.file}:{death.line})"
    return Gap(severity="material", code="SGG064", text=text, sites=death.sites)


def _of_workers(workers: Sequence[WorkerEntry]) -> list[Gap]:
    return [
        Gap(severity="material", code="SGG030", text=f"injection into {w.role} processes: {w.injection.why}")
        for w in workers
        if w.injection.reaches != "yes"
    ]


def _of_paths(paths: Sequence[PathEntry]) -> list[Gap]:
    found = []
    for path in paths:
        if path.inspectability == "lifetime-inspectable" or path.family == "other":
            continue
        texts = list(dict.fromkeys(reason.text for reason in path.reasons))
        more = f" (and {len(texts) - 2} more reasons)" if len(texts) > 2 else ""
        found.append(
            Gap(
                severity="material",
                code=path.reasons[0].code if path.reasons else None,
                text=f"{path.name} on {path.backend} is {path.inspectability}: {'; '.join(texts[:2])}{more}",
                sites=path.sites,
            )
        )
    return found


def _notes(paths: Sequence[PathEntry], labels: Sequence[str]) -> list[Gap]:
    found = []
    for path in paths:
        if path.reachable == "unresolved":
            rests = f" (rests on {', '.join(path.depends_on_unconfirmed)})" if path.depends_on_unconfirmed else ""
            text = f"{path.name} on {path.backend}: whether it runs is not settled{rests}"
            found.append(Gap(severity="note", code="SGG040", text=text, sites=path.sites))
        elif path.trigger != "startup" and path.family != "other":
            text = f"{path.name} on {path.backend} is captured while serving, not at start-up"
            found.append(Gap(severity="note", code="SGG052", text=text, sites=path.sites))
        if path.label.variants_open and path.reachable == "yes":
            names = ", ".join(path.label.variants_open)
            text = f"{path.name}: the server decides which of the variants {names} are captured; none is expected of the traffic"
            found.append(Gap(severity="note", code="SGG054", text=text, sites=path.sites))
        left = path.label.left_to_eager
        if path.name in labels and sum(last - first + 1 for first, last in left) > _FEW:
            ranges = ", ".join(f"{first} to {last}" for first, last in left[:4]) + (", ..." if len(left) > 4 else "")
            by = path.label.left_by
            at = f" ({by.file}:{by.line})" if by is not None else ""
            text = f"{path.name}: batches of {ranges} run eagerly, the captured size above needs too much padding{at}"
            found.append(Gap(severity="note", code="SGG053", text=text, sites=path.sites))
        if path.name in labels and not path.label.enumerable:
            open_ = path.family in PHASES and path.label.key != "none"
            cause = "its sizes are not settled" if open_ else f"its keys {path.label.key} come from the requests"
            text = f"{path.name}: {cause}, the set of labels is open"
            found.append(Gap(severity="note", code="SGG051", text=text, sites=path.sites))
    return found


def _folders(problems: Mapping[str, str]) -> list[Gap]:
    """Folders of which nobody knows what they hold."""
    return [
        Gap(severity="material", code="SGG061", text=f"folder {folder} could not be read: {reason}")
        for folder, reason in sorted(problems.items())
        if not folder.endswith(_SOURCE)
    ]


def _files(
    problems: Mapping[str, str], among: Collection[str], severity: Literal["material", "note"] = "material"
) -> list[Gap]:
    """Files that could not be read; material where captures, or calls that lead to some, may be in them."""
    may = ": captures and labels of it are missing" if severity == "material" else ""
    return [
        Gap(severity=severity, code="SGG061", text=f"{file} could not be read ({reason}){may}")
        for file, reason in sorted(problems.items())
        if file.endswith(_SOURCE) and file in among
    ]


def _cut_short(cut_short: Mapping[str, str]) -> list[Gap]:
    return [
        Gap(severity="note", code="SGG063", text=f"values had not settled when the analysis ended: {reason} ({file})")
        for file, reason in sorted(cut_short.items())
    ]
