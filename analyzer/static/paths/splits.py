"""Split points where no graph is split: the wrapper of one runs what it wraps, and nothing more, outside a capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sgl_graph.analyzer.static.paths.reach import Reached
from sgl_graph.analyzer.static.sites.owners import outermost
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.tags import last_name


def settled_splits(sites: Sequence[RawSite], found: Sequence[Reached]) -> list[Reached]:
    """The same answers, but for split points whose wrapper never ends a segment in this configuration."""
    ends: dict[str, list[Reached]] = {}
    inside: dict[str, Reached] = {}
    for site, answer in zip(sites, found, strict=True):
        if site.form == "segment-end":
            ends.setdefault(outermost(site.scope).name.rsplit(":", 1)[-1], []).append(answer)
            inside[site.scope.name] = answer
    settled = [_settled(site, answer, ends, inside) for site, answer in zip(sites, found, strict=True)]
    kept = [answer for site, answer in zip(sites, settled, strict=True) if site.form == "break-record"]
    return [
        _between(answer, kept) if site.form == "eager-between" else answer
        for site, answer in zip(sites, settled, strict=True)
    ]


def _between(answer: Reached, kept: Sequence[Reached]) -> Reached:
    """The answer for what a container calls between its segments: it has only what was kept where a segment was ended."""
    if answer.reachable == "no" or not kept or any(record.reachable == "yes" for record in kept):
        return answer
    record = next((r for r in kept if r.reachable == "unresolved"), kept[0])
    why = f"nothing is kept to run there: {record.why}" if record.reachable == "no" else record.why
    return replace(record, trigger=answer.trigger, why=why)


def _settled(site: RawSite, answer: Reached, ends: dict[str, list[Reached]], inside: dict[str, Reached]) -> Reached:
    if site.form == "break-record" and answer.reachable == "yes":
        # What runs between two segments is kept where one has been ended.
        end = inside.get(site.scope.name, answer)
        return answer if end.reachable == "yes" else replace(end, trigger=answer.trigger)
    if site.form != "break-point" or answer.reachable == "no":
        return answer
    splitting = [end for name in _wrappers_of(site) for end in ends.get(name, ())]
    if not splitting or any(end.reachable == "yes" for end in splitting):
        return answer
    end = next((e for e in splitting if e.reachable == "unresolved"), splitting[0])
    return replace(end, why=f"its wrapper splits no graph: {end.why}" if end.reachable == "no" else end.why)


def _wrappers_of(site: RawSite) -> set[str]:
    """Names of what wraps the function of a split point."""
    callees = [site.call.expression] if site.call is not None else site.scope.decorators
    return {name for callee in callees if (name := last_name(callee)) is not None}
