"""Whole maps of real releases under configurations that differ in kind: paths, and what of the source they can execute."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sgl_graph.analyzer.records.pathmap import PathMap

from fixtures.sglang_models import DEEPSEEK, LLAMA, QWEN_VISION
from tests.releases.mapped import mapped

EAGLE = (
    "--tp 2 --speculative-algorithm EAGLE3 --speculative-draft-model-path {draft} "
    "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)
DECODE = "target:decode DecodeCudaGraphRunner FullCudaGraphBackend"
VERIFY = "target:verify DecodeCudaGraphRunner FullCudaGraphBackend"
SEGMENTED = "prefill-breakable PrefillCudaGraphRunner BreakableCudaGraphBackend"
DRAFT = "draft:draft EAGLEDraftCudaGraphRunner FullCudaGraphBackend"
DRAFT_EXTEND = "draft:draft-extend EAGLEDraftExtendCudaGraphRunner FullCudaGraphBackend"
PLAIN_GRAPHS = ("FullCudaGraphBackend.capture_one", "FullCudaGraphBackend.replay")
SEGMENTS = ("BreakableCudaGraphBackend.capture_one", "BreakableCUDAGraphCapture._begin_new_segment")
PREFILL = ("PrefillCudaGraphRunner.capture_one_shape",)
DRAFTS = ("EAGLEDraftCudaGraphRunner.capture_one_shape", "EAGLEDraftCudaGraphRunner._replay_graph")
EXTENDS = ("EAGLEDraftExtendCudaGraphRunner.capture_one_shape", "EAGLEDraftExtendCudaGraphRunner._replay_graph")
NPU_GRAPHS = ("NPUCudaGraphBackend.capture_one", "NPUCudaGraphBackend.replay")


@dataclass(frozen=True)
class Case:
    """A configuration, and what is true of it by the source.

    Attributes:
        paths: name, runner and table of each path that runs.
        reached: methods whose captures and replays can execute; `left_out`: those whose cannot.
        gaps: codes of material gaps.
        classes: components that paths may not have.
        environment: variables of the launch.
        variants: texts in keys that only the server decides on.
    """

    version: str
    model: str
    device: str
    command: str
    paths: tuple[str, ...]
    reached: tuple[str, ...]
    left_out: tuple[str, ...]
    gaps: tuple[str, ...] = field(default=())
    classes: tuple[str, ...] = field(default=())
    environment: tuple[str, ...] = field(default=())
    variants: tuple[str, ...] = field(default=())


CASES = {
    "EAGLE3 on two devices": Case(
        "0.5.23", LLAMA, "h200", EAGLE,
        (VERIFY, DRAFT, DRAFT_EXTEND, f"target:{SEGMENTED}", f"draft:{SEGMENTED}"),
        (*PLAIN_GRAPHS, *SEGMENTS, *PREFILL, *DRAFTS, *EXTENDS), NPU_GRAPHS, ("SGG020",),
    ),
    # This release captures no draft extension with the attention backend that it chooses on this device.
    "EAGLE3 without captured extension": Case(
        "0.5.17", LLAMA, "h200", EAGLE, (VERIFY, DRAFT, f"target:{SEGMENTED}", f"draft:{SEGMENTED}"),
        (*PLAIN_GRAPHS, *SEGMENTS, *PREFILL, *DRAFTS), (*EXTENDS, *NPU_GRAPHS), ("SGG020",),
    ),
    # A setter that runs before any group is made switches them off: what is left is torch's own memory.
    "no collectives of its own": Case(
        "0.5.23", LLAMA, "h200", "--tp 2 --disable-custom-all-reduce", (DECODE, f"target:{SEGMENTED}"),
        (*PLAIN_GRAPHS, *SEGMENTS, *PREFILL), (*DRAFTS, *NPU_GRAPHS), (), ("CustomAllreduce", "CustomAllReduceV2"),
    ),
    "multimodal": Case(
        "0.5.23", QWEN_VISION, "h200", "", (DECODE,), PLAIN_GRAPHS, (*SEGMENTS, *PREFILL, *DRAFTS, *NPU_GRAPHS),
    ),
    # Only models with sparse attention of DeepSeek's replay without rebinding the sequence lengths.
    "NPU": Case(
        "0.5.23", LLAMA, "npu", "", ("target:decode NPUGraphRunner NPUCudaGraphBackend",),
        ("NPUCudaGraphBackend.capture_one", "NPUCudaGraphBackend.replay_with_input_update"),
        ("NPUCudaGraphBackend.replay", *PLAIN_GRAPHS, *SEGMENTS, *PREFILL), ("SGG006",),
    ),
    "segmented decode, which dies": Case(
        "0.5.17", LLAMA, "h200", "--attention-backend triton --cuda-graph-backend-decode breakable",
        ("target:decode DecodeCudaGraphRunner BreakableCudaGraphBackend", f"target:{SEGMENTED}"),
        (*SEGMENTS, *PREFILL), (*PLAIN_GRAPHS, *DRAFTS), ("SGG064",),
    ),
    # Without the variable the saver has no part in graphs.
    "segments under the memory saver, which die": Case(
        "0.5.23", LLAMA, "h200", "--enable-memory-saver", (DECODE, f"target:{SEGMENTED}"),
        (*PLAIN_GRAPHS, *SEGMENTS, *PREFILL), DRAFTS, ("SGG004", "SGG064"),
        environment=("SGLANG_MEMORY_SAVER_CUDA_GRAPH=1",),
    ),
    "segments beside a memory saver": Case(
        "0.5.17", LLAMA, "h200", "--enable-memory-saver", (DECODE, f"target:{SEGMENTED}"),
        (*PLAIN_GRAPHS, *SEGMENTS, *PREFILL), DRAFTS,
    ),
    "whole prefills, and others by parts of their cached prefix": Case(
        "0.5.17", DEEPSEEK, "h200", "--tp 8 --cuda-graph-backend-prefill full",
        (DECODE, "target:prefill-full PrefillCudaGraphRunner FullCudaGraphBackend"),
        (*PLAIN_GRAPHS, *PREFILL), (*DRAFTS, *NPU_GRAPHS), ("SGG020",),
        variants=tuple(f"chunked_prefix:{n}" for n in (1, 2, 4, 8, 16)),
    ),
    "no graphs": Case(
        "0.5.23", LLAMA, "h200", "--disable-cuda-graph", (), (), (*PLAIN_GRAPHS, *SEGMENTS, *PREFILL, *DRAFTS),
    ),
}  # fmt: skip


def held_against(found: PathMap, case: Case) -> None:
    """A map against what the source says."""
    running = {f"{p.name} {p.runner} {p.backend}" for p in found.paths if p.reachable == "yes"}
    assert running == set(case.paths)
    assert not [p.name for p in found.paths if p.reachable == "unresolved"]
    # Without experts nothing that serves some is a part of a path.
    components = [c for p in found.paths for c in p.components]
    experts = case.model == DEEPSEEK
    assert not [c.class_ for c in components if (c.kind == "moe") > experts or c.class_ in case.classes]
    open_ = {v for p in found.paths for v in p.label.variants_open}
    assert open_ == set(case.variants) and not [label for label in found.labels if "/" in label]
    of_interest = [s for s in found.sites if s.role in ("capture", "replay")]
    for names, wanted in ((case.reached, "yes"), (case.left_out, "no")):
        for name in names:
            sites = [s for s in of_interest if s.qualname.endswith(f":{name}")]
            assert sites, name
            answers = {s.reachable for s in sites if "xpu" not in s.api.lower()}
            assert (wanted in answers) if wanted == "yes" else answers == {"no"}, name
    assert {gap.code for gap in found.gaps if gap.severity == "material"} == set(case.gaps)
    made = {"CUDAGraph", "NPUGraph", "XPUGraph"}
    if not case.paths:
        assert not [s.id for s in of_interest if s.api.rpartition(".")[2] in made and s.reachable != "no"]
        assert not [s.id for s in of_interest if s.role == "replay" and s.reachable != "no"]
    assert found.stats.functions_reached <= 0.4 * found.stats.functions_total


@pytest.mark.releases
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", CASES)
def test_a_release_is_mapped_as_its_source_has_it(
    name: str, sglang_source: Callable[[str], Path], tmp_path: Path
) -> None:
    case = CASES[name]
    found = mapped(
        sglang_source(case.version),
        tmp_path,
        device=case.device,
        model=case.model,
        command=case.command,
        environment=case.environment,
    )
    held_against(found, case)
