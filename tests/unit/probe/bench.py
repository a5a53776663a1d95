"""A fake torch under the CUDA inspector, and its receipts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.runtime.probe.config import ProbeConfig
from sgl_graph.runtime.probe.imports import PostImport
from sgl_graph.runtime.probe.inspectors import cuda_nodes
from sgl_graph.runtime.probe.inspectors.cuda import CudaInspector
from sgl_graph.runtime.probe.recorder import Recorder

from tests.fakes.fake_cuda import FakeTorch, kernel

Run = Callable[..., "Bench"]


class Bench:
    """A fake torch under the inspector."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any] | None = None, **torch: Any
    ) -> None:
        self.torch = FakeTorch(**torch)
        settings = dict(settings or {})
        if "map" in settings:
            (folder / "map.json").write_text(json.dumps(settings.pop("map")))
        config = ProbeConfig(folder=folder, receipts=folder / "receipts", run="r", launch="program", **settings)
        self.recorder = Recorder(config)
        monkeypatch.setattr(cuda_nodes, "plain_arguments", self.torch.driver.arguments)
        self.inspector = CudaInspector(self.recorder, self.torch, self.torch.driver)  # type: ignore[arg-type]
        self.inspector.install(PostImport())
        self.memory = self.torch.allocator

    def records(self, kind: str | None = None) -> list[dict[str, Any]]:
        self.recorder.close("exit")
        path = self.recorder.config.receipts / f"{self.recorder.worker}.jsonl"
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert not [r for r in found if r["k"] == "problem"]
        return [r for r in found if kind in (None, r["k"])]

    def verdict(self) -> str:
        """What the receipts of this worker alone come to."""
        self.recorder.close("exit")
        path = self.recorder.config.receipts / f"{self.recorder.worker}.jsonl"
        return lifetime_verdict([read_receipts(path)]).value

    def timeline(self) -> list[str]:
        """Replays and events in order, as words."""
        words = []
        for r in self.records():
            if r["k"] == "replays":
                words += [f"replay {r['cycle'][i % len(r['cycle'])]}" for i in range(r["count"])]
            elif r["k"] == "event":
                words.append(f"{r['e']} {r.get('block') if r['e'] == 'free' else r.get('over', r.get('blocks'))}")
            elif r["k"] == "graph":
                words.append(f"{r['e']} {r['graph']}")
        return words


def enter(b: Bench) -> tuple[int, Any]:
    """A captured graph over one block, replayed once; a lean bench takes certificates from here on."""
    x = b.memory.malloc(512)
    graph = b.torch.capture(lambda: [kernel(x)])
    graph.replay()
    b.recorder.drain()
    assert not b.memory.recording
    return x, graph
