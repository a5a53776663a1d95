"""The processes of a launch that may hold graphs: how many, where they start, and whether an injection reaches them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from sgl_graph.analyzer.records.pathmap import CodeRef, Injection, WorkerEntry
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.checkout.questions import At, question

_PROCESS = re.compile(rb"(?:\bmp|multiprocessing|ctx|context)\.Process\(|\bProcess\(\s*target")
_RAY = re.compile(rb"ray\.remote|RayEngine")


def worker_entries(project: Project) -> list[tuple[str, str]]:
    """Role and entry function of each kind of worker that this checkout has."""
    found = []
    for role, name in profile.WORKER_ENTRIES:
        module_name, _, function = name.partition(":")
        module = project.module(module_name)
        if module is not None and module.function_named(function) is not None:
            found.append((role, name))
    return found


def missing_entry(project: Project, *, encoder: bool) -> str:
    """Why this checkout shows no entry of the worker that a configuration starts."""
    role, name = next(item for item in profile.WORKER_ENTRIES if (item[0] == "encoder") == encoder)
    module_name, _, function = name.partition(":")
    module = project.module(module_name)
    if module is None:
        return f"the {role}'s module {module_name} is not in this checkout"
    if module.facts.error is not None:
        return f"{module.path}, where the {role} starts, could not be read: {module.facts.error}"
    return f"{module.path} has no function {function}, where the {role} starts"


def workers(project: Project, settings: Mapping[str, Any], reached: Iterable[str]) -> tuple[WorkerEntry, ...]:
    """The worker processes of one configuration."""
    encoder_only = settings.get(profile.ENCODER_FIELD)
    known = set(reached)
    found: list[WorkerEntry] = []
    for role, name in worker_entries(project):
        if role == "encoder" and encoder_only is not True:
            continue
        if role != "encoder" and encoder_only is True:
            continue
        if known and name not in known:
            continue
        if any(entry.role == role for entry in found):
            continue  # the same processes, seen from another function: they are counted once
        module_name, _, function = name.partition(":")
        module = project.module(module_name)
        started = module.function_named(function) if module is not None else None
        assert module is not None and started is not None
        line = started.line
        count, source = _count(role, settings)
        found.append(
            WorkerEntry(
                role=role,
                count=count,
                source=source,
                injection=_injection(project, function),
                entry=CodeRef(file=module.path, line=line, qualname=name),
            )
        )
    return tuple(found)


def _count(role: str, settings: Mapping[str, Any]) -> tuple[int | None, str]:
    # A checkout without one of the sizes has no ranks of that kind.
    sizes = {name: settings[name] for name in profile.RANK_FIELDS if name in settings}
    if not sizes or any(not isinstance(value, int) for value in sizes.values()):
        return None, "ranks are not settled"
    count = 1
    for value in sizes.values():
        count *= int(value or 1)
    dp = settings.get("dp_size")
    if isinstance(dp, int) and dp > 1 and settings.get("enable_dp_attention") is False:
        count *= dp
        sizes["dp_size"] = dp
    return count, " x ".join(f"{name} {value}" for name, value in sizes.items())


@question
def process_line(text: bytes, function: str) -> At | None:
    """The first line that makes a process, in a file that names the function which such a process runs."""
    match = _PROCESS.search(text) if function.encode() in text else None
    return At(text.count(b"\n", 0, match.start()) + 1) if match is not None else None


def _injection(project: Project, function: str) -> Injection:
    """Worker processes inherit the environment of the launcher unless the code that starts them replaces it."""
    for path in sorted(project.sources.paths()):
        if "/entrypoints/" not in path and "/managers/" not in path and "/disaggregation/" not in path:
            continue
        line = project.questions.ask(path, process_line, function)
        if line is not None:
            return Injection(
                reaches="yes",
                why="started as a Python process that inherits the environment, so PYTHONPATH reaches it",
                file=path,
                line=line,
            )
    return Injection(reaches="unresolved", why="the source does not show how this process starts")
