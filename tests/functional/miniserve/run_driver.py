"""One `sgl-graph run` on miniserve with short waits, in a process of its own.

usage: python run_driver.py OUT MAP [TRAFFIC] -- SERVING COMMAND...     exits as the command line does
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from sgl_graph.analyzer.serving_command import parse
from sgl_graph.cli.exits import guarded
from sgl_graph.cli.render.report import markdown, report_text
from sgl_graph.cli.run import exit_code
from sgl_graph.runtime.checkout import locate
from sgl_graph.runtime.inject import FolderInjector
from sgl_graph.runtime.options import RunOptions
from sgl_graph.runtime.planning import inspector_of, prepare
from sgl_graph.runtime.run import execute

MINISERVE = Path(__file__).parents[3] / "fixtures" / "miniserve"


def say(line: str) -> None:
    """Progress on stderr."""
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Run, print the report, exit."""
    cut = sys.argv.index("--")
    out, map_file, *traffic = (Path(argument) for argument in sys.argv[1:cut])
    options = RunOptions(
        out=out,
        command=parse(sys.argv[cut + 1 :]),
        checkout=MINISERVE,
        map_file=map_file,
        traffic=traffic[0] if traffic else None,
        start_timeout=60.0,
        request_timeout=60.0,
        stop_timeout=10.0,
        footer_wait=15.0,
        settle=0.3,
    )
    inspector = inspector_of({})
    assert inspector == "emugraph.inspector"
    prepared = prepare(options, locate(MINISERVE), map_file.read_bytes(), inspector=inspector)
    with tempfile.TemporaryDirectory(prefix="sgl-graph-") as folder:
        injector = FolderInjector(Path(folder), inspector=inspector, tool=prepared.plan.tool_digest)
        finished = execute(options, prepared, injector, markdown, say)
    print(report_text(finished.ledger))
    raise SystemExit(int(exit_code(finished.ledger)))


if __name__ == "__main__":
    sys.exit(guarded(main))
