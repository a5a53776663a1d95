"""The evaluator: all of its parts, and every modelled function registered."""

from __future__ import annotations

from sgl_graph.analyzer.static.config import (
    arguments,
    builtin_functions,
    builtin_objects,
    declarations,
    hub,
    library,
    records,
)
from sgl_graph.analyzer.static.config.calls import Calls


class Evaluator(Calls):
    """Three-valued, flow-sensitive evaluation of the checkout's resolution code; see `resolve` for its use."""


__all__ = [
    "Evaluator",
    "arguments",
    "builtin_functions",
    "builtin_objects",
    "declarations",
    "hub",
    "library",
    "records",
]
