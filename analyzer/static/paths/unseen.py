"""Components that a configuration builds and no path's code is seen to come to."""

from __future__ import annotations

from collections.abc import Sequence

from sgl_graph.analyzer.records.pathmap import Component, PathEntry
from sgl_graph.analyzer.static import profile

#: Kinds whose work is a part of the model's: where the source does not show which model is called, nor what that calls, any path may capture it.
_INSIDE_MODELS = ("attention", "lora", "moe")


def with_unseen(
    paths: Sequence[PathEntry], components: Sequence[Component], unconfirmed: frozenset[str]
) -> list[PathEntry]:
    """The paths, each with those components of a kind that belongs to models which no path at all has; those have no `reached_at`.

    Args:
        components: all that the configuration builds, in the order of reports.
        unconfirmed: predictions; what chose a component is among those that its paths rest on.
    """
    seen = {_key(component) for path in paths for component in path.components}
    rest = [one for one in components if one.kind in _INSIDE_MODELS and _key(one) not in seen]
    if not rest:
        return list(paths)
    order = {_key(component): place for place, component in enumerate(components)}
    chosen = {name for one in rest for name in profile.COMPONENT_FIELDS.get(one.kind, ())} & unconfirmed
    return [
        path.model_copy(
            update={
                "components": tuple(sorted((*path.components, *rest), key=lambda one: order[_key(one)])),
                "depends_on_unconfirmed": tuple(sorted({*path.depends_on_unconfirmed, *chosen})),
            }
        )
        for path in paths
    ]


def _key(component: Component) -> tuple[str, str, str, int | None]:
    return component.kind, component.class_, component.file, component.line
