"""`preflight` on the small serving checkout: formats, exit codes, bad input."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
from sgl_graph.analyzer.records.pathmap import PathMap

from .conftest import COMMAND, MINISERVE, Outcome

Program = Callable[..., Outcome]
AT = ("--checkout", str(MINISERVE), "--jobs", "1")


def made(outcome: Outcome) -> PathMap:
    assert outcome.code == 0, outcome.err
    return PathMap.model_validate_json(outcome.out)


def test_the_map_names_the_paths_their_keys_and_an_unbroken_chain(program: Program) -> None:
    found = made(program("preflight", *AT, "--format", "json", "--", *COMMAND))
    paths = {path.name: path for path in found.paths}
    decode = paths["target:decode"]
    assert (decode.runner, decode.backend) == ("DecodeCudaGraphRunner", "FullCudaGraphBackend")
    assert (decode.reachable, decode.trigger, decode.inspectability) == ("yes", "startup", "lifetime-inspectable")
    assert (decode.label.key, decode.label.expression) == ("ShapeKey(size, variant_label)", "shape_key")
    assert decode.label.buckets == (1, 2, 4, 8)
    chain = [ref.qualname.rpartition(":")[2] for ref in decode.chain]
    assert chain[0] == "run_scheduler_process"
    assert chain[-2:] == ["DecodeCudaGraphRunner.capture_one_shape", "FullCudaGraphBackend.capture_one"]
    for ref in decode.chain:
        text = (MINISERVE / "python" / ref.file).read_text().splitlines()
        assert 0 < ref.line <= len(text)
    assert "target:decode" in found.labels
    assert {label for item in found.traffic for label in item.labels} == set(found.labels)


def test_graphs_off_leave_nothing_reachable(program: Program) -> None:
    found = made(program("preflight", *AT, "--format", "json", "--", *COMMAND, "--disable-cuda-graph"))
    reachable = [
        s.id for s in found.sites if s.reachable != "no" and s.role in ("capture", "replay") and "Graph" in s.api
    ]
    assert reachable == []
    assert [path.name for path in found.paths if path.reachable == "yes"] == []


def test_two_runs_differ_in_their_statistics_only(program: Program) -> None:
    first, second = (program("preflight", *AT, "--format", "json", "--", *COMMAND) for _ in range(2))
    bodies = [json.loads(outcome.out) for outcome in (first, second)]
    for body in bodies:
        assert body.pop("stats")["seconds"] >= 0
    assert json.dumps(bodies[0]) == json.dumps(bodies[1])


def test_the_table_fits_a_hundred_columns_and_has_no_colour(program: Program) -> None:
    outcome = program("preflight", *AT, "-v", "--", *COMMAND)
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 100
    # What does not fit its line goes on below it, further in.
    assert not [line for line in outcome.out.splitlines() if line.startswith("sglang/")]
    assert "\x1b" not in outcome.out
    assert re.search(r"^target:decode +yes +lifetime-inspectable +start-up +1 2 4 8$", outcome.out, re.MULTILINE)


@pytest.mark.parametrize("format_", ["markdown", "sarif", "github"])
def test_other_formats_carry_the_gaps(program: Program, format_: str) -> None:
    outcome = program("preflight", *AT, "--format", format_, "--", *COMMAND)
    assert outcome.code == 0
    assert "SGG042" in outcome.out
    if format_ == "sarif":
        body = json.loads(outcome.out)
        rules = {rule["id"] for rule in body["runs"][0]["tool"]["driver"]["rules"]}
        assert {result["ruleId"] for result in body["runs"][0]["results"]} == rules
    if format_ == "github":
        assert all(line.startswith("::") for line in outcome.out.splitlines())


def test_the_graph_file_is_node_link_json_or_dot(program: Program, tmp_path: Path) -> None:
    for name in ("slice.json", "slice.dot"):
        assert program("preflight", *AT, "--graph", str(tmp_path / name), "--", *COMMAND).code == 0
    graph = nx.node_link_graph(json.loads((tmp_path / "slice.json").read_text()), edges="edges")
    entry = "sglang.srt.managers.scheduler:run_scheduler_process"
    assert any(name.endswith("FullCudaGraphBackend.capture_one") for name in nx.descendants(graph, entry))
    assert (tmp_path / "slice.dot").read_text().startswith("digraph paths {")


def test_an_output_is_never_overwritten_unless_forced(program: Program, tmp_path: Path) -> None:
    target = tmp_path / "map.json"
    target.write_text("mine")
    refused = program("preflight", *AT, "-o", str(target), "--", *COMMAND)
    assert (refused.code, target.read_text()) == (2, "mine")
    assert "--force" in refused.err
    assert program("preflight", *AT, "-o", str(target), "--force", "--", *COMMAND).code == 0
    assert target.read_text() != "mine"


def test_strict_and_baseline_decide_the_exit_code(program: Program, tmp_path: Path) -> None:
    base = tmp_path / "base.json"
    assert program("preflight", *AT, "--format", "json", "-o", str(base), "--", *COMMAND).code == 0
    assert program("preflight", *AT, "--baseline", str(base), "--", *COMMAND).code == 0
    changed = program("preflight", *AT, "--baseline", str(base), "--", *COMMAND, "--cuda-graph-max-bs-decode", "4")
    assert changed.code == 1
    assert "target:decode" in changed.err
    assert program("preflight", *AT, "--strict", "--", *COMMAND).code == 3
    assert program("preflight", *AT, "--baseline", str(tmp_path / "none.json"), "--", *COMMAND).code == 2


# -- diff


def test_diff_of_two_maps_and_of_two_checkouts(program: Program, checkout: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    program("preflight", *AT, "--format", "json", "-o", str(one), "--", *COMMAND)
    program("preflight", *AT, "--format", "json", "-o", str(two), "--", *COMMAND, "--disable-cuda-graph")
    assert program("diff", str(one), str(one)) == (0, "no difference\n", "")
    changed = program("diff", str(one), str(two))
    assert changed.code == 1
    assert "- path: target:decode:DecodeCudaGraphRunner:FullCudaGraphBackend" in changed.out
    backend = next(checkout.rglob("full_cuda_graph_backend.py"))
    backend.write_text(backend.read_text().replace("self._graphs[shape_key].replay()", "pass"))
    found = program("diff", str(MINISERVE), str(checkout), "--", *COMMAND)
    assert found.code == 1
    assert "- site: replay:full_cuda_graph_backend.FullCudaGraphBackend.replay" in found.out
    assert program("diff", str(MINISERVE), str(checkout)).code == 2


# -- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--checkout", "/nowhere"), "no such folder"),
        (("--checkout", str(Path(__file__))), "not a folder"),
        (("--checkout", str(Path(__file__).parent)), "holds neither"),
        ((*AT, "--device", "h2000"), "unknown device"),
        ((*AT, "--model-config", "/nowhere.json"), "No such file"),
        ((*AT, "--assume", "nothing"), "not an assumption"),
        ((*AT, "--env", "nothing"), "not an assignment"),
    ],
)
def test_a_bad_option_is_one_clear_error(program: Program, arguments: tuple[str, ...], words: str) -> None:
    outcome = program("preflight", *arguments, "--", *COMMAND)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("error:") == 1
    assert words in outcome.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("python", "train.py"), "not a serving command"),
        (("sglang", "bench"), "not a serving command"),
        ((*COMMAND, "--cuda-graph-max-bss", "4"), "--cuda-graph-max-bs"),
    ],
)
def test_a_bad_command_is_one_clear_error(program: Program, command: tuple[str, ...], words: str) -> None:
    outcome = program("preflight", *AT, "--", *command)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.count("error:") == 1
    assert words in outcome.err


def test_files_that_cannot_be_read_are_records_not_errors(program: Program, checkout: Path) -> None:
    srt = next(checkout.rglob("srt"))
    (srt / "half.py").write_text("import torch\n\ndef f(:\n    graph = torch.cuda.CUDAGraph(\n")
    (srt / "latin.py").write_bytes(b"# caf\xe9\nimport torch\ngraph = torch.cuda.CUDAGraph()\n")
    (srt / "zeros.py").write_bytes(b"import torch\nx = torch.cuda.CUDAGraph()\0\n")
    (srt / "deep.py").write_text("import torch\nx = " + "(" * 3000 + "torch.cuda.CUDAGraph()" + ")" * 3000)
    os.mkfifo(srt / "pipe.py")
    (srt / "huge.py").write_bytes(b"x = 'CUDAGraph'\n" + b"# filler\n" * (6 << 20))
    (srt / "loop").symlink_to(srt)
    (srt / "gone.py").symlink_to(srt / "nowhere.py")
    outcome = program("preflight", "--checkout", str(checkout), "--jobs", "1", "--format", "json", "--", *COMMAND)
    found = made(outcome)
    lost = {"half.py", "latin.py", "zeros.py", "deep.py", "pipe.py", "huge.py", "gone.py"}
    assert {name.rpartition("/")[2] for name in found.problems} == lost
    assert all(found.problems.values())
    assert "target:decode" in {path.name for path in found.paths}
    assert any(gap.code == "SGG061" and "half.py" in gap.text for gap in found.gaps)


def test_a_configuration_that_the_checkout_rejects_does_not_start(program: Program, checkout: Path) -> None:
    arguments = next(checkout.rglob("server_args.py"))
    text = arguments.read_text()
    head = "    def __post_init__(self):\n"
    assert head in text
    rejecting = "        if self.disable_cuda_graph:\n            raise ValueError('graphs are a must')\n"
    arguments.write_text(text.replace(head, head + rejecting))
    line = arguments.read_text().split("graphs are a must")[0].count("\n") + 1
    at = ("--checkout", str(checkout), "--jobs", "1", "--format", "json")
    outcome = program("preflight", *at, "--", *COMMAND, "--disable-cuda-graph")
    found = PathMap.model_validate_json(outcome.out)
    assert outcome.code == 2
    assert (found.starts.value, found.starts.line) == ("no", line)
    assert "graphs are a must" in found.starts.why
    assert found.paths == () and all(site.reachable == "no" for site in found.sites)
    assert [gap.code for gap in found.gaps] == ["SGG060"]
    assert made(program("preflight", *at, "--", *COMMAND)).starts.value == "yes"


def test_resolve_asks_the_serving_parser_and_confirms_nothing(program: Program) -> None:
    serve = (sys.executable, "-m", "sglang.launch_server", "--model-path", str(MINISERVE / "models" / "tiny-moe"))
    emulated = ("--env", f"PYTHONPATH={MINISERVE.parent / 'emulated'}")
    found = made(program("preflight", *AT, *emulated, "--resolve", "--format", "json", "--", *serve))
    values = {entry.name: entry for entry in found.config}
    assert (values["attention_backend"].source, values["attention_backend"].predicted) == ("unresolved", "paged")
    assert all(entry.confirmed_by is None for entry in found.config)


def test_resolve_says_what_the_parser_said(program: Program) -> None:
    serve = (sys.executable, "-m", "sglang.launch_server", "--model-path", "/nowhere")
    outcome = program("preflight", *AT, "--resolve", "--", *serve)
    assert outcome.code == 2
    assert "the serving environment's parser failed" in outcome.err
