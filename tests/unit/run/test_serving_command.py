"""The serving command is read as the shell and the server's own parser would read it."""

import pytest
from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.serving_command import parse, parse_assignments


def test_assignments_program_and_arguments_are_told_apart() -> None:
    command = parse(["A=1", "B=x=y", "python3.12", "-u", "-X", "dev", "-m", "sglang.launch_server", "--tp-size", "2"])
    assert command.env == {"A": "1", "B": "x=y"}
    assert command.program == ("python3.12", "-u", "-X", "dev", "-m", "sglang.launch_server")
    assert command.arguments == ("--tp-size", "2")
    assert command.entry == "sglang.launch_server"


def test_a_positional_model_of_sglang_serve_becomes_the_flag() -> None:
    command = parse(["sglang", "serve", "/models/x", "--port", "1"])
    assert command.arguments == ("--model-path", "/models/x", "--port", "1")
    assert command.interpreter is None


def test_values_take_the_last_occurrence_and_know_negative_numbers() -> None:
    command = parse(
        ["python", "-m", "sglang.launch_server", "--bs", "1", "2", "--x=-3", "--y", "-1.5", "--flag", "--bs", "4"]
    )
    assert command.values("--bs") == ("4",)
    assert command.value("--x") == "-3"
    assert command.values("--y") == ("-1.5",)
    assert command.values("--flag") == ()
    assert command.values("--absent") is None


def test_without_drops_every_occurrence_with_its_values() -> None:
    command = parse(["python", "-m", "sglang.launch_server", "--bs", "1", "2", "--keep", "3", "--bs=4", "--end"])
    assert command.without("--bs").arguments == ("--keep", "3", "--end")


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        ["A=1"],
        ["python", "server.py"],
        ["python", "-m", "vllm"],
        ["sglang", "generate"],
        ["python", "-m", "sglang.launch_server", "x"],
    ],
)
def test_anything_else_is_refused(tokens: list[str]) -> None:
    with pytest.raises(CommandInvalid):
        parse(tokens)


def test_text_round_trips_through_the_shell() -> None:
    import shlex

    tokens = ["K=a b", "python", "-m", "sglang.launch_server", "--json", '{"a": 1}']
    assert parse(shlex.split(parse(tokens).text())) == parse(tokens)


def test_environment_assignments_must_be_assignments() -> None:
    assert parse_assignments(["A=1", "B="]) == {"A": "1", "B": ""}
    with pytest.raises(CommandInvalid):
        parse_assignments(["A"])
