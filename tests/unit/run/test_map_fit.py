"""A map or a label that cannot be this run's is refused before anything is launched, with what differs."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.label_check import check_labels
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.serving_command import parse
from sgl_graph.runtime.checkout import Location
from sgl_graph.runtime.map_fit import check_fit, command_differences, for_run, map_anew, wanted_options
from sgl_graph.runtime.options import RunOptions

from tests.unit.run.builders import map_view

VIEW = map_view(("target:decode", ["lora", "nolora"], [1, 2]), ("draft:decode", [None], None))
COMMAND = "python -m sglang.launch_server --model-path m --tp-size 2 --trust-remote-code"
OURS, THEIRS = "a" * 64, "b" * 64


def body(**more: Any) -> MapView:
    return MapView({**VIEW.body, **more})


def options(text: str = COMMAND, **more: Any) -> RunOptions:
    return RunOptions(out=Path("out"), command=parse(shlex.split(text)), map_file=Path("m.json"), **more)


@pytest.mark.parametrize("label", ["target:decode/lora", "target:decode/lora@2", "draft:decode@7", "draft:decode"])
def test_labels_of_the_map_are_taken(label: str) -> None:
    assert check_labels([label], VIEW, "--expect-labels") == []


@pytest.mark.parametrize(
    ("label", "nearest"), [("target:decod", "target:decode"), ("draf:decode@4", "draft:decode"), ("zzz:qqqqq", None)]
)
def test_a_runner_and_family_that_the_map_lacks_are_refused(label: str, nearest: str | None) -> None:
    with pytest.raises(ConfigError) as refused:
        check_labels(["target:decode", label], VIEW, "--expect-labels")
    assert refused.value.message.startswith(f"--expect-labels: {label}: the map knows no such runner and family")
    assert (f"the nearest is {nearest}" in refused.value.message) == (nearest is not None)
    assert "draft:decode, target:decode/lora, target:decode/nolora" in (refused.value.hint or "")


def test_variants_and_sizes_that_the_map_does_not_expect_are_told() -> None:
    names = ["target:decode/foo", "target:decode", "target:decode/lora@3", "draft:decode/x", "draft:decode@3"]
    told = ["target:decode only as target:decode/lora, target:decode/nolora"] * 2
    told += ["no such size (it knows 1, 2)", "draft:decode only as draft:decode"]
    assert [doubt.partition("the map expects ")[2] for doubt in check_labels(names, VIEW, "x")] == told


def test_without_a_map_only_the_form_is_checked() -> None:
    assert check_labels(["any:thing"], None, "x") == []
    with pytest.raises(ConfigError, match="is no label"):
        check_labels(["decode"], None, "x")
    with pytest.raises(ConfigError, match="no label at all"):
        check_labels(["any:thing"], map_view(), "x")


@pytest.mark.parametrize(
    "same",
    [
        COMMAND,
        "python3.12 -m sglang.launch_server --tp-size=2 --trust-remote-code --model-path m",
        "/opt/bin/python -u -m sglang.launch_server --model-path x --model-path m --trust-remote-code --tp-size 2 --port 7 --host h",
        "A=1 python -m sglang.launch_server --model-path m --tp-size 2 --trust-remote-code",
    ],
)
def test_a_command_that_means_the_same_is_the_same(same: str) -> None:
    assert command_differences(body(command=shlex.split(same)), parse(shlex.split(COMMAND))) == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (COMMAND.replace("2", "4"), "map: --tp-size 4, this run: --tp-size 2"),
        (f"{COMMAND} --dp-size 2", "map: --dp-size 2, this run: no --dp-size"),
        (COMMAND.replace(" --trust-remote-code", ""), "map: no --trust-remote-code, this run: --trust-remote-code"),
        ("sglang serve m --tp-size 2 --trust-remote-code", "map: sglang serve, this run: sglang.launch_server"),
        ("bash x", "not a serving command"),
    ],
)
def test_what_differs_between_two_commands_is_told(other: str, told: str) -> None:
    differing = command_differences(body(command=shlex.split(other)), parse(shlex.split(COMMAND)))
    assert len(differing) == 1 and told in differing[0]
    with pytest.raises(ConfigError, match=r"m\.json was made for another command: ") as refused:
        check_fit(
            body(command=shlex.split(other)),
            options(accept_gaps=True),
            Location(Path("."), Path("."), "folder"),
            OURS,
            {},
        )
    assert f"sgl-graph preflight --format json -o map.json -- {COMMAND}" in (refused.value.hint or "")


def test_paths_of_one_file_are_one_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m").mkdir()
    monkeypatch.chdir(tmp_path)
    view = body(command=shlex.split(COMMAND.replace("path m", f"path {tmp_path}/m")))
    assert command_differences(view, parse(shlex.split(COMMAND))) == []


def fit(tmp_path: Path, *, digest: str = THEIRS, version: str | None = None, file: str | None = None) -> list[str]:
    """A map of another digest, held against a checkout of release 0.5.20 with one module."""
    (tmp_path / "sglang").mkdir()
    (tmp_path / "sglang" / "version.py").write_text('__version__ = "0.5.20"\n')
    sites = [{"id": "s", "file": file, "line": 1, "reachable": "yes"}] if file else []
    view = body(checkout={"digest": digest, "sglang_version": version}, sites=sites)
    return check_fit(view, options(), Location(tmp_path, tmp_path, "folder"), OURS, {"sglang.srt.x": "d"})


def test_a_map_of_another_release_or_of_files_that_are_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"made from SGLang 0\.5\.21, and this checkout is 0\.5\.20"):
        fit(tmp_path, version="0.5.21")


def test_a_map_of_files_that_are_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"sglang/srt/y\.py, where it found captures, is not in this one"):
        fit(tmp_path, file="sglang/srt/y.py")


@pytest.mark.parametrize("version", [None, "0.5.20", "0.5.20.dev3+gabc"])
def test_a_map_of_an_edited_checkout_is_used_and_told(tmp_path: Path, version: str | None) -> None:
    [doubt] = fit(tmp_path, version=version, file="sglang/srt/x.py")
    assert "coverage derived from it is INCONCLUSIVE" in doubt


@pytest.mark.parametrize("digest", [OURS, "by-hand"])
def test_a_map_of_this_source_is_used_in_silence(tmp_path: Path, digest: str) -> None:
    assert fit(tmp_path, digest=digest, version="0.5.21", file="sglang/srt/y.py") == []


def test_other_variables_are_told() -> None:
    where = Location(Path("."), Path("."), "folder")
    [doubt] = check_fit(body(env={"A": "1", "B": "2"}), options(f"A=1 C=3 {COMMAND}"), where, OURS, {})
    assert doubt.endswith("other variables than this run's: B, C")
    assert check_fit(body(env={"A": "1"}), options(COMMAND, env={"A": "1"}), where, OURS, {}) == []


def test_what_preflight_can_settle_is_a_line_that_can_be_typed() -> None:
    gaps = ["the device is not known: give --device NAME, as in --device h200; open", "injection into x: no"]
    assert wanted_options(gaps) == ["--device NAME"]
    assert for_run(gaps[0]).startswith("the device is not known: give preflight --device NAME")
    run = options(checkout=Path("a b"), env={"K": "v w"})
    assert (
        f"sgl-graph preflight --checkout 'a b' --env 'K=v w' --device NAME --format json -o map.json -- {COMMAND}"
        in map_anew(run, wanted_options(gaps))
    )
    assert "sgl-graph run --map map.json" in map_anew(run)
