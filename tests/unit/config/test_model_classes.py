"""The classes of the target's model and of the draft's, as a checkout's own model configuration names them."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.model_classes import model_classes
from sgl_graph.analyzer.static.config.resolve import resolve

from tests.unit.config import programs

ARGUMENTS = """
    import argparse
    import dataclasses

    @dataclasses.dataclass
    class ServerArgs:
        model_path: str
        speculative_draft_model_path: str = None

        @staticmethod
        def add_cli_args(parser):
            parser.add_argument("--model-path", type=str, required=True)
            parser.add_argument("--speculative-draft-model-path", type=str)

        @classmethod
        def from_cli_args(cls, args):
            return cls(**{field.name: getattr(args, field.name) for field in dataclasses.fields(cls)})

    def prepare_server_args(argv):
        parser = argparse.ArgumentParser()
        ServerArgs.add_cli_args(parser)
        return ServerArgs.from_cli_args(parser.parse_args(argv))
"""
MODEL = """
    class Config:
        def __init__(self, architectures):
            self.architectures = architectures

    class ModelConfig:
        def __init__(self, path, is_draft_model):
            names = ["Big"] if path == "m" else ["Small"]
            self.hf_config = Config(names)
            if is_draft_model and self.hf_config.architectures[0] == "Big":
                self.hf_config.architectures[0] = "BigNext"

        @staticmethod
        def from_server_args(server_args, model_path=None, is_draft_model=False):
            return ModelConfig(model_path or server_args.model_path, is_draft_model)
"""


@pytest.mark.parametrize(
    ("draft", "expected"),
    [
        ("", {False: "Big"}),
        ("--speculative-draft-model-path m", {False: "Big", True: "BigNext"}),
        ("--speculative-draft-model-path s", {False: "Big", True: "Small"}),
        ("--speculative-draft-model-path somewhere", {False: "Big"}),
    ],
)
def test_the_draft_has_the_class_that_its_configuration_is_given(draft: str, expected: dict[bool, str]) -> None:
    files = {"sglang/srt/server_args.py": ARGUMENTS, "sglang/srt/configs/model_config.py": MODEL}
    arguments = ["--model-path", "m", *draft.split()]
    launch = Launch(arguments, model_config={}, model_configs=lambda path: {} if path == "s" else None)
    configuration = resolve(programs.project(files), launch)
    assert model_classes(configuration) == expected


def test_without_a_configuration_or_a_model_class_nothing_is_known() -> None:
    assert model_classes(None) == {}
    configuration = resolve(programs.project({"sglang/srt/server_args.py": ARGUMENTS}), Launch(["--model-path", "m"]))
    assert model_classes(configuration) == {}
