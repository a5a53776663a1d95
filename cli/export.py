"""`sgl-graph export`: an archive as one masked file to hand on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from sgl_graph.cli import console


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="export", help=_HELP, short_help=_SHORT)(export)


_SHORT = "Write an archive as one masked zip file, to hand on."
_HELP = """Write an archive as one zip file, masked, without answers unless asked.

Paths, host names, and environment values that are not on the allow-list are masked; the file says so itself."""


def export(
    archive: Annotated[Path, typer.Argument(parser=console.named_path, metavar="ARCHIVE", help="The archive.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The zip file.")],
    include_outputs: Annotated[
        bool, typer.Option("--include-outputs", help="Take the answers along: numerical can be recomputed then.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Nothing on stderr but warnings.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="More on stderr.")] = False,
) -> None:
    """Check the request and write."""
    console.configure(quiet=quiet, verbose=verbose)
    from sgl_graph.analyzer.errors import ConfigError
    from sgl_graph.runtime.exporting import export as write

    console.check_output(output, force=force, archives=[archive])
    try:
        done = write(archive, output, include_outputs=include_outputs)
    except OSError as error:
        raise ConfigError(f"{error.filename or output}: {error.strerror}") from error
    masked = ", ".join(f"{count} {kind}" for kind, count in sorted(done.masked.items()) if count) or "nothing"
    console.note(f"wrote {output}: {done.files} files, {done.left_out} left out, masked {masked}")
    if done.damage:
        shown = "; ".join(f"{name}: {why}" for name, why in sorted(done.damage.items())[:4])
        more = f" (and {len(done.damage) - 4} more)" if len(done.damage) > 4 else ""
        console.warn(
            f"the archive does not verify: {shown}{more}; the export says so, and verdicts that rest on it stay INCOMPLETE"
        )
    console.note(f"manifest digest {done.manifest_digest}")
    folder = output.parent / done.folder
    unzip = console.shell("unzip", "-d", output.parent, output)
    reconcile = console.shell("sgl-graph", "reconcile", folder, "--expect-digest", done.manifest_digest)
    console.note(f"next: {unzip} && {reconcile}")
