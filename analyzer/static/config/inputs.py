"""What a launch is resolved from, and hand-made assumptions about it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.static.config.device import DeviceFacts


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Facts settled by hand with `--assume K=V`.

    Attributes:
        fields: names of arguments with the value that they take where the command does not give one.
        packages: `package:NAME=yes|no`.
        environment: `env:NAME=VALUE`.
        device: `device.memory`, `device.capability`, `device.count`, `device.name`, `device.kind`.
        model: `model.KEY=JSON`, merged into the model's configuration.
        asked: what the serving environment's own parser answered (`--resolve`): predictions, which settle nothing.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, bool] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    device: Mapping[str, str] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    asked: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything known about a launch before it happens.

    Attributes:
        arguments: what the server's own parser receives.
        environment: variables of the server process.
        device: facts of the device, None when unknown.
        model_config: contents of the model's `config.json`, None when unknown.
        model_configs: finds the `config.json` of other model paths (a draft model) on disk.
        path_kind: `file`, `folder` or None for a path, as seen from here.
        read_yaml: contents of a YAML file (`--config`), None when it cannot be read.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    device: DeviceFacts | None = None
    model_config: Mapping[str, Any] | None = None
    model_configs: Callable[[str], Mapping[str, Any] | None] = lambda path: None
    path_kind: Callable[[str], str | None] = lambda path: None
    read_yaml: Callable[[str], Any] = lambda path: None
    assumptions: Assumptions = field(default_factory=Assumptions)


_WORDS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def parse_assumptions(pairs: Sequence[str]) -> Assumptions:
    """The values of repeated `--assume K=V`.

    Raises:
        ConfigError: one is not `K=V`, or its value does not fit its kind.
    """
    fields: dict[str, str] = {}
    packages: dict[str, bool] = {}
    environment: dict[str, str] = {}
    device: dict[str, str] = {}
    model: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ConfigError(f"not an assumption: {pair}", hint="write --assume NAME=VALUE")
        if name.startswith("package:"):
            if value.lower() not in _WORDS:
                raise ConfigError(f"--assume {pair}: a package is there or not", hint="write yes or no")
            packages[name.removeprefix("package:")] = _WORDS[value.lower()]
        elif name.startswith("env:"):
            environment[name.removeprefix("env:")] = value
        elif name.startswith("device."):
            device[name.removeprefix("device.")] = value
        elif name.startswith("model."):
            try:
                model[name.removeprefix("model.")] = json.loads(value)
            except json.JSONDecodeError:
                model[name.removeprefix("model.")] = value
        else:
            fields[name.lstrip("-").replace("-", "_")] = value
    return Assumptions(fields, packages, environment, device, model)


def assumed_device(device: DeviceFacts | None, assumed: Mapping[str, str]) -> DeviceFacts | None:
    """Device facts with those settled by hand.

    Raises:
        ConfigError: a fact that devices do not have, or a value that is none.
    """
    if not assumed:
        return device
    changes: dict[str, Any] = {}
    for name, value in assumed.items():
        try:
            if name == "capability":
                major, _, minor = value.partition(".")
                changes[name] = (int(major), int(minor or 0))
            elif name in ("memory", "count", "cores"):
                changes[name] = int(value)
            elif name in ("name", "kind", "architecture"):
                changes[name] = value
            else:
                raise ConfigError(f"devices have no fact {name}", hint="kind, name, capability, memory, cores, count")
        except ValueError:
            raise ConfigError(f"--assume device.{name}={value}: not a number") from None
    if device is None:
        return DeviceFacts(**{"kind": "cuda", **changes})
    return replace(device, **changes)
