"""Commands and options that other people's scripts rely on: they may be added to, none may go or be renamed."""

from __future__ import annotations

import pytest

from tests.contract.command_line import COMMANDS, call, option_names, shown_options

PROMISED = {
    "preflight": "--checkout --env --model-config --device --assume --resolve --budget --format -o --graph --baseline --strict "
    "--jobs --no-cache --force",
    "run": "--out --checkout --map --env --expect-labels --traffic --budget --skip-eager --skip-ordinary --skip-instrumented "
    "--repeat-reference --control --poison --accept-gaps --allow-busy --dry-run --format --program",
    "reconcile": "--map --checkout --expect-digest --recompute --in-place --work --format -o --fail-on --force",
    "export": "-o --include-outputs --force",
    "diff": "--format -o --force",
    "doctor": "",
    "explain": "",
}
FORMATS = {
    "preflight": ["table", "json", "markdown", "sarif", "github"],
    "run": ["table", "json", "markdown"],
    "reconcile": ["table", "json", "markdown", "csv"],
    "diff": ["table", "json", "markdown"],
}


def test_the_commands_are_those_promised() -> None:
    assert set(COMMANDS) == set(PROMISED)
    listed = call("--help").stdout.partition("Commands:")[2]
    assert [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2] != " "] == list(
        COMMANDS
    )


def test_the_list_of_commands_says_of_each_in_a_whole_sentence_what_it_does() -> None:
    listed = call("--help").stdout.partition("Commands:\n")[2].splitlines()
    assert len(listed) == len(COMMANDS)
    assert all(line.endswith(".") and not line.endswith("..") for line in listed)


@pytest.mark.parametrize("command", PROMISED)
def test_no_promised_option_is_missing(command: str) -> None:
    assert set(PROMISED[command].split()) <= option_names(command)


@pytest.mark.parametrize("command", PROMISED)
def test_every_command_can_be_quiet_and_verbose(command: str) -> None:
    assert {"-q", "-v"} <= option_names(command)


@pytest.mark.parametrize("command", PROMISED)
def test_help_shows_every_option_and_succeeds(command: str) -> None:
    for spelling in ("--help", "-h"):
        answer = call(command, spelling)
        assert (answer.code, answer.stderr) == (0, "")
        assert {name for name in option_names(command) if name.startswith("--")} <= shown_options(answer.stdout)


@pytest.mark.parametrize(("command", "formats"), FORMATS.items(), ids=list(FORMATS))
def test_formats(command: str, formats: list[str]) -> None:
    assert f"--format <{'|'.join(formats)}>" in call(command, "--help").stdout


def test_help_fits_a_terminal() -> None:
    """At the width that a pipe is given, no line is wider than 80 columns."""
    for command in ("", *COMMANDS):
        words = [command] if command else []
        assert max(map(len, call(*words, "--help").stdout.splitlines())) <= 80


@pytest.mark.parametrize("command", ["preflight", "run"])
def test_the_usage_shows_where_the_serving_command_begins(command: str) -> None:
    assert f" {command} [OPTIONS] -- " in call(command, "--help").stdout.splitlines()[0]


def test_version() -> None:
    from importlib.metadata import version

    assert call("--version").stdout == f"sgl-graph {version('sgl-graph')}\n"
