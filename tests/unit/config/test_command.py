"""Commands parsed by a small server's own declarations, and what is refused with which place."""

from __future__ import annotations

from typing import Any

import pytest
from sgl_graph.analyzer.errors import CommandInvalid
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.device import parse_device
from sgl_graph.analyzer.static.config.inputs import Launch, parse_assumptions
from sgl_graph.analyzer.static.config.protocol import Source
from sgl_graph.analyzer.static.config.resolve import resolve

from tests.unit.config import programs

SERVER = """
import argparse
import dataclasses
from typing import List, Optional

import torch

BACKENDS = ["triton", "fa3"]


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return value


class Renamed(argparse.Action):
    def __init__(self, option_strings, dest, new_flag=None, nargs=0, **kwargs):
        self.new_flag = new_flag
        super().__init__(option_strings, dest, nargs=nargs, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, "disable_graph", True)


@dataclasses.dataclass
class ServerArgs:
    model_path: str
    backend: Optional[str] = None
    max_bs: Optional[int] = None
    sizes: Optional[List[int]] = None
    disable_graph: bool = False
    overlap: bool = True

    def __post_init__(self):
        if self.backend is None:
            self.backend = "fa3" if torch.cuda.get_device_capability()[0] == 9 else "triton"
        if self.disable_graph and self.sizes:
            raise ValueError("sizes need graphs")
        if self.max_bs is None:
            self.max_bs = 8
        if self.sizes is None:
            self.sizes = self._generate()

    def _generate(self):
        return [b for b in (1, 2, 4, 8, 16) if b <= self.max_bs]

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str, required=True)
        parser.add_argument("--backend", type=str, choices=BACKENDS, default=ServerArgs.backend)
        parser.add_argument("--max-bs", type=positive, default=ServerArgs.max_bs)
        parser.add_argument("--sizes", type=int, nargs="+")
        parser.add_argument("--disable-graph", action="store_true")
        parser.add_argument("--no-graph", action=Renamed, dest="no_graph", new_flag="--disable-graph")
        parser.add_argument("--overlap", action=argparse.BooleanOptionalAction, default=True)
        parser.add_argument("--config", type=str)

    @classmethod
    def from_cli_args(cls, args):
        names = [field.name for field in dataclasses.fields(cls)]
        return cls(**{name: getattr(args, name) for name in names})


def prepare_server_args(argv):
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    return ServerArgs.from_cli_args(parser.parse_args(argv))
"""


def launch(
    *arguments: str, device: str | None = "h200", yaml: Any = None, assume: tuple[str, ...] = ()
) -> ResolvedConfiguration:
    project = programs.project({"sglang/srt/server_args.py": SERVER})
    return resolve(
        project,
        Launch(
            ["--model-path", "m", *arguments],
            device=parse_device(device) if device else None,
            read_yaml=lambda path: yaml,
            assumptions=parse_assumptions(assume),
        ),
    )


def entry(configuration: ResolvedConfiguration, name: str) -> Any:
    return next(item for item in configuration.entries if item.name == name)


def test_flags_defaults_and_what_resolution_computes() -> None:
    found = launch("--max-bs=4", "--no-overlap")
    assert found.starts.value
    assert (entry(found, "max_bs").value, entry(found, "max_bs").source) == (4, Source.FLAG)
    assert entry(found, "overlap").value is False
    assert entry(found, "sizes").value == [1, 2, 4]
    assert "flag:max_bs" in entry(found, "sizes").depends
    assert (entry(found, "disable_graph").value, entry(found, "disable_graph").source) == (False, Source.DEFAULT)


def test_an_automatic_choice_stays_a_prediction() -> None:
    found = entry(launch(), "backend")
    assert found.source is Source.UNRESOLVED and found.automatic and found.predicted == "fa3" and found.value is None
    assert found.decided_by.file == "sglang/srt/server_args.py" and found.confirmed_by is None
    assert entry(launch(device="a100"), "backend").predicted == "triton"


def test_an_assignment_decides_and_not_the_setattr_that_carries_it_out() -> None:
    guarded = SERVER.replace(
        "    def __post_init__(self):",
        "    def __setattr__(self, name, value):\n        object.__setattr__(self, name, value)\n\n    def __post_init__(self):",
    )
    assert guarded != SERVER
    project = programs.project({"sglang/srt/server_args.py": guarded})
    found = resolve(project, Launch(["--model-path", "m", "--max-bs", "4"], device=parse_device("h200")))
    decided = entry(found, "sizes").decided_by
    assert "self.sizes" in guarded.splitlines()[decided.line - 1]
    assert decided.qualname.endswith("ServerArgs.__post_init__")


def test_without_a_device_the_choice_is_open() -> None:
    found = entry(launch(device=None), "backend")
    assert found.source is Source.UNRESOLVED and found.predicted is None and "device" in found.depends


def test_an_assumption_settles_and_is_shown() -> None:
    found = entry(launch(assume=("backend=triton",)), "backend")
    assert (found.value, found.source) == ("triton", Source.ASSUMPTION)


def test_an_unknown_flag_names_the_nearest_declaration() -> None:
    with pytest.raises(CommandInvalid, match="declares no argument --max-batch") as caught:
        launch("--max-batch", "4")
    line = (
        SERVER.splitlines().index('        parser.add_argument("--max-bs", type=positive, default=ServerArgs.max_bs)')
        + 1
    )
    assert f"--max-bs (sglang/srt/server_args.py:{line})" in str(caught.value.hint)


def test_a_misspelled_beginning_of_a_flag_names_the_flag() -> None:
    """Of the whole flag it is further away than others are."""
    with pytest.raises(CommandInvalid, match="declares no argument --diss") as caught:
        launch("--diss")
    assert "--disable-graph" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--backend", "fa4"), "'fa4' is not one of fa3, triton"),
        (("--sizes", "x"), "'x' is no int value"),
        (("--max-bs",), "--max-bs needs a value"),
        (("--disable-graph=1",), "takes no value"),
        (("--disable-graph", "stray"), "unexpected argument stray"),
    ],
)
def test_what_the_declarations_refuse_is_an_error_with_their_place(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(CommandInvalid, match=message):
        launch(*arguments)


def test_a_prefix_means_its_only_flag() -> None:
    assert entry(launch("--max", "2"), "max_bs").value == 2


def test_a_converter_that_refuses_means_that_the_server_does_not_start() -> None:
    found = launch("--max-bs", "0")
    assert not found.starts.value and "must be positive" in found.starts.why
    assert (
        found.starts.file == "sglang/srt/server_args.py"
        and "must be positive" in SERVER.splitlines()[found.starts.line - 1]
    )


def test_a_check_that_refuses_means_that_the_server_does_not_start() -> None:
    found = launch("--disable-graph", "--sizes", "1")
    assert not found.starts.value and found.starts.why == "ValueError: sizes need graphs"


def test_an_action_of_the_checkout_is_followed() -> None:
    assert entry(launch("--no-graph"), "disable_graph").value is True


def test_a_configuration_file_stands_behind_the_command() -> None:
    found = launch(
        "--max-bs", "2", "--config", "c.yaml", yaml={"max-bs": 8, "backend": "triton", "disable_graph": True}
    )
    assert entry(found, "max_bs").value == 2 and entry(found, "backend").value == "triton"
    assert entry(found, "disable_graph").value is True


def test_a_configuration_file_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(CommandInvalid, match="no such file"):
        launch("--config", "c.yaml")


def test_questions_change_nothing() -> None:
    found = launch()
    before = entry(found, "max_bs").value
    for _ in range(2):
        assert found.call("sglang.srt.server_args:positive", ("3",)).constant == 3  # type: ignore[union-attr]
        assert found.field("sglang.srt.server_args:ServerArgs", "max_bs").constant == before  # type: ignore[union-attr]
    assert found.field("sglang.srt.server_args:Renamed", "max_bs") is None
    assert found.environment("NOWHERE").constants == (None,)
    assert found.module_attribute("sglang.srt.server_args", "BACKENDS").constant == ("triton", "fa3")  # type: ignore[union-attr]
    assert found.call("sglang.srt.server_args:nothing") is None
