"""The parts of the cost measurement that need no server."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

from sgl_graph.runtime.inject import ProbeSettings

_PATH = Path(__file__).parents[2] / "gpu" / "serving_cost.py"
_spec = importlib.util.spec_from_file_location("serving_cost", _PATH)
assert _spec is not None and _spec.loader is not None
cost: Any = importlib.util.module_from_spec(_spec)
sys.modules["serving_cost"] = cost
_spec.loader.exec_module(cost)


def test_a_rate_counts_whole_calls_over_the_time_they_took() -> None:
    def send() -> int:
        time.sleep(0.02)
        return 10

    assert 150 < cost.rate(send, 0.1) < 500


def test_prompts_are_new_each_time() -> None:
    sent = [tuple(prompt[:2]) for _ in range(40) for prompt in cost.prompts(8, 12)]
    assert len(set(sent)) == len(sent)
    assert all(3 <= token < 1003 for prompt in cost.prompts(4, 1500) for token in prompt)


def test_the_time_of_captures_is_what_the_server_says() -> None:
    log = (
        "Capture target prefill CUDA graph begin. x\n"
        "Capture target prefill CUDA graph end. elapsed=1.25 s, mem usage=0.1 GB\n"
        "noise elapsed=9.00 s\nCapture target decode CUDA graph end. elapsed=0.50 s, mem usage\n"
    )
    assert cost.captured_seconds(log) == 1.75


def test_what_inspection_took_is_read_from_receipts(tmp_path: Path) -> None:
    lines = [
        {"k": "capture", "spent": {"nodes": 1500, "allocator": 500}},
        {"k": "replays"},
        {"k": "capture", "spent": {"nodes": 1000}},
        {"k": "recorder", "e": "on", "detail": "certificates: the program allocates too fast to follow"},
        {"k": "recorder", "e": "on", "detail": "events are followed again"},
        {"k": "footer", "watched": {"events": 12, "seconds": 0.5}},
    ]
    text = "\n".join(json.dumps(line) for line in lines) + '\n{"k":"capture","spe'
    (tmp_path / "w.jsonl").write_text(text)
    assert cost.inspected(tmp_path) == {
        "captures": 2,
        "milliseconds": 3.0,
        "watched": {"events": 12, "seconds": 0.5},
        "certified": 1,
    }


def test_the_table_holds_each_variant_against_the_ordinary_server() -> None:
    found = {name: cost.Measured() for name in cost.VARIANTS}
    found["ordinary"].tokens_a_second = {"decode-8": [100.0, 110.0, 120.0], "decode-1": [20.0]}
    found["whole"].tokens_a_second = {"decode-8": [99.0, 90.0, 110.0]}
    found["whole"].device_mib = 1024.0
    rows = {
        line.split("|")[1].strip(): line
        for line in cost.table("wide", found, {}).splitlines()[2:]
        if line.startswith("|")
    }
    assert "| 110 (1.000) |" in rows["ordinary"]
    assert "| 99 (0.900) |" in rows["whole"] and "1,024 MiB" in rows["whole"]
    assert rows["hooks"].count("not measured") == 3


def test_copies_of_a_variant_are_pooled() -> None:
    found = {name: cost.Measured() for name in ("ordinary", "whole", "ordinary/2", "whole/2")}
    for number, one in enumerate(found.values()):
        one.tokens_a_second = {"decode-8": [100.0 - 10 * number]}
    text = cost.table("wide", found, {})
    assert "| ordinary/2 | not measured (" not in text and "| 80 (0.889) |" in text
    assert "whole, all servers and rounds, median to median: decode-8 0.889" in text
    assert "ordinary, all servers and rounds, median to median: decode-8 1.000" in text


def test_the_ladder_is_made_of_the_switches_of_the_probe() -> None:
    for settings in cost.VARIANTS.values():
        if settings is not None:
            ProbeSettings(run="r", launch="l", receipts=Path("x"), **settings)
    assert cost.VARIANTS["ordinary"] is None and cost.VARIANTS["whole"] == {}
