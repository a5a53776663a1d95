"""The program `sgl-graph`: gathers the commands, each of which lives in cli/<name>.py and registers itself."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Annotated

import typer
from sgl_graph.cli import console
from sgl_graph.cli.exits import guarded

# The order of `--help`. A module exposes `register(app)`, stays light at import and
# loads its analyzers inside the command function.
COMMANDS = ("preflight", "run", "reconcile", "export", "diff", "doctor", "explain")


def build() -> typer.Typer:
    """The application with every command."""
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

    for name in COMMANDS:
        module = f"sgl_graph.cli.{name}"
        if importlib.util.find_spec(module) is not None:
            importlib.import_module(module).register(app)
    return app


def main() -> None:
    """Entry point of the console script."""
    console.prepare_streams()
    sys.exit(guarded(build()))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"sgl-graph {version('sgl-graph')}")
        raise typer.Exit()


if __name__ == "__main__":
    main()
