"""Processes that may hold graphs: where each kind starts, in releases of either layout."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.paths.topology import worker_entries, workers

from .programs import MemorySources

SCHEDULER = """
    def run_scheduler_process():
        pass
"""
ENCODER = """
    import multiprocessing as mp

    def launch_encoder(rank):
        pass

    def launch_server(ranks):
        for rank in range(1, ranks):
            mp.Process(target=launch_encoder, args=(rank,)).start()
"""
SERVER = """
    def launch_server(ranks):
        pass
"""
OLD = {"managers/scheduler.py": SCHEDULER, "disaggregation/encode_server.py": ENCODER}
NEW = {
    "managers/scheduler.py": SCHEDULER,
    "disaggregation/encoder/server.py": ENCODER,
    "disaggregation/encoder/http_server.py": SERVER,
}


@pytest.mark.parametrize(
    ("files", "first"),
    [
        (OLD, "sglang.srt.disaggregation.encode_server:launch_encoder"),
        (NEW, "sglang.srt.disaggregation.encoder.server:launch_encoder"),
    ],
)
def test_the_ranks_of_an_encoder_are_counted_once(files: dict[str, str], first: str) -> None:
    """The server's process is the first rank, so both functions are entries, and of the same processes."""
    project = Project(MemorySources({f"sglang/srt/{path}": text for path, text in files.items()}))
    entries = [name for role, name in worker_entries(project) if role == "encoder"]
    assert entries[0] == first
    assert entries[1].endswith(":launch_server")
    assert len(entries) == 2
    found = workers(project, {"encoder_only": True, "tp_size": 4, "pp_size": 1}, entries)
    assert [(worker.role, worker.count, worker.entry.qualname) for worker in found] == [("encoder", 4, first)]
    assert found[0].injection.reaches == "yes"
