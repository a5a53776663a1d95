"""Options that cannot be used are refused before any work; what is printed can be followed."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sgl_graph.analyzer.records.pathmap import PathMap

from tests.functional.preflight.conftest import COMMAND, MINISERVE, Outcome

Program = Callable[..., Outcome]
ON = ("preflight", "--checkout", str(MINISERVE), "--device", "cuda:sm90")

_INTERRUPTED = """
import sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Stop())
from sgl_graph.cli.app import main
sys.argv = ["sgl-graph", "--version"]
main()
"""


def next_line(outcome: Outcome) -> str:
    (line,) = [line for line in outcome.err.splitlines() if line.startswith("next: ")]
    return line.removeprefix("next: ")


@pytest.mark.parametrize("name", ["typer", "rich.console", "sgl_graph.cli.exits", "sgl_graph.cli.explain"])
def test_an_interruption_while_the_program_loads_is_met(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED.format(name=name)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


@pytest.mark.parametrize("option", ["--baseline", "OLD", "NEW"])
@pytest.mark.parametrize("kind", ["pipe", "missing", "other"])
def test_a_map_that_cannot_be_read_is_named_with_its_option(
    program: Program, tmp_path: Path, option: str, kind: str
) -> None:
    file, good = tmp_path / "it", tmp_path / "good.json"
    if kind == "pipe":
        os.mkfifo(file)
    elif kind == "other":
        file.write_text("{}")
    if option == "--baseline":
        outcome = program(*ON, "--baseline", str(file), "--", *COMMAND)
    else:
        program(*ON, "--format", "json", "-o", str(good), "--", *COMMAND)
        outcome = program("diff", *map(str, (file, good) if option == "OLD" else (good, file)))
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {option} {file}: ") or kind == "pipe"
    assert f"{option} {file}" in outcome.err and "hint: " in outcome.err
    assert "reading" not in outcome.err


@pytest.mark.parametrize(
    "text",
    ['{"a":' + "[" * 100_000, '{"a":' + "[" * 100_000 + "]" * 100_000 + "}", '{"a":' + '{"b":' * 400 + "1" + "}" * 401],
    ids=["open", "closed", "objects"],
)
def test_a_model_configuration_that_nests_too_deeply_is_refused(program: Program, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    outcome = program(*ON, "--model-config", str(tmp_path / "config.json"), "--", *COMMAND)
    assert outcome.code == 2
    assert "--model-config" in outcome.err and "nested too deeply" in outcome.err


def test_a_model_configuration_may_hold_infinity_as_those_of_real_models_do(program: Program, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"architectures": ["A"], "time_step_limit": [0.0, Infinity], "num_hidden_layers": 1e400, "x": NaN}'
    )
    outcome = program(*ON, "--model-config", str(config), "--format", "json", "--", *COMMAND)
    assert outcome.code == 0
    made = PathMap.model_validate_json(outcome.out)
    assert not [gap for gap in made.gaps if gap.code == "SGG042"]


def test_a_pipe_is_no_model_configuration(program: Program, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    outcome = program(*ON, "--model-config", str(tmp_path / "config.json"), "--", *COMMAND)
    assert outcome.code == 2
    assert "no plain file" in outcome.err


@pytest.mark.parametrize("arguments", [("--tp-size", "-3"), ("--tp-size", "0")])
def test_less_than_one_rank_does_not_start(program: Program, arguments: tuple[str, ...]) -> None:
    outcome = program(*ON, "--format", "json", "--", *COMMAND, *arguments)
    assert outcome.code == 2
    made = PathMap.model_validate_json(outcome.out)
    assert made.starts.value == "no" and arguments[1] in made.starts.why
    assert not made.paths and not made.labels


def test_one_file_for_report_and_graph_is_refused_at_the_start(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for force in ((), ("--force",)):
        outcome = program(*ON, *force, "-o", "out.json", "--graph", str(tmp_path / "out.json"), "--", *COMMAND)
        assert outcome.code == 2
        assert "--graph" in outcome.err and "reading" not in outcome.err
    assert not (tmp_path / "out.json").exists()


def test_the_next_line_is_a_run_that_takes_the_map(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "a map.json"
    told = next_line(
        program(*ON, "--env", "NOTE=two words", "--format", "json", "-o", str(file), "--", "A=1", *COMMAND)
    )
    words = shlex.split(told)
    assert words == [
        *("sgl-graph", "run", "--out", "run", "--map", str(file), "--checkout", str(MINISERVE)),
        *("--env", "NOTE=two words", "--", "A=1", *COMMAND),
    ]
    without = next_line(program(*ON, "--", *COMMAND))
    assert without.startswith("add --format json -o map.json, then sgl-graph run --out run --map map.json ")


def test_a_command_beside_two_maps_is_refused(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "map.json"
    program(*ON, "--format", "json", "-o", str(file), "--", *COMMAND)
    assert program("diff", str(file), str(file)).code == 0
    for more in (("--", *COMMAND), ("--device", "h200"), ("--env", "A=1")):
        outcome = program("diff", str(file), str(file), *more)
        assert outcome.code == 2
        assert "for checkouts" in outcome.err


def test_arguments_that_could_not_be_read_are_told_with_their_line(program: Program, checkout: Path) -> None:
    (file,) = checkout.rglob("server_args.py")
    lines = file.read_bytes().count(b"\n")
    file.write_bytes(file.read_bytes() + b'x = "caf\xe9"\n')
    outcome = program("preflight", "--checkout", str(checkout), "--device", "cuda", "--", *COMMAND)
    assert outcome.code == 2
    assert "server_args.py could not be read" in outcome.err
    assert f"line {lines + 1}" in outcome.err


def test_counts_of_one_are_singular(program: Program) -> None:
    err = program(*ON, "--", *COMMAND).err
    assert " 1 material gap," in err


def test_without_a_model_the_hint_comes_before_the_work(program: Program, tmp_path: Path) -> None:
    lines = program(*ON, "--", *COMMAND).err.splitlines()
    (told,) = [n for n, line in enumerate(lines) if "--model-config FILE is quicker" in line]
    assert told < lines.index("classifying")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"architectures": ["A"]}))
    assert "is quicker" not in program(*ON, "--model-config", str(config), "--", *COMMAND).err
