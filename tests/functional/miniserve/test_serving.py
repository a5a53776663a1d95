"""The server answers alike whatever serves the batch: graphs or none, either attention, any number of ranks, drafts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest

LORA = ["--lora-paths", "a=adapters/a", "b=adapters/b"]
SMALL = ["--max-running-requests", "4", "--cuda-graph-bs-prefill", "8", "16", "32"]
DRAFT = ["--speculative-algorithm", "STANDALONE", "--speculative-draft-model-path", "models/tiny-draft"]
EAGER = ["--disable-cuda-graph"]


@pytest.fixture(scope="module")
def reference() -> dict[tuple[bool, str], Any]:
    """Eager answers of one rank, filled by the first test that needs them."""
    return {}


@pytest.mark.parametrize(
    "args",
    [
        [*LORA, *SMALL],
        [*LORA, *SMALL, "--tp-size", "4"],
        [*LORA, *SMALL, "--attention-backend", "split"],
        [*LORA, *SMALL, "--lora-backend", "plain"],
        [*LORA, *SMALL, "--cuda-graph-backend-decode", "breakable"],
        [*LORA, *SMALL, "--disable-cuda-graph-padding"],
        [*SMALL, *DRAFT],
        [*SMALL, *DRAFT, "--tp-size", "2"],
        [*SMALL, *DRAFT, *EAGER],
    ],
    ids=[
        "graphs",
        "ranks",
        "split",
        "plain",
        "breakable-decode",
        "no-padding",
        "drafts",
        "drafts-ranks",
        "drafts-eager",
    ],
)
def test_answers_do_not_depend_on_how_the_batch_is_served(
    start: Callable[..., Any], answers: Callable[..., Any], reference: dict[tuple[bool, str], Any], args: list[str]
) -> None:
    adapters = "--lora-paths" in args
    backend = "split" if "split" in args else "paged"
    key = (adapters, backend)
    if key not in reference:
        plain = start(*(LORA if adapters else []), *SMALL, *EAGER, "--attention-backend", backend)
        reference[key] = answers(plain, adapters)
        plain.stop()
    server = start(*args)

    given = answers(server, adapters)

    assert given == reference[key], "tokens and log-probabilities must agree bit for bit"


def test_adapters_and_every_layer_matter(start: Callable[..., Any]) -> None:
    server = start(*LORA, *SMALL)
    body = {"input_ids": [5, 6, 7, 8], "sampling_params": {"max_new_tokens": 8, "temperature": 0, "ignore_eos": True}}

    base, first, second = (server.generate({**body, "lora_path": name})["output_ids"] for name in (None, "a", "b"))
    mixed = server.generate({**body, "input_ids": [[5, 6, 7, 8]] * 3, "lora_path": ["b", None, "a"]})

    assert len({tuple(base), tuple(first), tuple(second)}) == 3
    assert [item["output_ids"] for item in mixed] == [second, base, first]


def test_drafts_are_sometimes_accepted(start: Callable[..., Any]) -> None:
    server = start(*SMALL, *DRAFT)
    before = server.get("/get_server_info")["internal_states"][0]["forward_count"]

    server.generate({"input_ids": [5, 6, 7, 8], "sampling_params": {"max_new_tokens": 40, "ignore_eos": True}})

    passes = server.get("/get_server_info")["internal_states"][0]["forward_count"] - before
    assert passes < 40, "a verification that accepts drafts makes more than one token"


def test_the_server_states_its_resolved_arguments(start: Callable[..., Any]) -> None:
    server = start(*LORA, *SMALL, "--tp-size", "2")

    info, model = server.get("/get_server_info"), server.get("/get_model_info")

    assert info["attention_backend"] == "paged" and info["device"] == "emu" and info["tp_size"] == 2
    assert info["max_lora_rank"] == 8
    assert info["cuda_graph_config"]["decode"] == {"backend": "full", "max_bs": 4, "bs": [1, 2, 4]}
    assert info["cuda_graph_config"]["prefill"]["bs"] == [8, 16, 32]
    assert model["vocab_size"] == 128


@pytest.mark.parametrize(
    "body",
    [
        {"text": "hello"},
        {"input_ids": []},
        {"input_ids": [1, 500]},
        {"input_ids": [1], "sampling_params": {"temperature": 1.0}},
        {"input_ids": [1], "lora_path": "nobody"},
        {"input_ids": [1] * 120, "sampling_params": {"max_new_tokens": 20}},
        {"input_ids": [[1], [2]], "lora_path": ["a"]},
    ],
)
def test_a_bad_request_is_refused_and_harms_nobody(
    start: Callable[..., Any], http_error: type[Exception], body: dict[str, Any]
) -> None:
    server = start(*LORA, *SMALL)

    with pytest.raises(http_error, match="400"):
        server.generate(body)

    good = server.generate({"input_ids": [1, 2], "sampling_params": {"max_new_tokens": 3, "ignore_eos": True}})
    assert len(good["output_ids"]) == 3


def test_termination_is_graceful_and_leaves_no_process(start: Callable[..., Any]) -> None:
    server = start(*SMALL, "--tp-size", "4")
    assert len(server.processes()) >= 5

    server.process.terminate()

    assert server.process.wait(30) == 0
    assert server.processes() == []


def test_a_lost_rank_ends_the_server(start: Callable[..., Any]) -> None:
    server = start(*SMALL, "--tp-size", "4")
    launcher = server.process.pid
    rank = next(pid for pid in server.processes() if pid != launcher and "spawn_main" in _command_line(pid))

    os.kill(rank, signal.SIGKILL)

    assert server.process.wait(30) != 0
    deadline = time.monotonic() + 5
    while server.processes() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.processes() == []
    assert "dead" in server.log.read_text() or "sigquit" in server.log.read_text()


def _command_line(pid: int) -> str:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().replace(b"\0", b" ").decode()
