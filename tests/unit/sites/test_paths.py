"""Paths of a configuration: which runner captures into which table, given what the runner holds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sgl_graph.analyzer.records.pathmap import Site
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.finder import PathFinder
from sgl_graph.analyzer.static.paths.inputs import PathInput
from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings
from sgl_graph.analyzer.static.sites.families import family_of_site
from sgl_graph.analyzer.static.sites.labels import Keys

from .programs import search

BACKENDS = """
    import torch
    from abc import ABC, abstractmethod

    class Backend(ABC):
        @abstractmethod
        def record(self, key, fn): ...

        @abstractmethod
        def again(self, key): ...

    class Whole(Backend):
        def __init__(self):
            self.kept = {}

        def record(self, key, fn):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                fn()
            self.kept[key] = graph

        def again(self, key):
            self.kept[key].replay()

    class Compiled(Backend):
        def record(self, key, fn):
            fn()

        def again(self, key):
            pass
"""
PIECES = """
    import torch

    class PiecewiseBackend:
        def __init__(self, piece):
            self.piece = piece
            self.kept = {}

        def __call__(self, size):
            if size not in self.kept:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    self.piece()
                self.kept[size] = graph
            self.kept[size].replay()
"""
RUNNER = """
    from sglang.srt.backends import Backend, Compiled, Whole

    def choose(name) -> Backend:
        return {"whole": Whole, "compiled": Compiled}[name]()

    class PrefillGraphRunner:
        def __init__(self, name):
            self.backend = choose(name)
            for size in (1, 2):
                self.backend.record(size, lambda: size)

        def step(self, size):
            self.backend.again(size)
"""


def paths(held: Mapping[str, str], *, dead: str = "", **modules: str) -> list[tuple[str, str, str]]:
    """(name, runner, table) of each path when attributes of the prefill runner hold the classes named (module:class).

    Args:
        dead: name of a method that does not run; all else does.
    """
    found = search(**modules)
    classifier = Classifier(found.owners, found.sites)
    sites = []
    for number, raw in enumerate(found.sites):
        inspectability, reason = classifier.classify(raw, Surroundings(device="cuda"))
        record = Site(
            id=f"{raw.role}:{number}",
            file=raw.scope.module.path,
            line=raw.line,
            qualname=raw.scope.public_name,
            role=raw.role,  # type: ignore[arg-type]
            api=raw.api,
            family=family_of_site(raw),
            gates=(),
            reachable="no" if dead and raw.scope.public_name.endswith(f":{dead}") else "yes",
            trigger="startup",
            why="",
            inspectability=inspectability,
            reason=reason.text,
            reasons=(reason,),
        )
        sites.append((raw, record))
    holdings = {
        "sglang.srt.prefill_runner:PrefillGraphRunner": {
            attribute: frozenset({f"sglang.srt.{name}"}) for attribute, name in held.items()
        }
    }
    given = PathInput(
        search=found,
        sites=sites,
        chains=Chains(None, None, []),
        keys=Keys(found.owners),
        settings={},
        unconfirmed=frozenset(),
        open_phases=frozenset(),
        buckets={},
        components=(),
        worker="scheduler",
        holdings=holdings,
        devices=classifier.devices_of_class,
        devices_of=classifier.devices_of,
        device="cuda",
    )
    return [(path.name, path.runner, path.backend) for path in PathFinder(given).find()]


def test_a_runner_captures_into_the_table_that_it_holds() -> None:
    program = {"backends": BACKENDS, "prefill_runner": RUNNER}
    assert paths({"backend": "backends:Whole"}, **program) == [
        ("target:prefill-full", "PrefillGraphRunner", "Whole"),
    ]


def test_a_runner_whose_table_is_not_known_may_capture_into_each() -> None:
    program = {"backends": BACKENDS, "prefill_runner": RUNNER}
    assert paths({}, **program) == [("target:prefill-full", "PrefillGraphRunner", "Whole")]


INHERITING = """
    from sglang.srt.backends import Backend, Compiled, Whole

    class DecodeGraphRunner:
        def __init__(self):
            self.backend = Whole()
            self.fill()

        def fill(self):
            self.backend.record(1, lambda: 1)

        def step(self, size):
            self.backend.again(size)

    class SmallDecodeGraphRunner(DecodeGraphRunner):
        def fill(self):
            self.backend.record(2, lambda: 2)
"""


def test_a_runner_that_replaces_how_it_captures_is_not_reached_by_what_it_inherits() -> None:
    program = {"backends": BACKENDS, "decode_runner": INHERITING}
    every = [("target:decode", "DecodeGraphRunner", "Whole"), ("target:decode", "SmallDecodeGraphRunner", "Whole")]
    assert paths({}, **program) == every
    assert paths({}, dead="SmallDecodeGraphRunner.fill", **program) == every[:1]
    assert paths({}, dead="DecodeGraphRunner.fill", **program) == every[1:]


def test_a_runner_that_holds_what_captures_nothing_has_no_path() -> None:
    program = {"backends": BACKENDS, "prefill_runner": RUNNER}
    loose = paths({"backend": "backends:Compiled"}, **program)
    assert ("target:prefill-full", "PrefillGraphRunner", "Whole") not in loose
    assert not [path for path in loose if path[1] == "PrefillGraphRunner"]


@pytest.mark.parametrize(
    ("held", "runner"),
    [
        ("backends:Compiled", "PrefillGraphRunner"),  # it captures nothing itself: the pieces are what it drives
        ("backends:Whole", "PiecewiseBackend"),  # it has graphs of its own: the pieces serve themselves
    ],
)
def test_a_table_that_serves_itself_bears_the_name_of_the_runner_that_is_left_without_one(
    held: str, runner: str
) -> None:
    program = {"backends": BACKENDS, "prefill_runner": RUNNER, "prefill_pieces": PIECES}
    found = paths({"backend": held}, **program)
    assert [path for path in found if path[2] == "PiecewiseBackend"] == [
        ("target:prefill-piecewise", runner, "PiecewiseBackend")
    ]


def test_what_stands_beside_no_table_leaves_the_tables_open() -> None:
    """A value that shares no base with the tables is not what takes their place: nothing is excluded by it."""
    program = {"backends": BACKENDS, "prefill_runner": RUNNER, "prefill_pieces": PIECES}
    found = paths({"backend": "prefill_pieces:PiecewiseBackend"}, **program)
    assert ("target:prefill-full", "PrefillGraphRunner", "Whole") in found
