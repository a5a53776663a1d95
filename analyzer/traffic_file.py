"""A `--traffic` file: every record is checked whole before anything is planned, and the first fault is named by its place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.label_check import check_labels
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.records.strict_json import parse_json

#: Variants that requests are made by; a map may know others, whose requests are plain.
VARIANTS = ("lora", "nolora", "mixed", "image", "video", "audio")
_SIZES = ("concurrency", "input_len", "output_len")
_FIELDS = ("name", "labels", *_SIZES, "variant", "logprobs")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
#: Beyond any context and any batch: a slip of the hand.
_LARGEST = 1 << 24


def traffic_records(data: bytes, name: str, view: MapView | None = None) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The records of a `--traffic` file: a JSON list, or an object with `traffic`.

    Args:
        data: The file.
        name: What messages call it.
        view: The map of the run, which knows the labels and variants.

    Returns:
        The records, and a sentence for each label that the map does not expect as it is written.

    Raises:
        ConfigError: It is neither, or a record has a field, a name, a label, a variant or a number that cannot be meant.
    """
    try:
        body = parse_json(data)
    except ValueError as error:
        raise ConfigError(f"{name}: not JSON: {error}") from error
    records = body.get("traffic") if isinstance(body, dict) else body
    if not isinstance(records, list):
        raise ConfigError(f"{name}: expected a list of traffic records", hint="preflight's JSON holds a `traffic` list")
    variants = {*VARIANTS, *(v for path in (view.paths if view else ()) for v in path.variants if v)}
    doubts: list[str] = []
    names: dict[str, int] = {}
    for index, record in enumerate(records):
        where = f"{name}, record {index}"
        if not isinstance(record, dict):
            raise ConfigError(
                f"{where}: not an object, but {_shown(record)}", hint=f"its fields are {', '.join(_FIELDS)}"
            )
        _check_fields(record, where)
        _check_name(record.get("name"), index, names, where)
        for size in _SIZES:
            _check_size(record.get(size), f"{where}, {size}")
        _check_variant(record.get("variant"), sorted(variants), f"{where}, variant")
        if not isinstance(record.get("logprobs", True), bool):
            raise ConfigError(f"{where}, logprobs: true or false, not {_shown(record['logprobs'])}")
        doubts += check_labels(_labels(record, where), view, f"{where}, labels")
    return records, doubts


def _check_fields(record: Mapping[str, Any], where: str) -> None:
    for field in record:
        if field not in _FIELDS:
            nearest = get_close_matches(field, _FIELDS, n=1)
            meant = f"; is {nearest[0]} meant?" if nearest else ""
            raise ConfigError(f"{where}: unknown field {_shown(field)}{meant}", hint=f"fields are {', '.join(_FIELDS)}")


def _check_name(value: object, index: int, names: dict[str, int], where: str) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigError(
            f"{where}, name: {_shown(value)} is no name",
            hint="files are named by it: up to 60 letters, digits, dots, dashes and underscores, a letter or digit first",
        )
    if value in names:
        raise ConfigError(f"{where}, name: {value} is the name of record {names[value]}, too")
    names[value] = index


def _check_size(value: object, where: str) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST):
        raise ConfigError(f"{where}: a whole number from 1 to {_LARGEST}, not {_shown(value)}")


def _check_variant(value: object, known: Sequence[str], where: str) -> None:
    if value is not None and value not in known:
        nearest = get_close_matches(value, known, n=1) if isinstance(value, str) else []
        meant = f"; is {nearest[0]} meant?" if nearest else ""
        raise ConfigError(f"{where}: {_shown(value)} is unknown{meant}", hint=f"variants are {', '.join(known)}")


def _labels(record: Mapping[str, Any], where: str) -> list[str]:
    labels = record.get("labels")
    if labels is None:
        return []
    if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
        raise ConfigError(f"{where}, labels: a list of labels, not {_shown(labels)}", hint='as ["target:decode/lora"]')
    return labels


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
