"""The application: gathers the commands, each of which lives in cli/<name>.py and registers itself."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from typing import Annotated

import typer


def build(names: Sequence[str]) -> typer.Typer:
    """The application with these commands."""
    app = typer.Typer(
        name="sgl-graph",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
        ] = False,
    ) -> None:
        """Which CUDA graphs an SGLang configuration captures, what can be proven of each, and were the replays sound."""

    for name in names:
        module = f"sgl_graph.cli.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).register(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"sgl-graph {version('sgl-graph')}")
        raise typer.Exit()
