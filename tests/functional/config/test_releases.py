"""Real releases resolved: values read from the source by hand, one class or split groups, several devices and models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.device import parse_device
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.protocol import InstanceOf, Source
from sgl_graph.analyzer.static.config.rehearsal import Stage, failure_of
from sgl_graph.analyzer.static.config.resolve import resolve

from fixtures.sglang_models import LLAMA, MODELS, QWEN3_MOE, QWEN_VISION

DECODE_256 = (1, 2, 4, 8, 12, *range(16, 257, 8))
PREFILL_8192 = (
    *range(4, 33, 4), *range(48, 257, 16), *range(288, 513, 32), *range(576, 1025, 64), *range(1280, 4097, 256),
    *range(4608, 8193, 512),
)  # fmt: skip

Run = Callable[..., ResolvedConfiguration]


@pytest.fixture
def run(sglang_project: Callable[[str], Project]) -> Run:
    """Resolve a command against a release."""

    def resolved(
        version: str, command: str, device: str | None = "h200", model: str | None = LLAMA, **env: str
    ) -> ResolvedConfiguration:
        facts = parse_device(device) if device else None
        return resolve(
            sglang_project(version), Launch(f"--model-path m {command}".split(), env, facts, model and MODELS[model])
        )

    return resolved


def values(configuration: ResolvedConfiguration) -> dict[str, Any]:
    return {e.name: e.value if e.source is not Source.UNRESOLVED else ("?", e.predicted) for e in configuration.entries}


def sizes(configuration: ResolvedConfiguration) -> dict[str, tuple[int, ...] | None]:
    return {bucket.phase: bucket.sizes for bucket in configuration.buckets}


@pytest.mark.parametrize("version", ["0.5.23", "0.5.20", "0.5.17", "0.5.12.post1"])
def test_default_buckets_are_those_of_the_generators(run: Run, version: str) -> None:
    found = run(version, "")
    assert found.starts.value
    assert sizes(found) == {"decode": DECODE_256, "prefill": PREFILL_8192}
    assert all(bucket.source is not None and "generate" in bucket.source.qualname for bucket in found.buckets)
    assert values(found)["attention_backend"] == ("?", "fa3")


@pytest.mark.parametrize("version", ["0.5.5", "0.4.6.post5"])
def test_releases_of_one_class_with_their_own_defaults(run: Run, version: str) -> None:
    found = run(version, "--tp-size 2 --attention-backend triton")
    assert found.starts.value
    assert values(found)["tp_size"] == 2 and values(found)["attention_backend"] == "triton"
    assert values(found)["device"] == "cuda" and values(found)["chunked_prefill_size"] == 8192
    assert sizes(found)["prefill"] == ()


def test_sizes_that_the_oldest_release_computes_in_its_runner(run: Run) -> None:
    found = run("0.4.6.post5", "")
    assert sizes(found)["decode"] == (1, 2, 4, 8, *range(16, 257, 8))
    decode = found.buckets[0]
    assert decode.source is not None and decode.source.qualname.endswith(":get_batch_sizes_to_capture")


@pytest.mark.parametrize(
    ("version", "command", "first", "count"),
    [
        ("0.4.9.post6", "", (1, 2, 4, 8), 35),
        # Attention of two ranks: only sizes that they share evenly.
        ("0.4.9.post6", "--tp-size 4 --enable-dp-attention --dp-size 2", (2, 4, 8, 16), 34),
        ("0.5.1", "--tp-size 4 --moe-dense-tp-size 1", (4, 8, 16, 24), 33),
        ("0.5.1", "--tp-size 4 --enable-dp-attention --dp-size 4", (1, 2, 4, 8), 35),
    ],
)
def test_sizes_that_old_releases_compute_by_their_parallelism(
    run: Run, version: str, command: str, first: tuple[int, ...], count: int
) -> None:
    decode = run(version, command).buckets[0]
    assert decode.sizes is not None and (decode.sizes[:4], len(decode.sizes)) == (first, count)


@pytest.mark.parametrize(
    ("device", "tp", "largest", "chunk", "backend"),
    [("h100", 8, 512, 8192, "fa3"), ("a100", 1, 256, 8192, "flashinfer"), ("b200", 1, 512, 16384, "trtllm_mha"),
     ("l40s", 1, 32, 4096, "flashinfer"), ("l40s", 4, 160, 4096, "flashinfer"), ("mi300x", 1, 512, 16384, "aiter")],
)  # fmt: skip
def test_defaults_by_device(run: Run, device: str, tp: int, largest: int, chunk: int, backend: str) -> None:
    found = run("0.5.23", f"--tp-size {tp}", device)
    decode = sizes(found)["decode"]
    assert decode is not None and decode[-1] == largest
    assert values(found)["chunked_prefill_size"] == chunk
    assert values(found)["attention_backend"] == ("?", backend)
    prefill = "disabled" if device == "mi300x" else "breakable"  # prefill capture is on by default on CUDA alone
    assert values(found)["cuda_graph_config.prefill.backend"] == prefill


@pytest.mark.parametrize(
    ("command", "decode", "prefill"),
    [
        ("--disable-cuda-graph", "disabled", "disabled"),
        ("--disable-cuda-graph --cuda-graph-backend-decode full", "full", "disabled"),
        ("--cuda-graph-backend-decode breakable", "breakable", "breakable"),
        ("--disable-prefill-cuda-graph", "full", "disabled"),
        ("--disable-decode-cuda-graph", "disabled", "breakable"),
        ("--cuda-graph-backend-prefill full", "full", "full"),
        (
            '--cuda-graph-backend-decode breakable --cuda-graph-config {"decode":{"backend":"full"}}',
            "full",
            "breakable",
        ),
        ("--disaggregation-mode prefill", "disabled", "breakable"),
        ("--disaggregation-mode decode", "full", "disabled"),
        ("--pp-size 2", "full", "disabled"),
    ],
)
def test_precedence_of_capture_settings(run: Run, command: str, decode: str, prefill: str) -> None:
    found = values(run("0.5.23", command))
    assert (found["cuda_graph_config.decode.backend"], found["cuda_graph_config.prefill.backend"]) == (decode, prefill)


def test_listed_sizes_are_taken_and_their_cause_is_named(run: Run) -> None:
    found = run("0.5.23", "--cuda-graph-bs-decode 1 2 4")
    assert sizes(found)["decode"] == (1, 2, 4)
    decode = next(bucket for bucket in found.buckets if bucket.phase == "decode")
    assert decode.source is None and "flag:cuda_graph_bs_decode" in decode.depends


def test_a_retired_backend_is_rejected_with_its_line(run: Run) -> None:
    found = run("0.5.23", "--cuda-graph-backend-prefill tc_piecewise")
    assert not found.starts.value and "tc_piecewise was removed" in found.starts.why
    assert found.starts.file.endswith("model_executor/cuda_graph_config.py")


def test_speculation_changes_buckets_and_backend(run: Run) -> None:
    found = run(
        "0.5.23",
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path d --speculative-num-steps 3 "
        "--speculative-eagle-topk 4 --speculative-num-draft-tokens 16",
    )
    assert found.starts.value
    assert sizes(found)["decode"] == (
        *range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8)
    )  # fmt: skip
    assert values(found)["max_running_requests"] == 48
    assert values(found)["attention_backend"] == ("?", "flashinfer")
    assert any("configuration of d" in item.what for item in found.unresolved)


def test_sizes_are_clamped_by_the_pool_that_the_arguments_ask_for(run: Run) -> None:
    clamped = {bucket.phase: bucket.clamped for bucket in run("0.5.23", "--max-running-requests 20").buckets}
    assert clamped == {"decode": (1, 2, 4, 8, 12, 16, 20), "prefill": None}
    divided = run(
        "0.5.23", "--max-running-requests 20 --tp 4 --dp 4 --enable-dp-attention --ep-size 4", model=QWEN3_MOE
    )
    assert divided.buckets[0].clamped == (1, 2, 4, 5)
    assert run("0.5.23", "").buckets[0].clamped is None  # nothing bounds the pool before the server measures its memory


def test_models_decide_prefill_capture(run: Run) -> None:
    assert values(run("0.5.23", "", model=QWEN_VISION))["cuda_graph_config.prefill.backend"] == "disabled"
    overlap = run("0.5.23", "--tp 4 --ep-size 4 --enable-two-batch-overlap --moe-a2a-backend deepep", model=QWEN3_MOE)
    assert values(overlap)["cuda_graph_config.prefill.backend"] == "disabled"
    assert (
        values(run("0.5.23", "--tp 4 --ep-size 4", model=QWEN3_MOE))["cuda_graph_config.prefill.backend"] == "breakable"
    )


def test_adapters_and_environment(run: Run) -> None:
    found = run("0.5.23", "--lora-paths a=/a b=/b --max-lora-rank 16", SGLANG_VIT_ENABLE_CUDA_GRAPH="1")
    assert found.starts.value and values(found)["enable_lora"] is True
    environment = found.environment("SGLANG_VIT_ENABLE_CUDA_GRAPH")
    assert environment.constant == "1" and environment.depends == ("env:SGLANG_VIT_ENABLE_CUDA_GRAPH",)


def test_the_process_sees_its_configuration_through_bags(run: Run) -> None:
    found = run("0.5.23", "--attention-backend triton --tp-size 2")
    bag = found.call("sglang.srt.runtime_context:get_exec")
    assert bag is not None and isinstance(bag.constant, InstanceOf)
    kernel = found.attribute(bag.constant, "kernel")
    assert kernel is not None and isinstance(kernel.constant, InstanceOf)
    backend = found.attribute(kernel.constant, "attention_backend")
    assert backend is not None and backend.constant == "triton" and not backend.automatic
    assert found.call("sglang.srt.model_executor.cuda_graph_config:cuda_graph_fully_disabled").truth() is False  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("device", "cuda", "hopper", "hip"),
    [
        ("h200", True, True, False),
        ("a100", True, False, False),
        ("mi300x", False, False, True),
        (None, None, None, None),
    ],
)
def test_device_questions_of_the_source(
    run: Run, device: str | None, cuda: bool | None, hopper: bool | None, hip: bool | None
) -> None:
    found = run("0.5.23", "", device)
    common = "sglang.srt.utils.common"
    answers = [
        found.evaluate_function(f"{common}:{name}").truth() for name in ("is_cuda", "is_sm90_supported", "is_hip")
    ]
    assert answers == [cuda, hopper, hip]


def test_flags_are_held_against_the_release_that_is_asked(run: Run) -> None:
    with pytest.raises(CommandInvalid, match="declares no argument --cuda-graph-backend-decode"):
        run("0.5.5", "--cuda-graph-backend-decode full")
    with pytest.raises(CommandInvalid, match="is not one of") as caught:
        run("0.5.23", "--attention-backend nothing")
    assert "sglang/srt/arg_groups/fields/exec_.py:" in str(caught.value.hint)


@pytest.mark.parametrize("version", ["0.5.23", "0.5.20", "0.5.17"])
def test_without_a_model_what_does_not_rest_on_it_is_still_decided(run: Run, version: str) -> None:
    found = run(version, "--tp-size 2 --lora-backend triton --attention-backend triton", model=None)
    settled = values(found)
    assert found.starts.value and not found.evaluator.unfinished
    assert (settled["device"], settled["tp_size"], settled["lora_backend"]) == ("cuda", 2, "triton")
    assert settled["moe_a2a_backend"] == "none" and settled["pp_size"] == 1
    # Some models force another backend, or switch a phase off: what the command gives is a prediction.
    assert settled["attention_backend"] == ("?", "triton")
    assert settled["cuda_graph_config.decode.backend"] == ("?", None)
    assert found.unresolved[0].what == "configuration of m" and len(found.unresolved) < 60
    # One model family turns prefill capture on again under this flag, so only decode is settled.
    assert sizes(run(version, "--disable-cuda-graph", model=None))["decode"] == ()


RUNNERS = "sglang.srt.model_executor.runner_backend"


@pytest.mark.parametrize(("version", "line"), [("0.5.17", 177), ("0.5.20", 186), ("0.5.23", 209)])
def test_a_segmented_decode_dies_of_the_output_that_its_table_cannot_copy(run: Run, version: str, line: int) -> None:
    """Seen on a GPU with 0.5.17: `TypeError: Unsupported BCG output type: LogitsProcessorOutput`."""
    found = run(version, "--attention-backend triton --cuda-graph-backend-decode breakable")
    table = f"{RUNNERS}.breakable_cuda_graph_backend:BreakableCudaGraphBackend"

    def arguments(stage: Stage) -> dict[str, Any]:
        output = stage.object(profile.CAPTURED_OUTPUTS["decode"])
        return {"shape_key": stage.unknown(), "forward_fn": stage.giving(output)}

    def construction(stage: Stage) -> dict[str, Any]:
        return {"cuda_graph_runner": stage.unknown()}

    failure = failure_of(found, table, "capture_one", arguments, construction)
    assert failure is not None and (failure.place.line, failure.text) == (line, "TypeError")


@pytest.mark.parametrize("version", ["0.5.17", "0.5.20", "0.5.23"])
@pytest.mark.parametrize(
    ("backend", "dies"),
    [
        ("triton_backend:TritonAttnBackend", True),
        ("flashattention_backend:FlashAttentionBackend", False),
        ("flashinfer_backend:FlashInferAttnBackend", False),
        ("trtllm_mha_backend:TRTLLMHAAttnBackend", True),
    ],
)
def test_attention_backends_that_cannot_be_captured_in_a_whole_prefill(
    run: Run, version: str, backend: str, dies: bool
) -> None:
    """Seen on a GPU with 0.5.17 and triton: `ValueError: Invalid forward mode`."""
    found = run(version, "--cuda-graph-backend-prefill full")

    def arguments(mode: str) -> Callable[[Stage], dict[str, Any]]:
        def given(stage: Stage) -> dict[str, Any]:
            member = stage.member(profile.FORWARD_MODE_CLASS, mode)
            batch = stage.object(profile.FORWARD_BATCH_CLASS, {profile.FORWARD_MODE_ATTRIBUTE: member})
            return {profile.METADATA_BATCH: batch, profile.METADATA_CAPTURING: True}

        return given

    name = f"sglang.srt.layers.attention.{backend}"
    prefill = failure_of(found, name, profile.METADATA_FUNCTION, arguments("EXTEND"))
    assert (prefill is not None) == dies
    assert prefill is None or "Invalid forward mode" in prefill.text
    assert failure_of(found, name, profile.METADATA_FUNCTION, arguments("DECODE")) is None
