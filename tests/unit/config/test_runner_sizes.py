"""Decode sizes that a runner's function computes from the arguments, as the oldest releases have it."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.resolve import resolve

from tests.unit.config import programs

FILES = {
    "sglang/srt/server_args.py": """
        import argparse
        import dataclasses

        @dataclasses.dataclass
        class ServerArgs:
            model_path: str
            tp_size: int = 1
            dp_size: int = 1
            enable_dp_attention: bool = False
            disable_cuda_graph: bool = False
            cuda_graph_bs: list = None
            max_running_requests: int = None

            @staticmethod
            def add_cli_args(parser):
                parser.add_argument("--model-path", type=str, required=True)
                parser.add_argument("--tp-size", type=int, default=1)
                parser.add_argument("--dp-size", type=int, default=1)
                parser.add_argument("--enable-dp-attention", action="store_true")
                parser.add_argument("--disable-cuda-graph", action="store_true")
                parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
                parser.add_argument("--max-running-requests", type=int)

            @classmethod
            def from_cli_args(cls, args):
                return cls(**{field.name: getattr(args, field.name) for field in dataclasses.fields(cls)})

        def prepare_server_args(argv):
            parser = argparse.ArgumentParser()
            ServerArgs.add_cli_args(parser)
            return ServerArgs.from_cli_args(parser.parse_args(argv))
    """,
    "sglang/srt/layers/dp_attention.py": """
        _ATTN_TP_SIZE = None

        def get_attention_tp_size():
            assert _ATTN_TP_SIZE is not None, "not initialized"
            return _ATTN_TP_SIZE

        def initialize(size):
            global _ATTN_TP_SIZE
            _ATTN_TP_SIZE = size
    """,
    "sglang/srt/model_executor/cuda_graph_runner.py": """
        from sglang.srt.layers.dp_attention import get_attention_tp_size

        def get_batch_sizes_to_capture(model_runner):
            server_args = model_runner.server_args
            sizes = server_args.cuda_graph_bs
            if sizes is None:
                sizes = [1, 2, 3, 4, 8, 16]
            if max(sizes) > model_runner.req_to_token_pool.size:
                sizes += [model_runner.req_to_token_pool.size]
            if server_args.enable_dp_attention:
                sizes = [bs for bs in sizes if bs % get_attention_tp_size() == 0]
            sizes = [bs for bs in sizes if bs <= model_runner.req_to_token_pool.size]
            return sorted(set(sizes)), []
    """,
}


def resolved(command: str) -> ResolvedConfiguration:
    return resolve(programs.project(FILES), Launch(["--model-path", "m", *command.split()]))


@pytest.mark.parametrize(
    ("command", "sizes", "clamped"),
    [
        ("", (1, 2, 3, 4, 8, 16), None),
        ("--max-running-requests 6", (1, 2, 3, 4, 8, 16), (1, 2, 3, 4, 6)),
        ("--tp-size 4", (1, 2, 3, 4, 8, 16), None),
        ("--tp-size 4 --dp-size 2 --enable-dp-attention", (2, 4, 8, 16), None),
        ("--tp-size 8 --dp-size 2 --enable-dp-attention", (4, 8, 16), None),
        ("--tp-size 4 --dp-size 4 --enable-dp-attention", (1, 2, 3, 4, 8, 16), None),
        ("--disable-cuda-graph", (), None),
    ],
)
def test_the_sizes_are_those_that_the_function_gives(
    command: str, sizes: tuple[int, ...], clamped: tuple[int, ...] | None
) -> None:
    decode = next(bucket for bucket in resolved(command).buckets if bucket.phase == "decode")
    assert (decode.sizes, decode.clamped) == (sizes, clamped)
    assert not sizes or (decode.source is not None and decode.source.qualname.endswith(":get_batch_sizes_to_capture"))
