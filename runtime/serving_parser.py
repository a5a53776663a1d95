"""`--resolve`: the arguments as the serving environment's own parser resolves them, in a subprocess without GPU or network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.serving_command import ServingCommand
from sgl_graph.analyzer.static.config.inputs import Assumptions, Launch
from sgl_graph.runtime.checkout import Location

_LIMIT_S = 120
_ASK = """
import dataclasses, json, sys
from sglang.srt.server_args import prepare_server_args
found = prepare_server_args(json.loads(sys.argv[1]))
# Newer releases resolve in a second step and keep what they decide beside the arguments.
getattr(found, "resolve_once", lambda: None)()
plain = getattr(found, "resolved_dict", None)
values = plain() if plain else {f.name: getattr(found, f.name, None) for f in dataclasses.fields(found)}
simple = (bool, int, float, str, type(None))
print("\\x1e" + json.dumps({name: v for name, v in values.items() if isinstance(v, simple)}))
"""


def ask_parser(launch: Launch, command: ServingCommand, location: Location) -> Assumptions:
    """The launch's assumptions, sharpened by what the parser resolved; a field that was assumed by hand stays.

    Raises:
        ConfigError: the parser could not be asked, or rejected the command.
    """
    inherited = {**os.environ, **launch.environment}
    env = {
        **inherited,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(location.base), inherited.get("PYTHONPATH", "")))),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    interpreter = command.interpreter or sys.executable
    try:
        done = subprocess.run(
            [interpreter, "-c", _ASK, json.dumps(list(command.arguments))],
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
            env=env,
            cwd="/",
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"--resolve: no answer within {_LIMIT_S} s") from error
    except OSError as error:
        raise ConfigError(f"--resolve: {interpreter}: {error.strerror}") from error
    values = _answer(done.stdout)
    if done.returncode != 0 or values is None:
        last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ConfigError(
            f"--resolve: the serving environment's parser failed: {''.join(last) or 'no output'}",
            hint="it needs the checkout's own environment; without --resolve the map is made from source alone",
        )
    fields = {name: _text(value) for name, value in values.items() if value is not None}
    return replace(launch.assumptions, asked=fields)


def _answer(output: bytes) -> Mapping[str, Any] | None:
    _, mark, text = output.rpartition(b"\x1e")
    if not mark:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
