"""The model's own config.json: found on this host or refused, for nothing is downloaded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.request_sets import Model, adapters
from sgl_graph.analyzer.serving_command import ServingCommand

MODEL_FLAGS = ("--model-path", "--model")
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


def load_model(
    command: ServingCommand, env: Mapping[str, str], configured: Callable[[str], Any] = lambda name: None
) -> Model:
    """What requests must know of the model that the command serves.

    Args:
        command: The serving command.
        env: The server's environment; it says where downloaded models lie.
        configured: What the path map knows of a setting, where a configuration file names it instead of the command.

    Raises:
        ConfigError: The model or an adapter is not on this host, or its config.json does not say its vocabulary.
    """
    path = command.value(*MODEL_FLAGS) or str(configured("model_path") or "")
    if not path:
        raise ConfigError("the serving command names no model", hint="add --model-path DIR")
    folder = local_model(path, env)
    if folder is None:
        raise ConfigError(
            f"model {path} is not on this host", hint="this tool downloads nothing: fetch it first, or give its folder"
        )
    try:
        config = json.loads((folder / "config.json").read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / 'config.json'}: {error}") from error
    vocabulary = _find(config, "vocab_size")
    if vocabulary is None or vocabulary < 4:
        raise ConfigError(f"{folder / 'config.json'} states no vocab_size: requests by token ids need it")
    limit = command.value("--context-length")
    context = int(limit) if limit and limit.isdigit() else _find(config, "max_position_embeddings")
    named = command.values("--lora-paths") or configured("lora_paths")
    loaded = adapters(named if isinstance(named, (list, tuple, Mapping)) else ())
    return Model(vocab_size=vocabulary, context_length=context, adapters=loaded)


def local_model(path: str, env: Mapping[str, str]) -> Path | None:
    """The folder of a model: as given, or in the local cache of downloaded ones."""
    folder = Path(path).expanduser()
    if (folder / "config.json").is_file():
        return folder.resolve()
    if folder.exists() or path.count("/") != 1 or path.startswith((".", "/", "~")):
        return None
    home = env.get("HF_HOME") or os.path.join(
        env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
    )
    hub = Path(env.get("HF_HUB_CACHE") or os.path.join(home, "hub"))
    snapshots = hub / f"models--{path.replace('/', '--')}" / "snapshots"
    found = sorted(snapshots.glob("*/config.json"))
    return found[-1].parent if found else None


def _find(config: Any, name: str) -> int | None:
    if not isinstance(config, dict):
        return None
    for holder in (config, *(config.get(key) for key in _NESTED)):
        value = holder.get(name) if isinstance(holder, dict) else None
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
