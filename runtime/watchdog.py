"""`python -m sgl_graph.runtime.watchdog MARK`: waits for its parent's end; one that says `done` first needs nothing."""

from __future__ import annotations

import signal
import sys

from sgl_graph.runtime.processes import marked, stop_group


def main() -> None:
    """Read pids of process groups from stdin; at end of file without `done`, stop them."""
    mark = sys.argv[1]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leaders: list[int] = []
    for line in sys.stdin:
        if line.strip() == "done":
            return
        leaders.append(int(line))
    for leader in leaders or [p.pid for p in marked(mark)]:
        stop_group(leader, mark, grace=5.0)


if __name__ == "__main__":
    main()
