"""Kept runs of an unmodified SGLang: what the map predicted, held against what was captured and replayed."""

from __future__ import annotations

import json
import re
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.mapdiff import difference
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.pathmap import PathMap
from sgl_graph.analyzer.records.receipts import read_receipts, write_receipts

KEPT = Path(__file__).parents[3] / "fixtures" / "archives" / "real-sglang-0.5.17"
BREAKABLE, DECODE, VERIFY, PIECEWISE = (
    "target:prefill-breakable",
    "target:decode",
    "target:verify",
    "target:prefill-piecewise",
)
#: Paths that each configuration must have, and the segments of one capture: three layers' attention splits a prefill in four.
PATHS = {
    "llama": {DECODE: 1, BREAKABLE: 4},
    "flashinfer": {DECODE: 1, BREAKABLE: 4},
    "lora": {DECODE: 1, BREAKABLE: 4},
    "lora-derived": {DECODE: 1, BREAKABLE: 4},
    "dedup": {DECODE: 1, BREAKABLE: 4},
    "moe": {DECODE: 1, BREAKABLE: 4},
    "ngram": {VERIFY: 1, BREAKABLE: 4},
    "piecewise": {DECODE: 1, PIECEWISE: 4},
    # Target and draft are captured by one function; the draft's worker is one frame more in the stack.
    "dflash": {VERIFY: 1, BREAKABLE: 4, "draft:verify": 1},
    # The draft has one layer, so its prefills are split in two.
    "eagle": {VERIFY: 1, BREAKABLE: 4, "draft:draft": 1, "draft:draft-extend": 1, "draft:prefill-breakable": 2},
}
#: Servers that ended while they captured: the path that the map foretold it of.
DYING = {"prefill-full": "target:prefill-full", "decode-breakable": DECODE}


@cache
def archive(name: str) -> zipfile.ZipFile:
    return zipfile.ZipFile(KEPT / f"{name}.zip")


def member(name: str, file: str) -> bytes:
    [found] = [n for n in archive(name).namelist() if n.partition("/")[2] == file]
    return archive(name).read(found)


def document(name: str, file: str) -> Any:
    return json.loads(member(name, file))


def path_map(name: str) -> PathMap:
    return PathMap.model_validate(document(name, "map.json"))


def captures(name: str) -> list[dict[str, Any]]:
    files = [n for n in archive(name).namelist() if "/receipts/" in n and "/eager/" not in n]
    lines = [json.loads(line) for n in files for line in archive(name).read(n).splitlines()]
    return [line for line in lines if line["k"] == "capture"]


@pytest.mark.parametrize("name", PATHS)
def test_captures_are_those_predicted_by_label_and_by_number_of_segments(name: str) -> None:
    predicted = {
        f"{path.name}@{size}": PATHS[name][path.name]
        for path in path_map(name).paths
        if path.reachable == "yes"
        for size in path.label.buckets or ()
    }
    assert Counter(capture["label"] for capture in captures(name)) == predicted
    assert {label.partition("@")[0] for label in predicted} == PATHS[name].keys()


@pytest.mark.parametrize("name", PATHS)
def test_each_path_is_verified_and_no_capture_is_unmapped(name: str) -> None:
    observed = document(name, "map.observed.json")
    assert observed["unmapped_captures"] == []
    assert {p["name"]: {one["status"] for one in p["observed"]} for p in observed["paths"]} == {
        path: {"verified"} for path in PATHS[name]
    }
    assert {p["inspectability"] for p in observed["paths"]} == {"lifetime-inspectable"}


@pytest.mark.parametrize("name", PATHS)
def test_every_drift_is_one_that_is_explained(name: str) -> None:
    drift = document(name, "ledger.json")["drift"]
    explained = {
        # The default prefill sizes are thirty; the traffic reaches nine of them.
        "llama": {("bucket-unreplayed", f"{BREAKABLE}:PrefillCudaGraphRunner:BreakableCudaGraphBackend")},
        # This version compared identifiers that each server makes anew.
        "lora": {("setting", "lora_paths")},
        # The map's own traffic replays every label, not every size.
        "lora-derived": {
            ("bucket-unreplayed", f"{DECODE}:DecodeCudaGraphRunner:FullCudaGraphBackend"),
            ("bucket-unreplayed", f"{BREAKABLE}:PrefillCudaGraphRunner:BreakableCudaGraphBackend"),
        },
    }
    assert {(entry["kind"], entry["subject"]) for entry in drift} == explained.get(name, set())


def test_the_maps_own_traffic_uses_each_adapter_once() -> None:
    planned = [s for s in document("lora-derived", "plan.json")["request_sets"] if s["purpose"] == "main"]
    assert {s["name"]: [r["lora"] for r in s["requests"]] for s in planned} == {
        "text": [None],
        "adapters": ["a", "b", None],
    }
    assert {tuple(s["labels"]) for s in planned} == {(DECODE, BREAKABLE)}
    answers = document("lora-derived", "instrumented/adapters.outputs.json")["requests"]
    assert [len(answer["output_ids"]) for answer in answers] == [8, 8, 8]


@pytest.mark.parametrize("name", DYING)
def test_a_death_in_capture_was_foretold_with_the_line_at_which_the_server_died(name: str) -> None:
    [gap] = [gap for gap in path_map(name).gaps if gap.code == "SGG064"]
    assert gap.severity == "material" and gap.text.startswith(f"{DYING[name]}: ")
    foretold = re.search(r"ends in (\w+).*, (\S+:\d+)\)$", gap.text)
    launch = document(name, "ledger.json")["launches"]["ordinary"]
    died = re.search(r"the server ended \(signal 9\): (\w+): .*\(<path>/(\S+:\d+) in ", launch["reason"])
    assert launch["state"] == "failed" and foretold and died
    assert foretold.groups() == died.groups()


def test_a_draft_model_adds_its_paths_and_moves_none_of_the_target() -> None:
    found = difference(path_map("ngram"), path_map("eagle"))
    labels = {(c.sign, c.text) for c in found.changes if c.kind == "label"}
    assert labels == {("+", "draft:draft"), ("+", "draft:draft-extend"), ("+", "draft:prefill-breakable")}


def test_a_flag_that_chooses_the_prefill_backend_moves_that_path_and_its_label() -> None:
    found = difference(path_map("flashinfer"), path_map("piecewise"))
    moved = {(change.sign, change.kind, change.text.split(":Prefill")[0]) for change in found.changes}
    assert {("-", "label", BREAKABLE), ("+", "label", PIECEWISE)} <= moved
    assert {("-", "path", BREAKABLE), ("+", "path", PIECEWISE)} <= moved
    cause = "~ config: cuda_graph_config.prefill.backend: breakable -> tc_piecewise (flag"
    assert any(line.startswith(cause) for line in found.lines())
    assert any(
        line.startswith("~ site: replay:cuda_piecewise_backend.") and "reachable: no -> yes" in line
        for line in found.lines()
    )


def test_speculation_turns_decode_into_verify_and_nothing_else_about_graphs() -> None:
    found = difference(path_map("flashinfer"), path_map("ngram"))
    assert {(c.sign, c.text) for c in found.changes if c.kind == "label"} == {("-", DECODE), ("+", VERIFY)}
    assert "~ config: speculative_algorithm: None -> NGRAM (flag)" in found.lines()


def test_deduplication_is_a_matter_of_sites_not_of_paths() -> None:
    found = difference(path_map("llama"), path_map("dedup"))
    assert not [c for c in found.changes if c.kind in ("path", "label") and c.sign != "~"]
    reached = {c.text.partition(": reachable: no -> yes")[0] for c in found.changes if c.kind == "site"}
    assert "update:cuda_graph_dedup_mixin.DedupedCudaGraphRegistry.instantiate" in reached
    assert "~ config: env:SGLANG_ENABLE_CUDA_GRAPH_DEDUP: absent -> 1 (env)" in found.lines()


def test_without_labels_pieces_that_hand_on_and_free_are_a_hazard_and_with_them_one_chain() -> None:
    """Pieces of one compiled forward free what they handed on; only the label says that they run in order."""
    [name] = [
        n
        for n in archive("piecewise").namelist()
        if "/receipts/" in n and "/eager/" not in n and b'"k":"capture"' in archive("piecewise").read(n)
    ]
    bodies = [json.loads(line) for line in archive("piecewise").read(name).splitlines()]
    for body in bodies:
        del body["h"], body["n"]
    assert lifetime_verdict([read_receipts(write_receipts(bodies))]).value == "PASS"
    for body in bodies:
        if body["k"] == "capture" and str(body["label"]).startswith(PIECEWISE):
            body["label"] = None
    result = lifetime_verdict([read_receipts(write_receipts(bodies))])
    assert result.value == "INCONCLUSIVE"
    assert {finding.code for finding in result.findings} == {"output-reused"}
