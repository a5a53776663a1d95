"""Each planted fault really does what faults.json states of it, and only where graphs run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MINISERVE = Path(__file__).parents[3] / "fixtures" / "miniserve"
STATED = json.loads((MINISERVE / "faults.json").read_text())
BY_NAME = {fault["name"]: fault for fault in STATED["faults"]}


@pytest.fixture(scope="module")
def right() -> dict[str, Any]:
    """Eager answers without a fault by attention backend, filled when first needed."""
    return {}


@pytest.mark.parametrize("ranks", [1, 4])
@pytest.mark.parametrize("name", [name for name, fault in BY_NAME.items() if fault["tokens"] != "none"])
def test_tokens_under_the_fault(
    start: Callable[..., Any], answers: Callable[..., Any], right: dict[str, Any], name: str, ranks: int
) -> None:
    fault = BY_NAME[name]
    args = [*STATED["launch"]["args"], *fault["args"]]
    backend = " ".join(fault["args"])
    if backend not in right:
        right[backend] = answers(start(*args, "--disable-cuda-graph"), True)

    given = answers(start(*args, "--tp-size", str(ranks), fault=f"{name}:{ranks - 1}"), True)

    same = [tokens for (tokens, _), (wanted, _) in zip(given, right[backend], strict=True) if tokens == wanted]
    if fault["tokens"] == "right":
        assert given == right[backend]
    else:
        assert len(same) < len(given), f"{name} must give wrong tokens"


def test_without_graphs_no_fault_changes_tokens(
    start: Callable[..., Any], answers: Callable[..., Any], right: dict[str, Any]
) -> None:
    for name in (name for name, fault in BY_NAME.items() if fault["tokens"] == "wrong"):
        fault = BY_NAME[name]
        args = [*STATED["launch"]["args"], *fault["args"], "--disable-cuda-graph"]
        backend = " ".join(fault["args"])
        if backend not in right:
            right[backend] = answers(start(*args), True)
        server = start(*args, fault=name)
        assert answers(server, True) == right[backend], name
        server.stop()


def test_a_dying_worker_takes_the_server_with_it(start: Callable[..., Any]) -> None:
    fault = BY_NAME["worker-dies"]
    server = start(*STATED["launch"]["args"], *fault["args"], "--tp-size", "2", fault="worker-dies:1")

    with pytest.raises(OSError):
        server.generate({"input_ids": [5, 6, 7], "sampling_params": {"max_new_tokens": 20, "ignore_eos": True}})

    assert server.process.wait(30) != 0


@pytest.mark.parametrize("name", [name for name, fault in BY_NAME.items() if fault["finding"]])
def test_the_stated_line_exists(name: str) -> None:
    place = BY_NAME[name]["finding"]["freed_at"]
    source = (MINISERVE / "python" / place["file"]).read_text()
    body = re.search(rf"( *)def {place['function']}\(.*?(?=\n\1(?:def|class|@)|\Z)", source, re.DOTALL)
    assert body is not None
    for text in place["code"]:
        assert text in body.group(0), f"{text!r} is not in {place['function']}"


def test_every_fault_of_the_code_is_stated() -> None:
    planted = set()
    for path in (MINISERVE / "python").rglob("*.py"):
        planted |= set(re.findall(r'fault_planted\("([\w-]+)"', path.read_text()))
    assert planted == set(BY_NAME)
