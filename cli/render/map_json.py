"""A path map as JSON: the contract's schema, indented, keys in the order of the records."""

from __future__ import annotations

import json

from sgl_graph.analyzer.records.pathmap import PathMap


def render(made: PathMap) -> str:
    """The map as JSON text."""
    return json.dumps(made.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
