"""Ask the serving environment's own parser what it makes of a command: a subprocess without GPU and network, with a time limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import HostError

# Runs inside the serving environment: only the standard library and the serving package itself.
_PROGRAM = """
import dataclasses, json, sys
from sglang.srt.server_args import prepare_server_args
record = prepare_server_args(json.loads(sys.argv[1]))
resolve = getattr(record, "resolve_once", None)
if resolve is not None:
    resolve()
plain = getattr(record, "resolved_dict", None)
if plain is not None:
    values = plain()
elif dataclasses.is_dataclass(record):
    values = {f.name: getattr(record, f.name, None) for f in dataclasses.fields(record)}
else:
    values = dict(vars(record))
def simple(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [simple(item) for item in value]
    if isinstance(value, dict):
        return {str(key): simple(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        return {f.name: simple(getattr(value, f.name, None)) for f in dataclasses.fields(value)}
    return None
print("\\n@resolved@" + json.dumps({name: simple(value) for name, value in values.items()}))
"""
_MARK = "@resolved@"


def resolve_in_environment(
    arguments: Sequence[str],
    *,
    interpreter: str | None,
    environment: Mapping[str, str],
    checkout: Path | None = None,
    timeout: float = 120.0,
) -> dict[str, Any]:
    """The arguments as the serving environment resolves them.

    Args:
        arguments: what the server's parser receives.
        interpreter: Python of the serving environment; this one's when the command names none.
        environment: variables of the launch.
        checkout: folder that holds `sglang/`, put first on the path; None for the installed package.
        timeout: seconds until the subprocess is stopped.

    Raises:
        HostError: the parser fails, does not answer in time, or answers something else.
    """
    settings = {**os.environ, **environment}
    # No device and no download: what needs either is answered as on a host without them.
    settings.update(CUDA_VISIBLE_DEVICES="", HIP_VISIBLE_DEVICES="", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    if checkout is not None:
        settings["PYTHONPATH"] = os.pathsep.join(filter(None, [str(checkout), settings.get("PYTHONPATH")]))
    command = [interpreter or sys.executable, "-c", _PROGRAM, json.dumps(list(arguments))]
    try:
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        raise HostError(f"the serving environment's parser gave no answer in {timeout:.0f} s") from None
    except OSError as error:
        raise HostError(
            f"{command[0]}: cannot be run: {error.strerror}", hint="name the serving Python in the command"
        ) from None
    _, mark, text = done.stdout.rpartition(_MARK)
    if done.returncode != 0 or not mark:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "no output")
        raise HostError(
            f"the serving environment's parser fails: {last.strip()[:300]}", hint="preflight without --resolve"
        )
    try:
        found = json.loads(text.splitlines()[0])
    except (ValueError, IndexError):
        raise HostError("the serving environment's parser answers no JSON") from None
    if not isinstance(found, dict):
        raise HostError("the serving environment's parser answers no JSON object")
    return found
