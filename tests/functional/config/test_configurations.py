"""A dozen kinds of configurations over two releases: what each captures, in which sizes, read from the source by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.device import parse_device
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.protocol import Source
from sgl_graph.analyzer.static.config.resolve import resolve

from fixtures.sglang_models import DEEPSEEK, EAGLE3, LLAMA, MODELS, QWEN3_MOE, QWEN_VISION

EAGLE = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
#: Decode sizes of one request a step on 90 to 160 GB, on two ranks or fewer and on more; those of speculation.
PLAIN, WIDE = (36, 1, 256), (52, 1, 512)
SPECULATIVE, SPECULATIVE_WIDE = (51, 1, 256), (67, 1, 512)
#: Up to the 48 requests that speculation allows by default.
ALLOWED = (23, 1, 48)
PREFILL = (58, 4, 8192)
FULL, BREAKABLE, OFF = "full", "breakable", "disabled"
SPLIT = (BREAKABLE, PREFILL)
NONE = (OFF, ())

Phase = tuple[str, Any]
#: What it is, model, device, command, decode (backend, sizes), prefill, decode sizes after the clamp, attention backend;
#: a pair of prefill phases where the older release differs.
ROWS: list[tuple[Any, ...]] = [
    ("triton", LLAMA, "h200", "--attention-backend triton", (FULL, PLAIN), SPLIT, None, "triton"),
    ("flashinfer", LLAMA, "h200", "--attention-backend flashinfer", (FULL, PLAIN), SPLIT, None, "flashinfer"),
    ("fa3", LLAMA, "h200", "--attention-backend fa3", (FULL, PLAIN), SPLIT, None, "fa3"),
    ("experts in parallel", QWEN3_MOE, "h200", "--tp 4 --ep-size 4", (FULL, WIDE), SPLIT, None, "fa3"),
    (
        "adapters, csgmv", LLAMA, "h200", "--enable-lora --lora-paths a=/a b=/b --max-lora-rank 16",
        (FULL, PLAIN), SPLIT, None, "fa3",
    ),
    (
        "adapters, triton", LLAMA, "h200",
        "--enable-lora --lora-paths a=/a --max-lora-rank 16 --lora-backend triton", (FULL, PLAIN), SPLIT, None, "fa3",
    ),
    (
        "adapters on experts", QWEN3_MOE, "h200",
        "--enable-lora --lora-paths a=/a --max-lora-rank 16 --lora-target-modules all",
        (FULL, PLAIN), SPLIT, None, "fa3",
    ),
    (
        "EAGLE3 on two devices", LLAMA, "h200",
        f"--tp 2 --speculative-algorithm EAGLE3 --speculative-draft-model-path draft {EAGLE}",
        (FULL, SPECULATIVE), SPLIT, ALLOWED, "fa3",
    ),
    (
        "NGRAM", LLAMA, "h200", "--speculative-algorithm NGRAM --speculative-num-draft-tokens 12",
        (FULL, SPECULATIVE), SPLIT, ALLOWED, "fa3",
    ),
    # Latent attention has eager breaks in the newer release alone.
    (
        "MTP", DEEPSEEK, "h200", f"--tp 8 --speculative-algorithm EAGLE {EAGLE}",
        (FULL, SPECULATIVE_WIDE), (SPLIT, NONE), ALLOWED, "fa3",
    ),
    (
        "whole prefill", LLAMA, "h200", "--cuda-graph-backend-prefill full",
        (FULL, PLAIN), (FULL, PREFILL), None, "fa3",
    ),
    ("segmented prefill", LLAMA, "h200", "--cuda-graph-backend-prefill breakable", (FULL, PLAIN), SPLIT, None, "fa3"),
    (
        "two-batch overlap", QWEN3_MOE, "h200", "--tp 4 --ep-size 4 --moe-a2a-backend deepep --enable-two-batch-overlap",
        (FULL, WIDE), NONE, None, "fa3",
    ),
    (
        "data-parallel attention", DEEPSEEK, "h200", "--tp 8 --dp 8 --enable-dp-attention",
        (FULL, WIDE), ((BREAKABLE, (38, 4, 1024)), NONE), None, "fa3",
    ),
    ("prefill server", LLAMA, "h200", "--disaggregation-mode prefill", NONE, SPLIT, None, "fa3"),
    ("decode server", LLAMA, "h200", "--disaggregation-mode decode", (FULL, PLAIN), NONE, None, "fa3"),
    ("multimodal", QWEN_VISION, "h200", "", (FULL, PLAIN), NONE, None, "fa3"),
    ("AMD", LLAMA, "mi300x", "", (FULL, WIDE), NONE, None, "aiter"),
    # Its memory is not known by its kind, and the sizes follow from it.
    ("NPU", LLAMA, "npu", "", (FULL, None), NONE, None, "ascend"),
    ("no graphs", LLAMA, "h200", "--disable-cuda-graph", NONE, NONE, None, "fa3"),
    ("four requests", LLAMA, "h200", "--cuda-graph-bs-decode 1 2 4", (FULL, (3, 1, 4)), SPLIT, None, "fa3"),
]  # fmt: skip

Run = Callable[[str, str, str, str], ResolvedConfiguration]


@pytest.fixture
def run(sglang_project: Callable[[str], Project]) -> Run:
    """Resolve a command of a model on a device against a release; the draft model's configuration is on disk."""

    def found(path: str) -> Mapping[str, Any] | None:
        return MODELS[EAGLE3] if path == "draft" else None

    def resolved(version: str, model: str, device: str, command: str) -> ResolvedConfiguration:
        arguments = f"--model-path served/model {command}".split()
        launch = Launch(arguments, {}, parse_device(device), MODELS[model], found)
        return resolve(sglang_project(version), launch)

    return resolved


def summary(sizes: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return (len(sizes), sizes[0], sizes[-1]) if sizes else sizes


@pytest.mark.parametrize("version", ["0.5.23", "0.5.17"])
@pytest.mark.parametrize(
    ("model", "device", "command", "decode", "prefill", "clamped", "attention"),
    [pytest.param(*row[1:], id=row[0]) for row in ROWS],
)
def test_phases_sizes_and_attention(
    run: Run,
    version: str,
    model: str,
    device: str,
    command: str,
    decode: Phase,
    prefill: Any,
    clamped: Any,
    attention: str,
) -> None:
    found = run(version, model, device, command)
    assert found.starts.value, found.starts
    if isinstance(prefill[0], tuple):
        prefill = prefill[0 if version == "0.5.23" else 1]
    entries = {entry.name: entry for entry in found.entries}
    backends = [entries[f"cuda_graph_config.{phase}.backend"].value for phase in ("decode", "prefill")]
    buckets = {item.phase: item for item in found.buckets}
    sizes = [summary(buckets[phase].sizes) for phase in ("decode", "prefill")]
    assert list(zip(backends, sizes, strict=True)) == [decode, prefill]
    assert summary(buckets["decode"].clamped) == clamped
    chosen = entries["attention_backend"]
    given = "--attention-backend" in command
    assert (chosen.value if given else chosen.predicted) == attention
    # What nobody but the server confirms is not called settled.
    assert (chosen.source is Source.FLAG) == given and chosen.automatic == (not given)
