"""Small questions about the primitives of a path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sgl_graph.analyzer.records.pathmap import Reach, Site, Trigger
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.tags import enclosing_method

#: Phase of the capture settings that each family's sizes come from.
PHASES: Mapping[str, str] = {
    "decode": "decode", "verify": "decode", "draft": "decode", "draft-extend": "decode",
    "prefill-full": "prefill", "prefill-breakable": "prefill", "prefill-piecewise": "prefill",
}  # fmt: skip

_WEAK: dict[Reach, int] = {"yes": 0, "unresolved": 1, "no": 2}


def worse(one: Reach, other: Reach) -> Reach:
    """The weaker of two answers: both must hold."""
    return max(one, other, key=lambda answer: _WEAK[answer])


def owner_of(raw: RawSite) -> str | None:
    """The class whose method holds a primitive."""
    method = enclosing_method(raw.scope)
    return method.owner if method is not None else None


def short(qualname: str) -> str:
    """A qualified name without its module."""
    return qualname.rpartition(":")[2].replace(".<locals>", "")


def strongest(sites: Iterable[Site]) -> tuple[Reach, Trigger | None]:
    """The best answer among primitives: one that runs is enough."""
    best = min(sites, key=lambda site: _WEAK[site.reachable], default=None)
    return (best.reachable, best.trigger) if best is not None else ("unresolved", None)


def has_own_pool(sites: Sequence[tuple[RawSite, Site]]) -> bool:
    """Whether the graphs are captured into a pool that nothing else shares: the capture names none."""
    contexts = [raw for raw, _ in sites if raw.form in ("context", "capture_begin") and raw.call is not None]
    return bool(contexts) and not any(
        argument[0] == "k" and argument[1] == "pool"
        for raw in contexts
        if raw.call
        for argument in raw.call.expression[2]
    )
