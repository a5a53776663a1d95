"""Two commands that differ by one flag: the difference that the source implies, all of it, and its cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sgl_graph.analyzer.mapdiff import difference
from sgl_graph.analyzer.records.pathmap import CheckoutIdentity, DeviceFacts, PathMap
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.device import parse_device
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.resolve import resolve
from sgl_graph.analyzer.static.paths.settings import Settings

from fixtures.sglang_models import DEEPSEEK, LLAMA, MODELS, QWEN3_MOE, QWEN_VISION

#: Settings that decide which paths are captured, by what, and in which sizes.
DECIDING = (
    "attention_backend", "prefill_attention_backend", "decode_attention_backend", "sampling_backend",
    "moe_runner_backend", "moe_a2a_backend", "ep_size", "lora_backend", "enable_lora", "page_size",
    "chunked_prefill_size", "max_running_requests", "disable_overlap_schedule", "disable_radix_cache",
    "speculative_eagle_topk", "speculative_num_draft_tokens", "speculative_num_steps", "enable_two_batch_overlap",
    "enable_torch_compile", "disable_cuda_graph", "disable_cuda_graph_padding", "cuda_graph_config.decode.backend",
    "cuda_graph_config.prefill.backend", "cuda_graph_config.decode.max_bs", "cuda_graph_config.prefill.max_bs",
)  # fmt: skip
BOTH = ("0.5.23", "0.5.17")
NEW, OLD = ("0.5.23",), ("0.5.17",)
DECODE, PREFILL = "cuda_graph_config.decode", "cuda_graph_config.prefill"
NO_DECODE = {f"{DECODE}.backend": ("full", "disabled"), "sizes.decode": ((36, 1, 256), ())}
NO_PREFILL = {f"{PREFILL}.backend": ("breakable", "disabled"), "sizes.prefill": ((58, 4, 8192), ())}

Pair = tuple[tuple[str, ...], str, str, str, dict[str, tuple[Any, Any]]]
#: Releases, model, command, the one flag, and every difference among the deciding settings.
PAIRS: list[Pair] = [
    (BOTH, LLAMA, "", "--disable-cuda-graph", {**NO_DECODE, **NO_PREFILL, "disable_cuda_graph": (False, True)}),
    (BOTH, LLAMA, "", "--disable-prefill-cuda-graph", NO_PREFILL),
    (BOTH, LLAMA, "", "--disable-decode-cuda-graph", NO_DECODE),
    (BOTH, LLAMA, "", "--cuda-graph-backend-decode breakable", {f"{DECODE}.backend": ("full", "breakable")}),
    (BOTH, LLAMA, "", "--cuda-graph-backend-prefill full", {f"{PREFILL}.backend": ("breakable", "full")}),
    (BOTH, LLAMA, "", "--cuda-graph-backend-prefill disabled", NO_PREFILL),
    (OLD, LLAMA, "", "--cuda-graph-backend-prefill tc_piecewise", {f"{PREFILL}.backend": ("breakable", "tc_piecewise")}),
    (
        BOTH, LLAMA, "", "--cuda-graph-max-bs-decode 64",
        {f"{DECODE}.max_bs": (256, 64), "sizes.decode": ((36, 1, 256), (12, 1, 64))},
    ),
    (
        BOTH, LLAMA, "", "--cuda-graph-bs-decode 1 2 4",
        {f"{DECODE}.max_bs": (256, 4), "sizes.decode": ((36, 1, 256), (3, 1, 4))},
    ),
    (
        BOTH, LLAMA, "", "--cuda-graph-max-bs-prefill 512",
        {f"{PREFILL}.max_bs": (8192, 512), "sizes.prefill": ((58, 4, 8192), (30, 4, 512))},
    ),
    (
        BOTH, LLAMA, "", "--chunked-prefill-size 2048",
        {
            "chunked_prefill_size": (8192, 2048), f"{PREFILL}.max_bs": (8192, 2048),
            "sizes.prefill": ((58, 4, 8192), (42, 4, 2048)),
        },
    ),
    (
        BOTH, LLAMA, "", "--tp-size 4",
        {f"{DECODE}.max_bs": (256, 512), "sizes.decode": ((36, 1, 256), (52, 1, 512))},
    ),
    # Only the newer release keeps pipelines out of segmented prefill capture.
    (NEW, LLAMA, "", "--pp-size 2", {**NO_PREFILL, "disable_overlap_schedule": (False, True)}),
    (OLD, LLAMA, "", "--pp-size 2", {"disable_overlap_schedule": (False, True)}),
    (BOTH, LLAMA, "", "--disaggregation-mode prefill", NO_DECODE),
    (BOTH, LLAMA, "", "--disaggregation-mode decode", {**NO_PREFILL, "disable_radix_cache": (False, True)}),
    (BOTH, LLAMA, "", "--attention-backend triton", {"attention_backend": (("?", "fa3"), "triton")}),
    (BOTH, LLAMA, "", "--enable-lora --lora-paths a=/x", {"enable_lora": (None, True)}),
    (BOTH, LLAMA, "--enable-lora --lora-paths a=/x", "--lora-backend triton", {"lora_backend": ("csgmv", "triton")}),
    (
        BOTH, LLAMA, "", "--speculative-algorithm NGRAM",
        {
            "max_running_requests": (None, 48), "sizes.decode": ((36, 1, 256), (51, 1, 256)),
            "speculative_eagle_topk": (None, 10), "speculative_num_draft_tokens": (None, 12),
            "speculative_num_steps": (None, 1),
        },
    ),
    # All-to-all spans every rank, and its prefill sizes are multiples of eight up to a bound of its own.
    (
        BOTH, QWEN3_MOE, "--tp 4", "--moe-a2a-backend deepep",
        {
            "moe_a2a_backend": ("none", "deepep"), "ep_size": (1, 4), f"{PREFILL}.max_bs": (8192, 2048),
            "sizes.prefill": ((58, 4, 8192), (38, 8, 2048)),
        },
    ),
    (
        BOTH, QWEN3_MOE, "--tp 4 --moe-a2a-backend deepep", "--enable-two-batch-overlap",
        {
            f"{PREFILL}.backend": ("breakable", "disabled"), "sizes.prefill": ((38, 8, 2048), ()),
            "enable_two_batch_overlap": (False, True), f"{PREFILL}.max_bs": (2048, 8192),
        },
    ),
    (
        NEW, DEEPSEEK, "--tp 8 --dp 8", "--enable-dp-attention",
        {
            "chunked_prefill_size": (8192, 1024), f"{PREFILL}.max_bs": (8192, 1024),
            "sizes.prefill": ((58, 4, 8192), (38, 4, 1024)),
        },
    ),
    # The older release captures no prefill of models with latent attention.
    (OLD, DEEPSEEK, "--tp 8 --dp 8", "--enable-dp-attention", {"chunked_prefill_size": (8192, 1024)}),
    (BOTH, LLAMA, "", "--enable-torch-compile", {"enable_torch_compile": (False, True)}),
    (
        BOTH, LLAMA, "", "--disable-cuda-graph-padding",
        {"disable_cuda_graph_padding": (False, True), "sizes.decode": ((36, 1, 256), (256, 1, 256))},
    ),
    (BOTH, LLAMA, "", "--enable-deterministic-inference", {"sampling_backend": (("?", "flashinfer"), ("?", "pytorch"))}),
    (BOTH, LLAMA, "", "--disable-radix-cache", {"disable_radix_cache": (False, True)}),
    # The newer release bounds the captured sizes by the requests that may run.
    (
        NEW, LLAMA, "", "--max-running-requests 20",
        {
            "max_running_requests": (None, 20), f"{DECODE}.max_bs": (256, 20),
            "sizes.decode": ((36, 1, 256), (7, 1, 20)),
        },
    ),
    (OLD, LLAMA, "", "--max-running-requests 20", {"max_running_requests": (None, 20)}),
    (BOTH, QWEN_VISION, "", "--disable-prefill-cuda-graph", {}),
]  # fmt: skip
#: Releases, model, command, the one flag, and the line that rejects it with its reason.
REJECTED = [
    (NEW, LLAMA, "", "--cuda-graph-backend-prefill tc_piecewise", "cuda_graph_config.py", "tc_piecewise was removed"),
    (NEW, QWEN3_MOE, "--tp 4", "--enable-two-batch-overlap", "validation_hook.py", "two batch overlap"),
    (OLD, QWEN3_MOE, "--tp 4", "--enable-two-batch-overlap", "server_args.py", "two batch overlap"),
    (BOTH, DEEPSEEK, "--tp 8", "--attention-backend trtllm_mla", "overrides.py", "only supported on Blackwell"),
]

Run = Callable[[str, str, str], ResolvedConfiguration]


@pytest.fixture
def run(sglang_project: Callable[[str], Project]) -> Run:
    """Resolve a command of a model against a release, on an H200."""

    def resolved(version: str, model: str, command: str) -> ResolvedConfiguration:
        arguments = f"--model-path served/model {command}".split()
        return resolve(sglang_project(version), Launch(arguments, {}, parse_device("h200"), MODELS[model]))

    return resolved


def deciding(settings: Settings) -> dict[str, Any]:
    """Deciding settings, an automatic choice as ("?", prediction), and sizes as (number, least, most)."""
    found: dict[str, Any] = {}
    for entry in settings.entries:
        if entry.name in DECIDING:
            found[entry.name] = ("?", entry.predicted) if entry.source == "unresolved" else entry.value
    for sizes in settings.buckets:
        known = sizes.sizes
        found[f"sizes.{sizes.phase}"] = (len(known), known[0], known[-1]) if known else known
    return found


def as_map(settings: Settings) -> PathMap:
    """A map of nothing but a configuration, as `diff` compares it."""
    checkout = CheckoutIdentity(root=".", layout="folder", digest_="0")
    device = DeviceFacts(name="NVIDIA H200", source="--device", kind="cuda")
    return PathMap(checkout=checkout, command=(), device=device, starts=settings.starts, config=settings.entries)


def rows(table: list[Any]) -> list[Any]:
    return [pytest.param(v, *row, id=f"{v} {row[1]} {row[2]}".strip()) for versions, *row in table for v in versions]


@pytest.mark.parametrize(("version", "model", "base", "flag", "expected"), rows(PAIRS))
def test_one_flag_makes_the_difference_that_the_source_implies(
    run: Run, version: str, model: str, base: str, flag: str, expected: dict[str, tuple[Any, Any]]
) -> None:
    before, after = Settings(run(version, model, base)), Settings(run(version, model, f"{base} {flag}"))
    assert before.starts.value == after.starts.value == "yes"
    old, new = deciding(before), deciding(after)
    changed = {n: (old.get(n), new.get(n)) for n in old.keys() | new.keys() if old.get(n) != new.get(n)}
    assert changed == expected

    # The cause: every setting that changed rests on the flag, or no longer rests on what the flag leaves out.
    dest = flag.split()[0].removeprefix("--").replace("-", "_")
    lines = {line.split(": ")[1]: line for line in difference(as_map(before), as_map(after)).lines()}
    for name in changed:
        if not name.startswith("sizes."):
            assert f"flag:{dest}" in lines[name] or "no longer on flag:" in lines[name], lines[name]


@pytest.mark.parametrize(("version", "model", "base", "flag", "file", "why"), rows(REJECTED))
def test_one_flag_that_the_release_rejects_names_the_line(
    run: Run, version: str, model: str, base: str, flag: str, file: str, why: str
) -> None:
    before, after = Settings(run(version, model, base)), Settings(run(version, model, f"{base} {flag}"))
    assert (before.starts.value, after.starts.value) == ("yes", "no")
    assert why in (after.starts.why or "") and (after.starts.file or "").endswith(file) and after.starts.line
    assert difference(as_map(before), as_map(after)).lines()[0].startswith("~ starts: yes -> no: ")


def test_at_least_twenty_pairs_are_listed() -> None:
    assert len({(model, base, flag) for _, model, base, flag, _ in PAIRS}) >= 20
