"""Configured capture sizes, by the function of the checkout that computes them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.config.possibilities import deps_of, options_of, single
from sgl_graph.analyzer.static.config.program import Instance
from sgl_graph.analyzer.static.config.protocol import Buckets, Place
from sgl_graph.analyzer.static.config.python_values import inner_deps
from sgl_graph.analyzer.static.config.values import ABSENT, External, Fuzzy, ListV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration


_UNBOUNDED = 1 << 40


def configured_sizes(configuration: ResolvedConfiguration) -> list[Buckets]:
    """The sizes of every phase that this release captures; empty where capture is off."""
    return [replace(sizes, clamped=_clamped(configuration, sizes)) for sizes in _configured(configuration)]


def _configured(configuration: ResolvedConfiguration) -> list[Buckets]:
    config = configuration.result(profile.GRAPH_CONFIG_FIELD)
    plain = single(config)
    if type(plain) is Instance:
        return [_of_phase(configuration, plain, config, phase) for phase in ("decode", "prefill")]
    if config is not ABSENT and not (plain is None) and type(config) is Fuzzy:
        return [Buckets(phase, None, None, tuple(sorted(config.deps))) for phase in ("decode", "prefill")]
    return [_legacy(configuration, phase, name) for phase, name in profile.LEGACY_SIZE_FIELDS.items()]


def _of_phase(configuration: ResolvedConfiguration, plain: Instance, config: Value, phase: str) -> Buckets:
    machine = configuration.evaluator
    settings = configuration.ask(lambda: machine.get(plain, phase))
    backend = configuration.ask(lambda: machine.get(settings, profile.GRAPH_BACKEND))
    deps = deps_of(config) | deps_of(settings) | deps_of(backend)
    if single(backend) == profile.GRAPH_DISABLED:
        return Buckets(phase, (), None, tuple(sorted(deps)))
    sizes = configuration.ask(lambda: machine.get(settings, profile.GRAPH_SIZES))
    if profile.GRAPH_DISABLED in options_of(backend)[0] or options_of(backend)[1]:
        return Buckets(phase, None, _origin(configuration, sizes), tuple(sorted(deps | inner_deps(sizes))))
    return _listed(configuration, phase, sizes, deps)


def _listed(configuration: ResolvedConfiguration, phase: str, sizes: Value, deps: frozenset[str]) -> Buckets:
    deps = deps | inner_deps(sizes)
    plain = single(sizes)
    items = configuration.evaluator.elements(plain) if type(plain) is ListV else None
    if items is None:
        return Buckets(phase, None, _origin(configuration, sizes), tuple(sorted(deps)))
    numbers = [single(item) for item in items]
    settled = tuple(number for number in numbers if type(number) is int)
    known = settled if len(settled) == len(numbers) else None
    return Buckets(phase, known, _origin(configuration, sizes), tuple(sorted(deps)))


def _origin(configuration: ResolvedConfiguration, sizes: Value) -> Place | None:
    for option in options_of(sizes)[0]:
        found = configuration.evaluator.made.get(id(option))
        if found is not None:
            return found
    return None


def _legacy(configuration: ResolvedConfiguration, phase: str, name: str) -> Buckets:
    off = configuration.result(profile.LEGACY_OFF_FIELDS[phase])
    on_field = profile.LEGACY_ON_FIELDS.get(phase)
    on = configuration.result(on_field) if on_field is not None else ABSENT
    sizes = configuration.result(name)
    if single(off) is True or (on is not ABSENT and single(on) is False) or (sizes is ABSENT and phase != "decode"):
        return Buckets(phase, (), None)
    deps = (deps_of(off) if off is not ABSENT else frozenset()) | (deps_of(on) if on is not ABSENT else frozenset())
    if (off is not ABSENT and single(off) is ABSENT) or (on is not ABSENT and single(on) is ABSENT):
        return Buckets(phase, None, _origin(configuration, sizes), tuple(sorted(deps)))
    if sizes is not ABSENT and single(sizes) is not None:
        return _listed(configuration, phase, sizes, deps)
    return _computed_by_runner(configuration, phase, deps)


def _computed_by_runner(configuration: ResolvedConfiguration, phase: str, deps: frozenset[str]) -> Buckets:
    """Oldest releases compute the sizes from the live runner: what it knows beyond the arguments is unknown here."""
    from sgl_graph.analyzer.static.config.resolve import lookup

    function = lookup(configuration.evaluator, profile.LEGACY_SIZE_FUNCTION)
    if function is ABSENT or phase != "decode":
        return Buckets(phase, None, None, tuple(sorted(deps)))
    # The configured list is the one that the request pool does not clamp.
    pool = Instance(External("pool"), {"size": _UNBOUNDED}, frozenset({"server"}))
    attrs: dict[str, Value] = {"server_args": configuration.record, profile.LEGACY_POOL: pool}
    runner = Instance(External("runner"), attrs, frozenset({"server"}))
    found = configuration.ask(lambda: configuration.evaluator.call(function, [runner], {}))
    place = Place(function.module.module.path, function.facts.line, function.qualname)
    return Buckets(phase, _first_list(found), place, tuple(sorted(deps | deps_of(found))))


def _first_list(found: Value) -> tuple[int, ...] | None:
    """The numbers of a list, or of the first of several lists that a function returns together."""
    plain = single(found)
    items = single(plain[0] if type(plain) is tuple and plain else plain)
    if type(items) is not ListV or items.opaque is not None:
        return None
    numbers: list[int] = []
    for item in items.items:
        options = [option for option in options_of(item)[0] if type(option) is int]
        if len(options) != 1:
            return None
        numbers += options
    return tuple(numbers) or None


def _clamped(configuration: ResolvedConfiguration, sizes: Buckets) -> tuple[int, ...] | None:
    """The sizes under a request pool as large as the arguments ask for; None where they do not say, or there are none."""
    from sgl_graph.analyzer.static.config.resolve import lookup

    machine = configuration.evaluator
    asked = single(configuration.result(profile.POOL_FIELD))
    if sizes.phase != "decode" or not sizes.sizes or configuration.record is None or type(asked) is not int:
        return None
    divisor = next((d for name in profile.POOL_DIVISORS if type(d := single(configuration.result(name))) is int), 1)
    pool = Instance(External("pool"), {"size": max(1, asked // max(1, divisor))}, frozenset({"server"}))
    attrs: dict[str, Value] = {"server_args": configuration.record, profile.LEGACY_POOL: pool}
    runner = Instance(External("runner"), attrs, frozenset({"server"}))
    function = next((f for name in profile.SIZE_FUNCTIONS if (f := lookup(machine, name)) is not ABSENT), ABSENT)
    if function is ABSENT:
        return None
    return _first_list(configuration.ask(lambda: machine.call(function, [runner], {})))
