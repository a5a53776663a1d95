"""Request sets, graph switches and what a server's log tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from sgl_graph.analyzer.errors import CommandInvalid, ConfigError
from sgl_graph.analyzer.graph_switches import declared_flags, eager_command, enabling_variables
from sgl_graph.analyzer.request_sets import Model, adapters, request_sets
from sgl_graph.analyzer.server_log import batch_sizes, error_in, failure_cause
from sgl_graph.analyzer.serving_command import parse
from sgl_graph.runtime.checkout import Location
from sgl_graph.runtime.model import load_model
from sgl_graph.runtime.options import RunOptions
from sgl_graph.runtime.planning import prepare

MODEL = Model(vocab_size=1000, context_length=64, adapters=("a", "b"))
PREFIX = ["python", "-m", "sglang.launch_server", "--model-path", "m"]

OLD = 'class A:\n    x: int = 0\nparser.add_argument("--disable-cuda-graph", action="store_true")\n'
NEW = """
class ServerArgs:
    cuda_graph_backend_decode: A[str, Arg(help="x")] = None
    cuda_graph_backend_prefill: A[str, Arg(help="x")] = None
    disable_cuda_graph: A[bool, Arg(no_cli=True)] = False
"""


def test_flags_come_from_literals_and_fields_but_not_from_hidden_ones() -> None:
    assert "--disable-cuda-graph" in declared_flags([OLD])
    assert "--cuda-graph-backend-decode" in declared_flags([NEW])
    assert "--disable-cuda-graph" not in declared_flags([NEW])
    assert declared_flags(["def broken("]) == frozenset()


def test_the_eager_command_uses_what_the_checkout_declares() -> None:
    command = parse(PREFIX)
    assert eager_command(command, declared_flags([OLD])).added == ("--disable-cuda-graph",)
    new = eager_command(command, declared_flags([NEW]))
    assert new.added == ("--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled")
    with pytest.raises(CommandInvalid):
        eager_command(command, frozenset())


def test_selectors_of_the_user_go_and_sizes_stay() -> None:
    typed = [
        *PREFIX,
        "--cuda-graph-config",
        '{"decode": {}}',
        "--cuda-graph-bs",
        "1",
        "2",
        "--cuda-graph-backend-decode=full",
    ]
    made = eager_command(parse(typed), declared_flags([NEW]))
    assert made.removed == ("--cuda-graph-backend-decode", "--cuda-graph-config")
    assert made.command.values("--cuda-graph-bs") == ("1", "2")
    assert made.command.values("--cuda-graph-backend-decode") == ("disabled",)
    assert made.command.values("--cuda-graph-config") is None


def test_variables_that_ask_for_graphs_are_known_by_their_name() -> None:
    names = ["SGLANG_VIT_ENABLE_CUDA_GRAPH", "SGLANG_DISABLE_CUDA_GRAPH", "CUDA_VISIBLE_DEVICES"]
    assert enabling_variables(names) == ["SGLANG_VIT_ENABLE_CUDA_GRAPH"]


def test_sets_are_deterministic_and_prompts_differ() -> None:
    traffic = [{"name": "x", "concurrency": 3, "input_len": 5, "output_len": 4, "labels": ["target:decode@4"]}]
    first, second = (request_sets(traffic, MODEL, control=True, budget=None) for _ in range(2))
    assert first.sets == second.sets
    prompts = [tuple(r.input_ids) for s in first.sets if s.purpose != "control" for r in s.requests]
    assert len(set(prompts)) == len(prompts) == 6
    assert all(0 < token < 1000 for prompt in prompts for token in prompt)


def test_the_control_changes_the_batch_and_nothing_else() -> None:
    traffic = [{"name": "many", "concurrency": 3}, {"name": "one", "concurrency": 1}]
    made = request_sets(traffic, MODEL, control=True, budget=None)
    many, one = (next(s for s in made.sets if s.name == f"{name}~control") for name in ("many", "one"))
    assert (many.send, many.requests) == ("single", made.sets[0].requests)
    assert (one.send, len(one.requests), one.requests[0]) == ("together", 4, made.sets[1].requests[0])


def test_the_budget_holds_for_each_launch_and_says_what_it_cost() -> None:
    traffic = [
        {"name": "a", "concurrency": 4, "labels": ["t:decode"]},
        {"name": "b", "concurrency": 4, "labels": ["t:x"]},
    ]
    made = request_sets(traffic, MODEL, control=True, budget=6)
    assert [s.name for s in made.sets] == ["a"]
    assert any("b (t:x) left out" in note for note in made.notes)
    assert any("no control for a" in note for note in made.notes)
    with pytest.raises(ConfigError):
        request_sets(traffic, MODEL, control=False, budget=3)


def test_variants_choose_adapters_and_what_cannot_be_sent_is_said() -> None:
    traffic = [
        {"name": "l", "concurrency": 3, "variant": "lora"},
        {"name": "n", "concurrency": 2, "variant": "nolora"},
        {"name": "m", "concurrency": 3, "variant": "mixed"},
        {"name": "v", "concurrency": 1, "variant": "image", "labels": ["e:vit"]},
    ]
    made = request_sets(traffic, MODEL, control=False, budget=None)
    assert [[r.lora for r in s.requests] for s in made.sets] == [["a", "b", "a"], [None, None], ["a", "b", None]]
    assert any("v (e:vit) not sent" in note for note in made.notes)
    bare = request_sets(traffic[:2], Model(vocab_size=99), control=False, budget=None)
    assert [s.name for s in bare.sets] == ["n"]


def test_prompts_are_cut_to_the_context() -> None:
    made = request_sets([{"name": "x", "input_len": 500, "output_len": 10}], MODEL, control=False, budget=None)
    assert len(made.sets[0].requests[0].input_ids) == 54
    assert any("shortened" in note for note in made.notes)


@pytest.mark.parametrize("field", ["concurrency", "input_len", "output_len"])
@pytest.mark.parametrize("value", [0, -1, "4", True, 1.5])
def test_sizes_must_be_positive_whole_numbers(field: str, value: object) -> None:
    with pytest.raises(ConfigError):
        request_sets([{"name": "x", field: value}], MODEL, control=False, budget=None)


def test_adapters_are_read_in_their_forms() -> None:
    assert adapters(["a=/x", "/y/b", '{"lora_name": "c", "lora_path": "/z"}']) == ("a", "/y/b", "c")


def test_adapters_of_a_map_are_those_that_its_configuration_names() -> None:
    assert adapters([{"lora_name": "a", "lora_path": "/x"}, {"lora_path": "/y"}, "b=/z"]) == ("a", "/y", "b")
    assert adapters({"a": "/x", "b": "/y"}) == ("a", "b")


def test_adapters_and_model_of_a_configuration_file_are_taken_from_the_map(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"vocab_size": 64}')
    known = {"model_path": str(tmp_path), "lora_paths": [{"lora_name": "a", "lora_path": "/x"}]}
    command = parse(["python", "-m", "sglang.launch_server", "--config", "server.yaml"])
    assert load_model(command, {}, known.get).adapters == ("a",)
    given = parse(["python", "-m", "sglang.launch_server", "--lora-paths", "b=/y", "--config", "server.yaml"])
    assert load_model(given, {}, known.get).adapters == ("b",)


SCHEDULER_DIED = """[2026-11-30 10:00:00] server_args=ServerArgs(error=...)
[2026-11-30 10:00:09 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 10, in run
    boot()
  File "/x/sglang/srt/model.py", line 20, in load
    raise ValueError("bad")
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3 GiB

Traceback (most recent call last):
  File "/x/launch_server.py", line 3, in <module>
EOFError
"""


def test_the_cause_is_the_first_exception_with_its_place() -> None:
    cause = failure_cause(SCHEDULER_DIED)
    assert (
        cause
        == "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3 GiB (/x/sglang/srt/model.py:20 in load)"
    )


def test_usage_errors_and_plain_lines_are_causes_too() -> None:
    assert failure_cause("usage: x\nlaunch_server.py: error: unrecognized arguments: --x\n") == (
        "launch_server.py: error: unrecognized arguments: --x"
    )
    assert failure_cause("fine\n[12:00] ERROR: [Errno 98] address already in use\nbye\n") == (
        "ERROR: [Errno 98] address already in use"
    )
    assert failure_cause("one\ntwo\n") == "two"
    assert failure_cause("") is None


@pytest.mark.parametrize(
    "said",
    [
        "server_args=ServerArgs(log_level='error', log_level_http=\"error\")",
        "on_error=None, kill=-9",
        "loading weights",
    ],
)
def test_what_speaks_of_no_error_is_none(said: str) -> None:
    assert error_in(f"[2026-11-30 10:00:00] {said}\n") is None
    assert failure_cause(f"[2026-11-30 10:00:00] {said}\n") == said


@pytest.mark.parametrize(
    "said", ["RuntimeError: boom", "Fatal: x", "error: x", "Killed", "x (out of memory)", "ERROR x"]
)
def test_what_speaks_of_an_error_is_found(said: str) -> None:
    assert error_in(f"[10:00] server_args=ServerArgs(log_level='error')\n[10:01 TP0] {said}\nwaiting\n") == said


def test_batch_sizes_are_read_from_the_log() -> None:
    log = (
        "[x TP0] Prefill batch, #new-seq: 3, #new-token: 9\n"
        "[x TP0] Decode batch, #running-req: 3, #token: 1\n" * 2 + "[x] Decode batch [7], #running-req: 2, ...\n"
    )
    assert batch_sizes(log) == ([3, 2], [3])


@pytest.mark.parametrize(
    ("program", "refused"),
    [(["python", "-I"], True), (["python", "-uS"], True), (["python", "-u"], False), (["python", "-X", "dev"], False)],
)
def test_an_interpreter_that_ignores_the_path_is_refused(tmp_path: Path, program: list[str], refused: bool) -> None:
    command = parse([*program, "-m", "sglang.launch_server", "--model-path", str(tmp_path / "none")])
    location = Location(tmp_path, tmp_path, "folder")
    with pytest.raises(ConfigError, match="ignores PYTHONPATH" if refused else "not on this host"):
        prepare(RunOptions(out=tmp_path / "out", command=command), location, None, inspector="emulated")
