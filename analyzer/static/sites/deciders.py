"""Who decides whether a graph runs, which, and of which class: all that is found once the graphs' owners are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sgl_graph.analyzer.static.sites import endings, rebindings
from sgl_graph.analyzer.static.sites.choices import Choices
from sgl_graph.analyzer.static.sites.eligibility import Eligibility
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.keyparts import KeyParts
from sgl_graph.analyzer.static.sites.owners import Owners
from sgl_graph.analyzer.static.sites.rawsite import RawSite

_NO_DEVICES: frozenset[str] = frozenset()


def find(
    types: GraphTypes, owners: Owners, sites: list[RawSite], read_more: Callable[[Iterable[str]], list[str]]
) -> list[RawSite]:
    """Choices around the primitives found so far, and what ends the graphs that they keep.

    Args:
        read_more: reads the modules whose text mentions any of the names, and gives those that are new.
    """
    eligibility = Eligibility(types, owners, sites)
    more = read_more(eligibility.mentions())
    if more:
        types.extend(more)
    keys = KeyParts(types, owners, sites)
    given = rebindings.bodies(types, owners)
    found = [*eligibility.sites(), *keys.sites(), *Choices(types, owners).find()]
    for function, uses in given.values():
        found += [*uses, RawSite(function, function.line, "dispatch", "body", uses[0].api, _NO_DEVICES)]
    functions = {**eligibility.functions, **keys.functions, **{name: one for name, (one, _) in given.items()}}
    found += rebindings.modes(types, owners)
    found += rebindings.rebound(types, functions)
    found += endings.find(types, owners, sites)
    return found
