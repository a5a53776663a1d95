"""Learning a fact never flips a yes or a no: it only settles what was unknown."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.device import DeviceFacts
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.resolve import resolve
from sgl_graph.analyzer.static.project import Project
from sgl_graph.runtime.checkout import CheckoutSources
from sgl_graph.runtime.fact_store import FactStore, default_folder

FACTS: dict[str, Any] = {"capability": (9, 0), "memory": 143771, "name": "NVIDIA H200", "count": 8}
MODEL = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}  # fmt: skip
QUESTIONS = (
    "disable_cuda_graph",
    "attention_backend",
    "chunked_prefill_size",
    "page_size",
    "device",
    "cuda_graph_max_bs",
)
COMMANDS = ("", "--disable-cuda-graph", "--tp-size 8 --attention-backend triton", "--disable-radix-cache")


@pytest.fixture(scope="module")
def project(sglang_source: Callable[[str], Path]) -> Project:
    return Project(CheckoutSources(sglang_source("0.5.5"), FactStore(default_folder()), jobs=1))


@cache
def resolved(project: Project, command: str, known: frozenset[str], device: bool, model: bool) -> ResolvedConfiguration:
    facts = DeviceFacts("cuda", **{name: FACTS[name] for name in known}) if device else None
    return resolve(project, Launch(f"--model-path m {command}".split(), {}, facts, MODEL if model else None))


@given(
    command=st.sampled_from(COMMANDS),
    known=st.frozensets(st.sampled_from(sorted(FACTS))),
    device=st.booleans(),
    model=st.booleans(),
)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_fewer_facts_answer_the_same_or_nothing(
    project: Project, command: str, known: frozenset[str], device: bool, model: bool
) -> None:
    full = resolved(project, command, frozenset(FACTS), True, True)
    less = resolved(project, command, known if device else frozenset(), device, model)
    for name in QUESTIONS:
        certain = less.view.values(less.result(name))
        if certain.known:
            assert full.view.values(full.result(name)).constants == certain.constants, name
    for ours, all_ in zip(less.buckets, full.buckets, strict=True):
        assert ours.sizes is None or ours.sizes == all_.sizes, ours.phase
    assert less.starts.value or not full.starts.value
