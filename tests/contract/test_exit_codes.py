"""Exit codes: 1 means a finding and nothing else, and every other outcome has a number of its own."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from sgl_graph.analyzer import errors
from sgl_graph.cli.exits import ExitCode, guarded

from tests.contract.command_line import COMMANDS, call, patched_arguments

SERVING = ("--", "python", "-m", "sglang.launch_server", "--model-path", "m")


def test_the_numbers() -> None:
    promised = {
        "DONE": 0,
        "FINDING": 1,
        "USAGE": 2,
        "UNDECIDED": 3,
        "HOST": 4,
        "ARCHIVE": 5,
        "BUG": 70,
        "INTERRUPTED": 130,
    }
    assert {code.name: int(code) for code in ExitCode} == promised


def error_classes() -> list[type[errors.SglGraphError]]:
    found: list[type[errors.SglGraphError]] = []
    stack = [errors.SglGraphError]
    while stack:
        found += (below := stack.pop().__subclasses__())
        stack += below
    return sorted(found, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_no_error_of_ours_exits_as_a_finding(
    error: type[errors.SglGraphError], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each exits with its documented number, says its message once, and gives its hint."""

    def fail() -> None:
        raise error("what happened", hint="what to do")

    code = guarded(fail)
    assert code in {int(ExitCode.USAGE), int(ExitCode.HOST), int(ExitCode.ARCHIVE)}
    assert capsys.readouterr().err == "error: what happened\nhint: what to do\n"


def raising(error: BaseException) -> int:
    def fail() -> None:
        raise error

    return guarded(fail)


def test_a_bug_is_never_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(ZeroDivisionError("division by zero")) == 70
    said = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in said
    report = Path(said.partition("the traceback is in ")[2].strip())
    assert "ZeroDivisionError" in report.read_text("utf-8")
    report.unlink()


def test_an_interruption() -> None:
    assert raising(KeyboardInterrupt()) == 130


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(errno.EPIPE, "closed"), 0)])
def test_what_ends_a_command_is_no_finding_under_the_framework_either(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The framework has exit codes of its own for both, and 1 among them."""
    app = typer.Typer()

    @app.command()
    def end() -> None:
        raise error

    with patched_arguments():
        assert guarded(app) == code
    assert capsys.readouterr().err.strip() == ("error: interrupted" if code == 130 else "")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EMFILE])
def test_what_the_host_refuses_is_the_hosts(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(OSError(number, "refused", "/some/file")) == 4
    assert capsys.readouterr().err == "error: /some/file: refused\n"


def test_a_file_that_is_missing_unasked_is_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert raising(FileNotFoundError(errno.ENOENT, "missing", "/some/file")) == 70
    Path(capsys.readouterr().err.partition("the traceback is in ")[2].strip()).unlink()


def test_a_finding_stays_one() -> None:
    app = typer.Typer()

    @app.command()
    def find() -> None:
        raise typer.Exit(int(ExitCode.FINDING))

    with patched_arguments():
        assert guarded(app) == 1


def test_an_exit_that_carries_text_is_a_usage_error() -> None:
    assert raising(SystemExit("text")) == 2
    assert raising(SystemExit(None)) == 0


def test_a_reader_that_goes_away_is_no_finding() -> None:
    """`sgl-graph --help | head -1`, with a pipe that is closed before anything is written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sgl_graph.cli", "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(60), said) == (0, "")


def explained(redirection: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    line = f"exec {shlex.quote(sys.executable)} -m sgl_graph.cli explain SGG004 {redirection}"
    env = {**os.environ, **environment}
    return subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, env=env, check=False)


def test_a_closed_stdout_swallows_the_report() -> None:
    done = explained(">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_full_disk_under_the_report_is_the_hosts() -> None:
    done = explained(">/dev/full")
    assert (done.returncode, done.stderr) == (4, "error: No space left on device\n")


def test_a_poor_encoding_gets_escapes() -> None:
    program = "from sgl_graph.cli import console; console.prepare_streams(); console.report('a \u2014 b')"
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, env=env, check=False)
    assert (done.returncode, done.stdout) == (0, b"a \\u2014 b\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_a_usage_error(command: str) -> None:
    answer = call(command, "--no-such-option")
    assert answer.code == 2
    assert "--no-such-option" in answer.stderr
    assert answer.stdout == ""


def test_who_put_the_command_where_it_belongs_is_not_told_to() -> None:
    assert "hint" not in call("preflight", "--no-such-option", *SERVING).stderr
    assert "hint" not in call("reconcile", "--no-such-option").stderr


def test_no_command_and_an_unknown_command() -> None:
    assert call().code == 2
    assert call("frobnicate").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("preflight", "--checkout", "{tmp}/nothing", *SERVING), 2, "no such folder"),
        (("preflight", "--checkout", "{tmp}", *SERVING), 2, "holds neither python/sglang/srt nor sglang/srt"),
        (("run", "--out", "{tmp}", "--checkout", "{tmp}", *SERVING), 2, "{tmp}"),
        (("run", *SERVING), 2, "--out"),
        (("run", "--out", "", *SERVING), 2, "an empty path"),
        (("run", "--out", "{tmp}/x/y", *SERVING), 2, "there is no folder {tmp}/x"),
        (("run", "--out", "{tmp}/x/y", "--program", "--", "python", "-c", "1"), 2, "there is no folder {tmp}/x"),
        (("run", "--out", "/proc/x", "--program", "--", "python", "-c", "1"), 2, "/proc/x: this folder cannot be made"),
        (("reconcile", "{tmp}/nothing"), 5, "{tmp}/nothing"),
        (("reconcile", "{tmp}"), 5, "{tmp}"),
        (("reconcile", "{tmp}", "--recompute", "--fail-on", "FAIL"), 2, "--fail-on"),
        (("reconcile", "{tmp}", "--in-place"), 2, "--recompute"),
        (("export", "{tmp}/nothing", "-o", "{tmp}/export.zip"), 5, "{tmp}/nothing"),
        (("diff", "{tmp}/a.json", "{tmp}/b.json"), 2, "{tmp}/a.json"),
        (
            ("preflight", "-o", "{tmp}/none/map.json", "--checkout", "{tmp}", *SERVING),
            2,
            "there is no folder {tmp}/none",
        ),
        (("preflight", "--graph", "{tmp}", "--checkout", "{tmp}", *SERVING), 2, "{tmp} is a folder"),
        (("diff", "-o", "{tmp}", "--force", "a.json", "b.json"), 2, "{tmp} is a folder"),
        (("reconcile", "-o", "{tmp}/none/x", "{tmp}"), 2, "there is no folder {tmp}/none"),
        (("reconcile", "-o", "{tmp}", "--force", "{tmp}"), 2, "{tmp} is a folder"),
        (("reconcile", "--jobs", "0", "{tmp}"), 2, "--jobs"),
        (("reconcile", __file__), 5, "a file, and an archive is a folder"),
        (("export", "{tmp}", "-o", "{tmp}", "--force"), 2, "{tmp} is a folder"),
        (("run", "--out", "{tmp}/x", "--program", "--dry-run", "--", "python", "-c", "1"), 2, "--dry-run"),
        (("run", "--out", "{tmp}/x", "--program", "--traffic", "t", "--", "python", "-c", "1"), 2, "--traffic"),
        (("run", "--out", "{tmp}/x", "--start-timeout", "-1", *SERVING), 2, "--start-timeout"),
        (("run", "--out", "{tmp}/x", "--request-timeout", "0", *SERVING), 2, "--request-timeout"),
        (("run", "--out", "{tmp}/x", "--budget", "0", *SERVING), 2, "--budget"),
        (("explain", "SGG999999"), 2, "'SGG999999' is no code, class, verdict or kind of drift"),
        (
            ("preflight", "python", "-m", "sglang.launch_server"),
            2,
            "hint: the serving command stands last, behind --\n",
        ),
        (("run", "--out", "{tmp}/x"), 2, "\nhint: the serving command stands last"),
        (("doctor", "--python", "{tmp}/no-python"), 4, "a run on a GPU needs what fails here; preflight, "),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done(arguments: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    """One clear error on stderr that names what is wrong, and the number that goes with it; nothing is left behind."""
    before = sorted(tmp_path.iterdir())
    answer = call(*(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))
    assert answer.code == code, answer
    assert said.replace("{tmp}", str(tmp_path)) in answer.stderr + (answer.stdout if code == 4 else "")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.timeout(60)
@pytest.mark.parametrize("option", ["--map", "--traffic"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "missing"])
def test_what_run_reads_is_a_plain_file(option: str, kind: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to would hang it for ever."""
    given = tmp_path / "given"
    if kind == "pipe":
        os.mkfifo(given)
    elif kind == "folder":
        given.mkdir()
    (tmp_path / "map.json").write_text('{"schema": "sgl-graph.path-map/1"}')
    maps = [] if option == "--map" else ["--map", str(tmp_path / "map.json")]
    checkout = Path(__file__).parents[2] / "fixtures" / "miniserve"
    answer = call(
        "run", "--out", str(tmp_path / "out"), "--checkout", str(checkout), *maps, option, str(given), *SERVING
    )
    assert (answer.code, answer.stdout) == (2, "")
    assert f"error: {option} {given}: " in answer.stderr and "hint: " in answer.stderr
    assert not (tmp_path / "out").exists()
