"""The program `sgl-graph`. Nothing heavy is imported before `main` answers for it: an interruption is met there too."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

# The order of `--help`. A module of cli/ exposes `register(app)`, stays light at import and
# loads its analyzers inside the command function.
COMMANDS = ("preflight", "run", "reconcile", "export", "diff", "doctor", "explain")


def build() -> typer.Typer:
    """The application with every command."""
    from sgl_graph.cli import commands

    return commands.build(COMMANDS)


def main() -> None:
    """Entry point of the console script."""
    try:
        from sgl_graph.cli import console
        from sgl_graph.cli.exits import guarded

        console.prepare_streams()
        code = guarded(_run)
    except KeyboardInterrupt:
        # Before the commands could be loaded, or while another error was being reported.
        sys.stderr.write("error: interrupted\n")
        code = 130
    gc.freeze()  # what an analysis leaves goes with the process: looking for garbage in it takes seconds
    sys.exit(code)


def _run() -> None:
    build()()


if __name__ == "__main__":
    main()
