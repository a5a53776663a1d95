"""What the disk says about a launch: model configurations, the model hub's cache, configuration files. Nothing is downloaded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from sgl_graph.analyzer.errors import ConfigError

_LARGEST_CONFIG = 8 << 20


def read_model_config(path: Path) -> Mapping[str, Any]:
    """The contents of `--model-config FILE` (or of a folder's `config.json`).

    Raises:
        ConfigError: the file cannot be read or holds no JSON object.
    """
    file = path / "config.json" if path.is_dir() else path
    found = _read_json(file)
    if found is None:
        raise ConfigError(f"{file}: no readable JSON object", hint="--model-config takes a model's config.json")
    return found


def find_model_config(model: str, environment: Mapping[str, str]) -> Mapping[str, Any] | None:
    """The `config.json` of a model path: a local folder, or the hub's cache on this machine; None when neither has it."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _read_json(folder / "config.json")
    if model.count("/") != 1 or model.startswith(("/", ".", "~")):
        return None
    for cache in _hub_caches(environment):
        repository = cache / f"models--{model.replace('/', '--')}"
        for snapshot in _snapshots(repository):
            found = _read_json(snapshot / "config.json")
            if found is not None:
                return found
    return None


def path_kind(path: str) -> str | None:
    """`file`, `folder`, or None when the path does not exist here."""
    try:
        place = Path(path).expanduser()
        return "folder" if place.is_dir() else "file" if place.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def read_yaml(path: str) -> Any:
    """The contents of a YAML file, None when it cannot be read; an empty file is an empty mapping."""
    try:
        with open(path, encoding="utf-8") as file:
            found = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    return {} if found is None else found


def _hub_caches(environment: Mapping[str, str]) -> list[Path]:
    def value(name: str) -> str | None:
        return environment.get(name) or os.environ.get(name)

    explicit = value("HF_HUB_CACHE") or value("HUGGINGFACE_HUB_CACHE")
    if explicit:
        return [Path(explicit)]
    home = value("HF_HOME")
    if home:
        return [Path(home) / "hub"]
    base = value("XDG_CACHE_HOME")
    return [(Path(base) if base else Path.home() / ".cache") / "huggingface" / "hub"]


def _snapshots(repository: Path) -> list[Path]:
    """Snapshots of a cached repository, the one of its main branch first."""
    try:
        found = sorted((repository / "snapshots").iterdir())
    except OSError:
        return []
    try:
        main = (repository / "refs" / "main").read_text(encoding="utf-8").strip()
    except OSError:
        return found
    return sorted(found, key=lambda folder: folder.name != main)


def _read_json(path: Path) -> Mapping[str, Any] | None:
    try:
        if path.stat().st_size > _LARGEST_CONFIG:
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
