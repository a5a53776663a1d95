"""Declarations only."""

import argparse


def add_cli_args(parser: argparse.ArgumentParser) -> None:
    """The arguments that the fake understands."""
    parser.add_argument("--model-path", required=True)
    parser.add_argument("--device", default="emulated")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=30000)
    parser.add_argument("--tp-size", type=int, default=1)
    parser.add_argument("--lora-paths", nargs="*", default=[])
    parser.add_argument("--disable-cuda-graph", action="store_true")
    parser.add_argument("--decode-log-interval", type=int, default=40)
