"""What of two releases can execute under configurations of every kind, function by function: read from the source by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from sgl_graph.analyzer.records.pathmap import PathMap, Site

from fixtures.sglang_models import DEEPSEEK, KIMI_LINEAR, LLAMA, QWEN3_MOE
from tests.releases.mapped import mapped

EAGLE = "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
DECODING = ("DecodeCudaGraphRunner.capture_one_shape", "DecodeCudaGraphRunner.execute")
WHOLE = ("FullCudaGraphBackend.capture_one", "FullCudaGraphBackend.replay", "FullCudaGraphBackend.capture_session")
PREFILLING = ("PrefillCudaGraphRunner.capture_one_shape", "replay_layer_forward")
#: Tables, containers and capture contexts of segmented graphs, and what their wrapper does.
SEGMENTED = (
    "BreakableCudaGraphBackend.capture_one", "BreakableCudaGraphBackend.capture_session",
    "BreakableCudaGraphBackend.replay", "BreakableCUDAGraphCapture._begin_new_segment",
    "BreakableCUDAGraphCapture._end_current_segment", "BreakableCUDAGraph.replay", "eager_on_graph.decorator.wrapper",
)  # fmt: skip
DRAFTING = ("EAGLEDraftCudaGraphRunner.capture_one_shape", "EAGLEDraftCudaGraphRunner._replay_graph")
EXTENDING = ("EAGLEDraftExtendCudaGraphRunner.capture_one_shape", "EAGLEDraftExtendCudaGraphRunner._replay_graph")
NPU = ("NPUCudaGraphBackend.capture_one", "NPUCudaGraphBackend.replay_with_input_update")
#: Names of split points.
ATTENTION, LATENT, EXPERTS = "_eager_attention", "_eager_bmm_attention", "a2a_forward_with_output"
OLD_ATTENTION = "breakable_unified_attention_with_output"
OLD_LSE, OLD_EXTRA = f"{OLD_ATTENTION}_and_lse", "breakable_attention_with_output_extra_kwargs"


@dataclass(frozen=True)
class Case:
    """A launch, what of it runs, what does not, and what the source alone leaves open.

    Attributes:
        splits, whole: names of split points at which graphs are split, and of those at which none is.
        decides: what the open answers rest on.
    """

    version: str
    model: str
    device: str
    command: str
    runs: tuple[str, ...]
    never: tuple[str, ...]
    splits: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    decides: str = ""


CASES = {
    "dense, older": Case(
        "0.5.17", LLAMA, "h200", "--attention-backend flashinfer", (*WHOLE, *DECODING, *PREFILLING, *SEGMENTED),
        (*DRAFTING, *EXTENDING, *NPU), (OLD_ATTENTION,), (OLD_LSE, OLD_EXTRA),
    ),
    "experts in parallel": Case(
        "0.5.23", QWEN3_MOE, "h200", "--tp 4 --ep-size 4 --moe-a2a-backend deepep",
        (*WHOLE, *DECODING, *PREFILLING, *SEGMENTED), (*DRAFTING, *EXTENDING, *NPU), (ATTENTION, EXPERTS), (LATENT,),
    ),
    "whole prefill": Case(
        "0.5.23", LLAMA, "h200", "--cuda-graph-backend-prefill full",
        (*WHOLE, *DECODING, *PREFILLING), (*SEGMENTED, *DRAFTING, *NPU), (), (ATTENTION, EXPERTS, LATENT),
    ),
    # Latent attention has no eager breaks in this release, and its draft extension is not captured with `fa3`.
    "MTP, older": Case(
        "0.5.17", DEEPSEEK, "h200", f"--tp 8 --speculative-algorithm EAGLE {EAGLE}", (*WHOLE, *DECODING, *DRAFTING),
        (*PREFILLING, *SEGMENTED, *EXTENDING, *NPU), (), (OLD_ATTENTION, OLD_LSE, OLD_EXTRA),
    ),
    "EAGLE3 on an NPU": Case(
        "0.5.23", LLAMA, "npu", f"--speculative-algorithm EAGLE3 --speculative-draft-model-path {{draft}} {EAGLE}",
        (
            *NPU, DECODING[0], "EAGLEDraftNpuGraphRunner._replay_graph", "EAGLEDraftExtendNpuGraphRunner._replay_graph",
        ),
        (*WHOLE, *PREFILLING, *SEGMENTED, DRAFTING[1], EXTENDING[1], DECODING[1], "NPUCudaGraphBackend.replay"),
    ),
    "prefill server": Case(
        "0.5.17", LLAMA, "h200", "--disaggregation-mode prefill", (*PREFILLING, *SEGMENTED), (*WHOLE, *DECODING, *NPU),
        (OLD_ATTENTION,),
    ),
    "adapters on a dense model, older": Case(
        "0.5.17", LLAMA, "h200", "--enable-lora --lora-paths a=/a --max-lora-rank 16 --lora-backend triton",
        (*WHOLE, *DECODING, *PREFILLING, *SEGMENTED), (*DRAFTING, *NPU), (OLD_ATTENTION,), (OLD_LSE, OLD_EXTRA),
    ),
    # Whether the adapters reach experts is known once the model is wrapped; then this release captures no prefill.
    "adapters on experts, older": Case(
        "0.5.17", QWEN3_MOE, "h200",
        "--enable-lora --lora-paths a=/a --max-lora-rank 16 --lora-target-modules all --tp 2", (*WHOLE, *DECODING),
        (*DRAFTING, *NPU), (), (OLD_LSE, OLD_EXTRA), (*PREFILLING, *SEGMENTED), "_is_moe_lora",
    ),
    # Algorithms are objects in a registry here; none of them is launched.
    "no draft among algorithms that are objects": Case(
        "0.5.5", LLAMA, "h200", "", ("CudaGraphRunner._capture_graph", "CudaGraphRunner.replay"),
        ("EAGLEDraftCudaGraphRunner.replay", "EAGLEDraftExtendCudaGraphRunner.replay", "EAGLEWorker.draft"),
    ),
    # Linear attention of this kind leaves prefill eager, by what a nested part of the model's configuration says.
    "linear attention": Case(
        "0.5.23", KIMI_LINEAR, "h200", "--tp 2", (*WHOLE, *DECODING), (*PREFILLING, *SEGMENTED, *DRAFTING), (),
        (ATTENTION, LATENT),
    ),
}  # fmt: skip


def answers(found: PathMap, name: str) -> set[str]:
    """Answers for the primitives of one function; none of them serves a device that is not there."""
    sites = [s for s in found.sites if s.role in ("capture", "replay", "pool", "break") and named(s, name)]
    assert sites, name
    return {s.reachable for s in sites}


def named(site: Site, name: str) -> bool:
    return site.qualname.endswith((f":{name}", f".{name}"))


def split_at(found: PathMap, root: Path, name: str) -> str:
    """The answer for a split point: a decorated function, or the line that binds a wrapped one to its name."""
    for site in found.sites:
        line = (root / site.file).read_text().split("\n")[site.line - 1]
        if site.role == "break" and (named(site, name) or line.split("=")[0].strip() == name):
            return site.reachable
    raise AssertionError(name)


@pytest.mark.releases
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_functions_of_a_release_run_as_its_source_has_it(
    name: str, sglang_source: Callable[[str], Path], tmp_path: Path
) -> None:
    case = CASES[name]
    root = sglang_source(case.version)
    found = mapped(root, tmp_path, device=case.device, model=case.model, command=case.command)
    assert {function: "yes" in answers(found, function) for function in case.runs} == dict.fromkeys(case.runs, True)
    assert {f: answers(found, f) for f in case.never} == {f: {"no"} for f in case.never}
    for function in case.open:
        assert answers(found, function) - {"no"} == {"unresolved"}, function
        why = [s.why for s in found.sites if named(s, function) and s.reachable == "unresolved"]
        assert all(case.decides in text for text in why), why
    assert {n: split_at(found, root, n) for n in case.splits} == dict.fromkeys(case.splits, "yes")
    assert {n: split_at(found, root, n) for n in case.whole} == dict.fromkeys(case.whole, "no")


#: Launch of 0.5.23, labels to expect, and what the material gaps name.
EXPECTED = {
    # The draft of this model has no `layers`: start-up leaves its prefill out.
    "MTP": (
        DEEPSEEK, f"--tp 8 --speculative-algorithm EAGLE {EAGLE}",
        ["draft:draft", "draft:draft-extend", "target:prefill-breakable", "target:verify"], "CustomAllreduce",
    ),
    "debugging with whole graphs": (LLAMA, "--debug-cuda-graph", ["target:prefill-breakable"], "AssertionError"),
}  # fmt: skip


@pytest.mark.releases
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", EXPECTED)
def test_labels_and_gaps_of_a_launch(name: str, sglang_source: Callable[[str], Path], tmp_path: Path) -> None:
    model, command, labels, gap = EXPECTED[name]
    found = mapped(sglang_source("0.5.23"), tmp_path, device="h200", model=model, command=command)
    assert list(found.labels) == labels
    material = [g.text for g in found.gaps if g.severity == "material"]
    assert material and all(gap in text for text in material), material
