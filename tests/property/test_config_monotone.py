"""Learning a fact never flips a yes or a no: it only settles what was unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.device import DeviceFacts
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.protocol import InstanceOf
from sgl_graph.analyzer.static.config.resolve import resolve

from fixtures.sglang_models import DEEPSEEK, LLAMA, MODELS, QWEN_VISION

FACTS: dict[str, Any] = {"capability": (9, 0), "memory": 143771, "name": "NVIDIA H200", "count": 8}
COMMON = ("", "--disable-cuda-graph", "--tp-size 8 --attention-backend triton", "--disable-radix-cache")
#: Examples are few where a resolution without a model takes seconds.
RELEASES = {
    "0.5.5": (COMMON, 25),
    "0.5.17": ((*COMMON, "--speculative-algorithm NGRAM", "--cuda-graph-backend-prefill full"), 10),
    "0.5.23": ((*COMMON, "--speculative-algorithm NGRAM", "--moe-a2a-backend deepep --tp 4"), 6),
}


@cache
def resolved(project: Project, command: str, model: str | None, known: frozenset[str] | None) -> ResolvedConfiguration:
    """A launch of which the facts of the device that are named are known; None: not even its kind."""
    facts = DeviceFacts("cuda", **{name: FACTS[name] for name in known}) if known is not None else None
    config = MODELS[model] if model is not None else None
    return resolve(project, Launch(f"--model-path m {command}".split(), {}, facts, config))


def compared(less: ResolvedConfiguration, full: ResolvedConfiguration) -> None:
    """Everything that less knowledge calls settled, or narrows to some values, holds with full knowledge."""
    for entry in full.entries:
        if "." in entry.name or entry.name.startswith("env:"):
            continue
        possible = less.view.values(less.result(entry.name))
        real = full.view.values(full.result(entry.name))
        if possible.complete and not any(isinstance(item, InstanceOf) for item in possible.constants):
            assert set(map(repr, real.constants)) <= set(map(repr, possible.constants)), entry.name
    for ours, all_ in zip(less.buckets, full.buckets, strict=True):
        assert ours.sizes is None or ours.sizes == all_.sizes, ours.phase
    assert less.starts.value or not full.starts.value


@pytest.mark.parametrize("version", RELEASES)
def test_fewer_facts_answer_the_same_or_nothing(sglang_project: Callable[[str], Project], version: str) -> None:
    commands, examples = RELEASES[version]
    checkout = sglang_project(version)

    @given(
        command=st.sampled_from(commands),
        model=st.sampled_from((LLAMA, DEEPSEEK, QWEN_VISION)),
        model_known=st.booleans(),
        known=st.none() | st.frozensets(st.sampled_from(sorted(FACTS))),
    )
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def holds(command: str, model: str, model_known: bool, known: frozenset[str] | None) -> None:
        full = resolved(checkout, command, model, frozenset(FACTS))
        compared(resolved(checkout, command, model if model_known else None, known), full)

    holds()
