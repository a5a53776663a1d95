"""What a configuration runs besides the model: attention, LoRA, experts, collectives; and whose memory they bring."""

from __future__ import annotations

import re

from sgl_graph.analyzer.records.pathmap import Component, ComponentKind, Reach
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project, module_name
from sgl_graph.analyzer.static.checkout.questions import At, question
from sgl_graph.analyzer.static.extract.unasked import EVERY
from sgl_graph.analyzer.static.linked import ClassInfo, Linked, Truth
from sgl_graph.analyzer.static.paths.memory import memory_of
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.paths.workspaces import workspaces_of

_COLLECTIVE = re.compile(profile.COLLECTIVE_METHODS)


def components_of(
    project: Project, linked: Linked, reach: Reachability, *, ranks: int | None
) -> tuple[tuple[str, Component], ...]:
    """Components that this configuration builds, by kind and name, each with its class.

    Args:
        ranks: processes that talk to each other, None when that is not settled; one alone has no collectives.
    """
    found: dict[tuple[str, str], Component] = {}
    for info in linked.classes.values():
        kind = _kind(info)
        if kind is None or (kind == "communication" and ranks == 1):
            continue
        reachable = _built(linked, reach, info.qualname)
        if reachable == "no":
            continue
        # Dispatchers and communicators keep their buffers beside the class.
        lines = (At(info.facts.line), At(info.facts.end_line)) if kind in ("attention", "lora") else ()
        memory = project.questions.ask(info.module.path, memory_words, *lines)
        found[kind, info.qualname] = Component(
            kind=kind,
            class_=info.qualname.rpartition(":")[2],
            memory=memory,
            reachable=reachable,
            file=info.module.path,
            line=info.facts.line,
        )
    own = [
        (name, workspace)
        for name, workspace in workspaces_of(linked, lambda name: _built(linked, reach, name))
        if ranks != 1 or not module_name(workspace.file)[0].startswith(profile.COMMUNICATION_PACKAGES)
    ]
    return (*((key[1], found[key]) for key in sorted(found)), *own)


@question
def memory_words(text: bytes, first: int = 1, last: int | None = None) -> str:
    """Memory that the code of some lines hands to kernels."""
    return memory_of(b"\n".join(text.split(b"\n")[first - 1 : last]))[0]


def _kind(info: ClassInfo) -> ComponentKind | None:
    for name in info.ancestors:
        if name == info.qualname:
            continue
        short = name.rpartition(":")[2].rpartition(".")[2]
        for kind, base in profile.COMPONENT_BASES:
            if short == base:
                return kind  # type: ignore[return-value]
    for kind, method in profile.COMPONENT_METHODS:
        if method in info.methods:
            return kind  # type: ignore[return-value]
    if info.module.name.startswith(profile.COMMUNICATION_PACKAGES):
        info.module.asked.add(EVERY)
        return "communication" if any(map(_COLLECTIVE.match, info.methods)) else None
    return None


def _built(linked: Linked, reach: Reachability, class_name: str) -> Reach:
    best: Reach = "no"
    for call in reach.calls_of(class_name):
        truth = linked.reached.get(call.caller)
        if class_name not in call.constructs or not call.active or truth is None:
            continue
        open_guard = any(g.value is Truth.UNKNOWN and g.depends for g in call.guards)
        if truth is Truth.TRUE and not open_guard:
            return "yes"
        best = "unresolved"
    return best
