"""Resolve a launch: run the checkout's own parsing and resolution, three-valued, and keep the result for questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.arguments import expand_config
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.declarations import Declarations, Rejected
from sgl_graph.analyzer.static.config.evaluator import Evaluator
from sgl_graph.analyzer.static.config.exceptions import describe
from sgl_graph.analyzer.static.config.facts import LaunchFacts
from sgl_graph.analyzer.static.config.inputs import Launch, assumed_device
from sgl_graph.analyzer.static.config.journal import Raised
from sgl_graph.analyzer.static.config.machine import Unsupported
from sgl_graph.analyzer.static.config.possibilities import single
from sgl_graph.analyzer.static.config.program import Instance
from sgl_graph.analyzer.static.config.protocol import Place, Starts
from sgl_graph.analyzer.static.config.values import ABSENT, ListV, Value

_UNKNOWN_MODEL_STEPS = 250_000


def resolve(project: Project, launch: Launch) -> ResolvedConfiguration:
    """Resolve one launch.

    Raises:
        CommandInvalid: the command does not fit the checkout's declarations.
    """
    assumptions = launch.assumptions
    environment = {**launch.environment, **assumptions.environment}
    facts = LaunchFacts(
        environment=environment,
        device=assumed_device(launch.device, assumptions.device),
        model_configs=_model_configs(launch),
        path_kind=launch.path_kind,
        packages=assumptions.packages,
    )
    evaluator = Evaluator(project, facts)
    evaluator.assumed_fields = dict(assumptions.fields)
    evaluator.asked_fields = dict(assumptions.asked)
    starts = Starts(True)
    record: Value = None
    prepare = lookup(evaluator, profile.PREPARE_FUNCTION)
    if prepare is ABSENT:
        reading = project.module(profile.PREPARE_FUNCTION.partition(":")[0])
        if reading is not None and reading.facts.error is not None:
            raise CommandInvalid(
                f"{reading.path} could not be read: {reading.facts.error}", hint="it is what reads a command"
            )
        raise CommandInvalid(f"this checkout has no {profile.PREPARE_FUNCTION}", hint="it is what reads a command")
    module = evaluator.module(profile.PREPARE_FUNCTION.split(":")[0])
    assert module is not None
    evaluator.frames.append(module.frame)
    try:
        tokens = expand_config(launch.arguments, _declared(evaluator, launch), launch.read_yaml)
        record = single(evaluator.call(prepare, [ListV(list(tokens))], {}))
        if type(record) is Instance:
            evaluator.record = record
            if facts.model_unknown(_target_model(launch)):
                # Every architecture's branch is open: what is not settled soon will not be settled at all.
                evaluator.limit = evaluator.steps + _UNKNOWN_MODEL_STEPS
            for name in (*profile.RESOLUTION_METHODS, *profile.CHECK_METHODS):
                _call_method(evaluator, record, name)
            _publish(evaluator, record)
    except Rejected as rejected:
        starts = Starts(False, rejected.why, rejected.place.file, rejected.place.line)
    except Unsupported:
        evaluator.record = record if type(record) is Instance else evaluator.record
        evaluator.unfinished = True
    except Raised as raised:
        starts = _failed(raised.value, raised.place)
        record = record if type(record) is Instance else evaluator.record
    evaluator.abandon(0)
    return ResolvedConfiguration(evaluator, record if type(record) is Instance else evaluator.record, starts, launch)


def _failed(value: Value, place: Place) -> Starts:
    return Starts(False, describe(value), place.file, place.line)


def _model_configs(launch: Launch) -> Any:
    target = _target_model(launch)
    assumed = launch.assumptions.model

    def find(path: str) -> Mapping[str, Any] | None:
        if path == target and (launch.model_config is not None or assumed):
            return {**(launch.model_config or {}), **assumed}
        return launch.model_configs(path)

    return find


def _target_model(launch: Launch) -> str | None:
    tokens = list(launch.arguments)
    for position, token in enumerate(tokens):
        name, equals, value = token.partition("=")
        if name in ("--model-path", "--model"):
            return value if equals else tokens[position + 1] if position + 1 < len(tokens) else None
    return None


def _declared(evaluator: Evaluator, launch: Launch) -> Declarations | None:
    """The declarations, needed before parsing only where a configuration file is merged in."""
    if "--config" not in launch.arguments:
        return None
    cls = lookup(evaluator, profile.ARGUMENT_CLASS)
    parser = evaluator.call(_external_parser(), [], {})
    evaluator.call(evaluator.get(cls, "add_cli_args"), [parser], {})
    found: Declarations = single(parser).payload
    return found


def _external_parser() -> Value:
    from sgl_graph.analyzer.static.config.declarations import PARSER
    from sgl_graph.analyzer.static.config.values import External

    return External(PARSER)


def lookup(evaluator: Evaluator, qualname: str) -> Value:
    """A module-level name, or an attribute of a module-level class, by `module:name`; ABSENT when there is none."""
    module_name, _, path = qualname.partition(":")
    module = evaluator.module(module_name)
    if module is None:
        return ABSENT
    value: Value = module
    for part in path.split("."):
        value = evaluator.module_attribute(module, part) if value is module else evaluator.get(value, part)
        if value is ABSENT:
            return ABSENT
    return value


def _call_method(evaluator: Evaluator, record: Instance, name: str) -> None:
    method = evaluator.get(record, name)
    if method is not ABSENT:
        evaluator.call(method, [], {})


def _publish(evaluator: Evaluator, record: Instance) -> None:
    """Make the arguments visible to the process, as the scheduler does; what fails here is no fault of the command."""
    function = lookup(evaluator, profile.PUBLISH_FUNCTION)
    try:
        if function is not ABSENT:
            evaluator.call(function, [record], {"role": profile.PUBLISH_ROLE})
            return
        for name in profile.PUBLISH_LEGACY:
            function = lookup(evaluator, name)
            if function is not ABSENT:
                evaluator.call(function, [record], {})
    except (Raised, Unsupported) as reason:
        evaluator.note(evaluator.place(), f"publishing: {reason}")
