"""The same promise end to end: stories lived on the emulated device, told by its inspector, judged from the receipts."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import emugraph as torch
from emugraph import inspector
from emugraph.graphs import CUDAGraph
from hypothesis import HealthCheck, given, settings
from sgl_graph.analyzer.reconcile.lifetime import lifetime_verdict
from sgl_graph.analyzer.records.receipts import read_receipts
from sgl_graph.analyzer.records.verdicts import LifetimeResult
from sgl_graph.runtime.probe.config import ProbeConfig
from sgl_graph.runtime.probe.recorder import Recorder

from tests.property.lifetime.model import CHILD, Story, stories

N = 128
LARGE = 20_000


@dataclass
class Held:
    """A tensor of the story; `value` is what its producer writes into it."""

    tensor: torch.Tensor | None
    address: int
    value: float
    captured: bool


@dataclass
class Captured:
    """A graph that adds up what it reads, and its steps for the book."""

    graph: CUDAGraph
    total: torch.Tensor
    steps: list[tuple[str, Held | Captured]] = field(default_factory=list)


class Life:
    """Lives a story on the device and keeps the book by address."""

    def __init__(self) -> None:
        self.pool = torch.cuda.graph_pool_handle()
        self.held: list[Held] = []
        self.graphs: list[Captured] = []
        self.contents: dict[int, float] = {}
        self.foreign = self.dead = 0
        self._value = 0.0

    def _new(self, *, captured: bool) -> Held:
        self._value += 1.0
        tensor = torch.empty(N)
        tensor.fill_(self._value)
        held = Held(tensor, tensor.data_ptr(), self._value, captured)
        self.held.append(held)
        return held

    def outside(self) -> None:
        """A tensor of the host program."""
        held = self._new(captured=False)
        self.contents[held.address] = held.value

    def capture(self, choices: list[int]) -> None:
        """Read, allocate and write, or free, by choice."""
        # Of another size than the tensors of the story, so that neither takes the other's memory.
        made = Captured(CUDAGraph(), torch.zeros(LARGE)[:N])
        with torch.cuda.graph(made.graph, pool=self.pool):
            made.total.zero_()
            for choice in choices:
                if choice >= CHILD:
                    if self.graphs:
                        child = self.graphs[(choice - CHILD) % len(self.graphs)]
                        child.graph.replay()
                        made.steps.append(("child", child))
                    continue
                live = [h for h in self.held if h.tensor is not None]
                action, pick = choice % 3, choice // 3
                if action == 0 and live:
                    chosen = live[pick % len(live)]
                    made.total.add_(chosen.tensor)
                    made.steps.append(("read", chosen))
                elif action == 1 or not live:
                    made.steps.append(("write", self._new(captured=True)))
                elif mine := [h for h in live if h.captured]:
                    mine[pick % len(mine)].tensor = None
        self.graphs.append(made)

    def replay(self, made: Captured) -> None:
        """Replay, enter it in the book, and hold the device's sum against the book's."""
        made.graph.replay()
        expected = self._enter(made)
        if expected is not None:
            assert made.total.tolist() == [expected] * N

    def _enter(self, made: Captured) -> float | None:
        """Enter what a graph did, those inside it included; returns the sum that it left, if that is known."""
        expected: float | None = 0.0
        for step, held in made.steps:
            if isinstance(held, Captured):
                self._enter(held)
                continue
            if step == "write":
                self.contents[held.address] = held.value
                continue
            found = self.contents.get(held.address)
            if not held.captured:
                self.dead += held.tensor is None
            elif found != held.value:
                self.foreign += found is not None or held.tensor is None
            expected = None if expected is None or found is None else expected + found
        return expected

    def live(self, story: Story) -> None:
        """The story from start to end."""
        self.outside()
        self.capture([1, 0])
        for what, numbers, times in story:
            if what == "outside":
                self.outside()
            elif what == "capture":
                self.capture(numbers)
            elif what == "replay":
                for number in numbers * min(times, 2):
                    self.replay(self.graphs[number % len(self.graphs)])
            elif live := [h for h in self.held if h.tensor is not None]:
                live[numbers[0] % len(live)].tensor = None


def told(story: Story) -> tuple[Life, LifetimeResult]:
    """The life of a story and the verdict on what the inspector wrote of it."""
    with tempfile.TemporaryDirectory() as folder:
        config = ProbeConfig(Path(folder), Path(folder) / "receipts", "run", "program", inspector="emugraph.inspector")
        recorder = Recorder(config)
        handle = inspector.install(recorder)
        life = Life()
        try:
            life.live(story)
        finally:
            recorder.close("sealed")
            handle.remove()
        (path,) = (Path(folder) / "receipts").glob("*.jsonl")
        return life, lifetime_verdict([read_receipts(path)])


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stories)
def test_stories_lived_on_the_device(story: Story) -> None:
    """No PASS where a replay read dead or foreign memory, no FAIL where none did, and the book is the device's."""
    life, result = told(story)
    assert result.value in ("PASS", "FAIL", "INCONCLUSIVE", "NOT-RUN"), result.reason
    if life.dead:
        assert result.value == "FAIL", result.reason
    if life.foreign:
        assert result.value in ("FAIL", "INCONCLUSIVE"), result.reason
    if result.value == "FAIL":
        assert life.dead or life.foreign, result.reason
