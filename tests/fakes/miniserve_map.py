"""A path map of fixtures/miniserve written by hand: tests of run do not wait for, or depend on, the mapper."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2] / "fixtures" / "miniserve"
_BACKENDS = "sglang/srt/model_executor/runner_backend"
_BREAKABLE = "sglang/srt/model_executor/runner_backend_utils/breakable_cuda_graph"


def miniserve_map(workers: int) -> bytes:
    """The map as JSON: sites found by their text, the paths of the default configuration, traffic for every label."""
    full = _site(
        "s1",
        [f"{_BACKENDS}/full_cuda_graph_backend.py"],
        "with emugraph.cuda.graph",
        "FullCudaGraphBackend.capture_one",
    )
    files = [p.relative_to(ROOT / "python").as_posix() for p in sorted((ROOT / "python" / _BREAKABLE).glob("*.py"))]
    broken = _site("s2", files, "graph.capture_begin", "BreakableCUDAGraphCapture.begin_new_segment")
    body = {
        "schema": "sgl-graph.path-map/1",
        "checkout": {"root": "", "layout": "repository", "digest": "by-hand"},
        "command": [],
        "env": {},
        "device": {"name": "emu", "source": "flag", "kind": "emu"},
        "starts": {"value": "yes"},
        "config": [],
        "workers": [
            {"role": "scheduler", "count": workers, "source": "tp_size", "injection": {"reaches": "yes", "why": ""}}
        ],
        "sites": [full, broken],
        "paths": [
            _path("p1", "decode", "s1", "full", ["lora", "nolora"], [1, 2, 4]),
            _path("p2", "prefill-breakable", "s2", "breakable", [None], [8, 16, 32]),
        ],
        "unresolved": [],
        "gaps": [],
        "labels": ["target:decode/lora", "target:decode/nolora", "target:prefill-breakable"],
        "traffic": _traffic(),
    }
    return json.dumps(body).encode()


def _traffic() -> list[dict[str, Any]]:
    found = []
    for variant in ("lora", "nolora"):
        for size in (1, 2, 4):
            found.append(_set(f"{variant}-{size}", [f"target:decode/{variant}@{size}"], size, 7, 6, variant))
    for size in (8, 16, 32):
        found.append(_set(f"prefill-{size}", [f"target:prefill-breakable@{size}"], 1, size - 1, 2, None))
    found.append(_set("mixed", ["target:decode/lora@4"], 4, 6, 6, "mixed"))
    # Longer than any captured prefill: it runs eager, and what it leaves behind is met by the sets that follow.
    found.append(_set("long", [], 1, 80, 6, None))
    found.append(_set("lora-after", ["target:decode/lora@2"], 2, 9, 6, "lora"))
    found.append(_set("plain-after", ["target:decode/nolora@2"], 2, 9, 6, None))
    return found


def _set(
    name: str, labels: list[str], size: int, input_len: int, output_len: int, variant: str | None
) -> dict[str, Any]:
    return {
        "name": name, "labels": labels, "concurrency": size, "input_len": input_len, "output_len": output_len,
        "variant": variant,
    }  # fmt: skip


def _site(site: str, files: list[str], text: str, qualname: str) -> dict[str, Any]:
    for file in files:
        lines = (ROOT / "python" / file).read_text().splitlines()
        found = [number for number, line in enumerate(lines, 1) if text in line]
        if found:
            module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            return {
                "id": site, "file": file, "line": found[0], "qualname": f"{module}:{qualname}", "role": "capture",
                "api": "graph", "family": "decode", "gates": [], "reachable": "yes", "trigger": "startup", "why": "",
                "inspectability": "lifetime-inspectable", "reason": "",
            }  # fmt: skip
    raise AssertionError(f"{text} is in none of {files}")


def _path(
    path: str, family: str, site: str, backend: str, variants: list[str | None], buckets: list[int]
) -> dict[str, Any]:
    return {
        "id": path, "family": family, "worker": "scheduler", "runner": "target", "backend": backend,
        "name": f"target:{family}", "sites": [site], "components": [], "chain": [], "nested_in": None,
        "label": {"key": "ShapeKey", "expression": "shape_key", "variants": variants, "buckets": buckets},
        "independent": True, "depends_on_unconfirmed": [], "reachable": "yes", "trigger": "startup",
        "inspectability": "lifetime-inspectable", "reasons": [],
    }  # fmt: skip
