"""The class of the target's model, and that of the draft's, as the checkout's own model configuration names them."""

from __future__ import annotations

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.possibilities import options_of, single
from sgl_graph.analyzer.static.config.protocol import Configuration
from sgl_graph.analyzer.static.config.resolve import lookup
from sgl_graph.analyzer.static.config.values import ABSENT, ListV, Value


def model_classes(configuration: Configuration | None) -> dict[bool, str]:
    """Simple names of the classes of the target's model (False) and of the draft's (True); what is not settled is left out."""
    if not isinstance(configuration, ResolvedConfiguration) or configuration.record is None:
        return {}
    found = {draft: _class(configuration, draft) for draft in (False, True)}
    return {draft: name for draft, name in found.items() if name is not None}


def _class(configuration: ResolvedConfiguration, draft: bool) -> str | None:
    machine = configuration.evaluator
    given: dict[str, Value] = {profile.DRAFT_MODEL_PARAMETER: draft}
    if draft:
        path = configuration.result(profile.DRAFT_PATH_FIELD)
        if type(single(path)) is not str:
            return None
        given[profile.MODEL_PATH_PARAMETER] = path

    def architectures() -> Value:
        maker = machine.get(lookup(machine, profile.MODEL_CLASS), profile.MODEL_OF_ARGUMENTS)
        found: Value = machine.call(maker, [configuration.record], dict(given))
        for name in profile.ARCHITECTURES:
            found = machine.get(found, name)
        return found

    if lookup(machine, profile.MODEL_CLASS) is ABSENT:
        return None
    options, open_ = options_of(configuration.ask(architectures))
    names = {_first(option) for option in options}
    only = names.pop() if len(names) == 1 and not open_ else None
    return only


def _first(value: Value) -> str | None:
    """The first text of a list."""
    if type(value) is not ListV or value.opaque is not None or not value.items:
        return None
    first = single(value.items[0])
    return first if type(first) is str else None
