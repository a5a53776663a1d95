"""Captures that can only raise: found on every way through the code, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sgl_graph.analyzer.records.pathmap import Component, Label, PathEntry
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.config.configuration import ResolvedConfiguration
from sgl_graph.analyzer.static.config.evaluator import Evaluator
from sgl_graph.analyzer.static.config.facts import LaunchFacts
from sgl_graph.analyzer.static.config.inputs import Launch
from sgl_graph.analyzer.static.config.protocol import Starts
from sgl_graph.analyzer.static.paths.deaths import Death, deaths
from sgl_graph.analyzer.static.sites.search import find_sites

from .programs import MemorySources

PROGRAM = """
    import torch
    from enum import IntEnum, auto
    from sglang.srt.state import group_of

    class Output:
        pass

    class Mode(IntEnum):
        EXTEND = auto()
        DECODE = auto()

        def is_decode(self):
            return self == Mode.DECODE

        def is_extend(self):
            return self == Mode.EXTEND

    class Batch:
        pass

    class Base:
        def __init__(self, runner):
            self.graphs = {}
            self.buffer = None

        def capture_one(self, key, forward, inputs=None):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = forward()
            if self.buffer is None:
                self.buffer = self.copy_of(out)
            self.fill(out, self.buffer)
            self.graphs[key] = graph

        def replay(self, key):
            self.graphs[key].replay()

    class Strict(Base):
        def copy_of(self, out):
            if torch.is_tensor(out):
                return out.clone()
            if isinstance(out, (list, tuple)):
                return [self.copy_of(item) for item in out]
            raise TypeError("unsupported output")

        def fill(self, out, buffer):
            if torch.is_tensor(out):
                buffer.copy_(out)
                return
            raise TypeError("unsupported pair")

    class Lenient(Base):
        def copy_of(self, out):
            if self.strict:
                raise TypeError("unsupported output")
            return out

        def fill(self, out, buffer):
            pass

    class Picky:
        def prepare(self, batch, capturing=False):
            self.check(batch.mode)

        def check(self, mode):
            if mode.is_decode():
                self.steps = 1
            elif self.allows and False:
                pass
            else:
                raise ValueError(f"Invalid mode {mode!r}")

    class Open:
        def prepare(self, batch, capturing=False):
            if batch.mode.is_extend():
                self.steps = 2
            else:
                raise ValueError("Invalid mode")

    class Reading:
        def prepare(self, batch, capturing=False):
            if group_of("ranks"):
                return

    class Asserting:
        def prepare(self, batch, capturing=False):
            assert self.ready and batch.mode.is_decode(), "only when ready"

    class Choosy(Base):
        def __init__(self, runner, saving=False):
            self.groups = group_of("ranks")
            self.adapter = adapter_of(saving)
            if self.adapter is not None and self.adapter.enabled:
                raise NotImplementedError("no saver here")

        def copy_of(self, out):
            return out

        def fill(self, out, buffer):
            pass

    class Gentle(Choosy):
        def __init__(self, runner, saving=False):
            super().__init__(runner)

    class Adapter:
        enabled = True

    def adapter_of(saving):
        return Adapter() if saving else None

    def make_choosy(runner):
        return Choosy(runner, saving=True)

    def make_gentle(runner):
        return Gentle(runner, saving=True)

    class Saving:
        def __init__(self):
            self.table = make_choosy(self)

        def capture(self):
            self.table.capture_one(1, Output)

        def execute(self):
            self.table.replay(1)

    class Plain(Saving):
        def __init__(self):
            self.table = make_gentle(self)

    class Runner:
        def __init__(self, table: Strict, attention):
            self.table = table
            self.attention = attention

        def capture(self):
            self.attention.prepare(Batch(), capturing=True)
            self.table.capture_one(1, self.forward)

        def forward(self):
            return Output()

        def execute(self):
            self.table.replay(1)
"""
STATE = """
    GROUPS = {}

    def group_of(name):
        if name not in GROUPS:
            raise RuntimeError("no group yet")
        return GROUPS[name]
"""
HOME = "sglang.srt.program"


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The program's own names in the places where the profile has SGLang's."""
    monkeypatch.setattr(profile, "CAPTURED_OUTPUTS", {"decode": f"{HOME}:Output"})
    monkeypatch.setattr(profile, "METADATA_FUNCTION", "prepare")
    monkeypatch.setattr(profile, "METADATA_BATCH", "batch")
    monkeypatch.setattr(profile, "METADATA_CAPTURING", "capturing")
    monkeypatch.setattr(profile, "FORWARD_BATCH_CLASS", f"{HOME}:Batch")
    monkeypatch.setattr(profile, "FORWARD_MODE_CLASS", f"{HOME}:Mode")
    monkeypatch.setattr(profile, "FORWARD_MODE_ATTRIBUTE", "mode")
    yield


def found(family: str, table: str, *attention: str, runner: str = "Runner") -> list[Death]:
    project = Project(MemorySources({"sglang/srt/program.py": PROGRAM, "sglang/srt/state.py": STATE}))
    configuration = ResolvedConfiguration(Evaluator(project, LaunchFacts()), None, Starts(True), Launch([], {}))
    path = PathEntry(
        id="p",
        family=family,  # type: ignore[arg-type]
        worker="scheduler",
        runner=runner,
        backend=table,
        name=f"target:{family}",
        sites=("s",),
        components=tuple(
            Component(kind="attention", class_=name, memory="", reachable="yes", file="sglang/srt/program.py", line=1)
            for name in attention
        ),
        label=Label(key="k", expression="e"),
        reachable="yes",
        trigger="startup",
        inspectability="partial",
    )
    return list(deaths(find_sites(project), configuration, [path]))


def line_of(text: str) -> int:
    return next(n for n, line in enumerate(PROGRAM.split("\n"), 1) if text in line)


def test_an_output_that_the_table_takes_in_no_way() -> None:
    (death,) = found("decode", "Strict")
    assert (death.by, death.text) == ("Strict", "TypeError: unsupported output")
    assert (death.file, death.line) == ("sglang/srt/program.py", line_of('TypeError("unsupported output")'))


def test_an_output_that_one_way_takes_is_no_death() -> None:
    assert found("decode", "Lenient") == []


def test_the_output_of_other_families_is_not_known() -> None:
    assert found("prefill-breakable", "Strict") == []


def test_a_mode_that_the_attention_backend_refuses() -> None:
    (death,) = found("prefill-full", "Lenient", "Picky")
    assert death.by == "Picky" and death.text.startswith("ValueError")
    assert death.line == line_of('raise ValueError(f"Invalid mode')


def test_one_backend_that_takes_the_mode_is_enough_for_doubt() -> None:
    assert found("prefill-full", "Lenient", "Open") == []
    assert found("prefill-full", "Lenient", "Picky", "Open") == []
    assert found("prefill-full", "Lenient") == []


def test_assertions_prove_nothing() -> None:
    assert found("prefill-full", "Lenient", "Asserting") == []


def test_a_table_that_refuses_to_be_made() -> None:
    (death,) = found("prefill-breakable", "Choosy", runner="Saving")
    assert (death.by, death.text) == ("Choosy", "NotImplementedError: no saver here")
    assert death.line == line_of('NotImplementedError("no saver here")')


def test_a_table_that_is_made_otherwise_is_no_death() -> None:
    assert found("prefill-breakable", "Gentle", runner="Plain") == []
    assert found("prefill-breakable", "Choosy") == []  # this runner makes none


def test_what_other_code_refuses_before_the_server_runs_is_no_death() -> None:
    assert found("prefill-full", "Lenient", "Reading") == []
