"""The path map of miniserve has every path, class, variant and size right, in each of its configurations."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parents[3] / "fixtures"
MINISERVE = FIXTURES / "miniserve"
LORA = ["--lora-paths", "a=adapters/a", "b=adapters/b"]
SMALL = ["--max-running-requests", "4", "--cuda-graph-bs-prefill", "8", "16", "32"]
DRAFT = ["--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", "models/tiny-draft"]

FULL, CUT = "FullCudaGraphBackend", "BreakableCudaGraphBackend"
DECODE, PREFILL = "DecodeCudaGraphRunner", "PrefillCudaGraphRunner"
DRAFTS = "StandaloneDraftCudaGraphRunner"
CASES: dict[str, tuple[list[str], set[tuple[Any, ...]]]] = {
    "lora": (
        [*LORA, *SMALL],
        {
            ("target:decode", DECODE, FULL, ("lora", "nolora"), (1, 2, 4)),
            ("target:prefill-breakable", PREFILL, CUT, (None,), (8, 16, 32)),
        },
    ),
    "plain": (
        [*LORA, *SMALL, "--lora-backend", "plain"],
        {
            ("target:decode", DECODE, FULL, (None,), (1, 2, 4)),
            ("target:prefill-breakable", PREFILL, CUT, (None,), (8, 16, 32)),
        },
    ),
    "defaults": (
        [],
        {
            ("target:decode", DECODE, FULL, (None,), (1, 2, 4, 8)),
            ("target:prefill-breakable", PREFILL, CUT, (None,), (8, 16, 32, 64)),
        },
    ),
    "breakable-decode": (
        [*SMALL, "--cuda-graph-backend-decode", "breakable"],
        {
            ("target:decode", DECODE, CUT, (None,), (1, 2, 4)),
            ("target:prefill-breakable", PREFILL, CUT, (None,), (8, 16, 32)),
        },
    ),
    "no-prefill": (
        [*SMALL, "--disable-prefill-cuda-graph", "--disable-cuda-graph-padding"],
        {("target:decode", DECODE, FULL, (None,), (1, 2, 3, 4))},
    ),
    "drafts": (
        [*SMALL, *DRAFT, "--tp-size", "2"],
        {
            ("target:verify", DECODE, FULL, (None,), (1, 2, 4)),
            ("draft:draft", DRAFTS, FULL, (None,), (1, 2, 4)),
            ("target:prefill-breakable", PREFILL, CUT, (None,), (8, 16, 32)),
        },
    ),
    "eager": (["--disable-cuda-graph"], set()),
}


def path_map(args: Sequence[str]) -> Any:
    env = {
        **os.environ,
        "PYTHONPATH": str(FIXTURES / "emulated"),
        "SGL_GRAPH_INSPECTOR": "emugraph.inspector",
    }
    tool = [sys.executable, "-m", "sgl_graph.cli", "preflight", "--checkout", ".", "--format", "json", "--"]
    serving = ["python", "-m", "sglang.launch_server", "--model-path", "models/tiny-moe"]
    done = subprocess.run([*tool, *serving, *args], cwd=MINISERVE, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", CASES)
def test_paths_classes_variants_and_sizes(name: str) -> None:
    args, expected = CASES[name]

    mapped = path_map(args)

    found = {
        (p["name"], p["runner"], p["backend"], tuple(p["label"]["variants"]), tuple(p["label"]["buckets"]))
        for p in mapped["paths"]
        if p["reachable"] == "yes"
    }
    assert found == expected
    assert {p["reachable"] for p in mapped["paths"]} <= {"yes", "no"}
    assert {p["inspectability"] for p in mapped["paths"] if p["reachable"] == "yes"} <= {"lifetime-inspectable"}
    assert [gap for gap in mapped["gaps"] if gap["severity"] == "material"] == []
    labels = {p if v is None else f"{p}/{v}" for p, _, _, variants, _ in expected for v in variants}
    assert set(mapped["labels"]) == labels
    ranks = int(args[args.index("--tp-size") + 1]) if "--tp-size" in args else 1
    assert [(w["role"], w["count"]) for w in mapped["workers"]] == [("scheduler", ranks)]


@pytest.mark.timeout(120)
def test_components_and_what_only_the_server_settles() -> None:
    mapped = path_map([*LORA, *SMALL])

    decode = next(p for p in mapped["paths"] if p["name"] == "target:decode")
    parts = {(c["kind"], c["class"]) for c in decode["components"] if c["reachable"] != "no"}
    assert {("attention", "PagedAttnBackend"), ("lora", "TwinLoRABackend")} <= parts
    assert not any(kind == "attention" and name != "PagedAttnBackend" for kind, name in parts)
    config = {item["name"]: item for item in mapped["config"]}
    backend = config["attention_backend"]
    assert backend["source"] == "unresolved" and backend["predicted"] == "paged"
    assert backend["decided_by"]["qualname"].endswith("ServerArgs._default_attention_backend")
    assert config["cuda_graph_config.decode.bs"]["value"] == [1, 2, 4]


@pytest.mark.timeout(120)
def test_every_primitive_is_listed() -> None:
    mapped = path_map([*LORA, *SMALL])

    found = {(s["role"], s["qualname"].rpartition(":")[2]) for s in mapped["sites"]}
    assert {
        ("capture", "FullCudaGraphBackend.capture_one"),
        ("replay", "FullCudaGraphBackend.replay"),
        ("update", "FullCudaGraphBackend.cleanup"),
        ("capture", "BreakableCUDAGraphCapture.begin_new_segment"),
        ("capture", "BreakableCUDAGraphCapture.end_current_segment"),
        ("replay", "BreakableCUDAGraph.replay"),
        ("break", "RadixAttention._eager_attention"),
        ("pool", "get_or_create_global_graph_memory_pool"),
        ("replay", f"{DECODE}.execute"),
        ("replay", f"{PREFILL}.execute"),
        ("replay", f"{DRAFTS}.execute"),
    } <= found
    drafts = [s for s in mapped["sites"] if DRAFTS in s["qualname"]]
    assert drafts and {s["reachable"] for s in drafts} == {"no"}
