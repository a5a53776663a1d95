"""Paths of a configuration: which runner captures into which table, given what the runner holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from sgl_graph.analyzer.records.pathmap import PathEntry, Site
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.finder import PathFinder
from sgl_graph.analyzer.static.paths.inputs import PathInput
from sgl_graph.analyzer.static.paths.settings import PhaseSizes
from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings
from sgl_graph.analyzer.static.sites.families import family_of_site
from sgl_graph.analyzer.static.sites.labels import Keys

from .capturing_programs import SEGMENTS
from .programs import search

#: What tables are asked for, and a table of whole graphs.
WHOLE = """
    from abc import ABC, abstractmethod
    import torch

    class Backend(ABC):
        @abstractmethod
        def record(self, key, fn): ...

        @abstractmethod
        def again(self, key): ...

        @abstractmethod
        def forget(self): ...

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

        def forget(self):
            self.kept.clear()
"""
BACKENDS = (
    WHOLE
    + """
    class Compiled(Backend):
        def record(self, key, fn):
            fn()

        def again(self, key):
            pass

        def forget(self):
            pass
"""
)
SEGMENTING = (
    WHOLE
    + """
    from sglang.srt.segments import Recording, Segments

    class InPieces(Backend):
        def __init__(self):
            self.kept = {}

        def record(self, key, fn):
            graph = Segments()
            with Recording(graph):
                fn()
            self.kept[key] = graph

        def again(self, key):
            self.kept[key].run_all()

        def forget(self):
            self.kept.clear()
"""
)
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
    return [(path.name, path.runner, path.backend) for path in entries(held, dead=dead, **modules)]


def entries(
    held: Mapping[str, str],
    *,
    dead: str = "",
    settings: Mapping[str, object] | None = None,
    buckets: Mapping[str, PhaseSizes] | None = None,
    **modules: str,
) -> Sequence[PathEntry]:
    """The paths themselves, under settings of the launch and configured sizes by phase."""
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
        settings=settings or {},
        unconfirmed=frozenset(),
        open_phases=frozenset(),
        buckets=buckets or {},
        components=(),
        worker="scheduler",
        holdings=holdings,
        devices=classifier.devices_of_class,
        devices_of=classifier.devices_of,
        device="cuda",
    )
    return PathFinder(given).find()


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


#: A runner that keeps its graphs itself, as older releases have them, and one that computes sizes of its own.
SERVING_ITSELF = """
    import torch

    def get_batch_sizes_to_capture(runner):
        return [n for n in runner.settings.sizes if n <= runner.pool.size]

    class CudaGraphRunner:
        def __init__(self, runner):
            self.graphs = {}
            for size in get_batch_sizes_to_capture(runner):
                self.capture_one_batch_size(size)

        def capture_one_batch_size(self, size):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                print(size)
            self.graphs[size] = graph

        def replay(self, size):
            self.graphs[size].replay()
"""
OWN_SIZES = """
    from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner

    def get_batch_sizes_to_capture(runner):
        return [1, 2, 3]

    class DecodeGraphRunner(CudaGraphRunner):
        def __init__(self, runner):
            self.graphs = {}
            for size in get_batch_sizes_to_capture(runner):
                self.capture_one_batch_size(size)

        def capture_one_batch_size(self, size):
            super().capture_one_batch_size(size)
"""


def test_a_runner_that_keeps_its_graphs_itself_captures_the_configured_sizes_where_it_asks_for_them() -> None:
    decode = PhaseSizes("decode", (1, 2, 4), None, (1, 2))
    modules = {"model_executor__cuda_graph_runner": SERVING_ITSELF, "own": OWN_SIZES}
    found = {path.runner: path.label for path in entries({}, buckets={"decode": decode}, **modules)}
    configured, own = found["CudaGraphRunner"], found["DecodeGraphRunner"]
    assert (configured.buckets, configured.buckets_effective) == ((1, 2, 4), (1, 2))
    assert (configured.clamped_by, configured.enumerable) == ("runner.pool.size", True)
    assert (own.buckets, own.enumerable) == (None, False)


def test_a_runner_that_keeps_its_graphs_itself_verifies_where_a_draft_proposes() -> None:
    modules = {"model_executor__cuda_graph_runner": SERVING_ITSELF}
    assert [path.name for path in entries({}, **modules)] == ["target:decode"]
    assert [path.name for path in entries({}, settings={"speculative_algorithm": "EAGLE"}, **modules)] == [
        "target:verify"
    ]


#: A runner that keeps its graphs itself and reads the sizes from the settings.
READING_SIZES = """
    import torch

    class PrefillGraphRunner:
        def __init__(self, runner):
            self.graphs = {}
            sizes = runner.server_args.SETTING
            self.sizes = sorted(sizes)
            for size in reversed(self.sizes):
                self.capture_one_batch_size(size)

        def capture_one_batch_size(self, size):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                print(size)
            self.graphs[size] = graph

        def replay(self, size):
            self.graphs[size].replay()
"""


@pytest.mark.parametrize(
    ("setting", "sizes"), [("piecewise_cuda_graph_tokens", (4, 8)), ("cuda_graph_bs", None), ("own_sizes", None)]
)
def test_a_runner_that_keeps_its_graphs_itself_captures_the_sizes_that_it_reads_from_the_settings(
    setting: str, sizes: tuple[int, ...] | None
) -> None:
    phases = {"decode": PhaseSizes("decode", (1, 2), None, None), "prefill": PhaseSizes("prefill", (4, 8), None, None)}
    (found,) = entries({}, buckets=phases, prefill_runner=READING_SIZES.replace("SETTING", setting))
    label = found.label
    assert (label.buckets, label.buckets_effective, label.enumerable) == (sizes, sizes, sizes is not None)


RECAPTURING = """
    from sglang.srt.backends import Backend, InPieces, Whole

    def choose(name) -> Backend:
        return {"whole": Whole, "pieces": InPieces}[name]()

    class PrefillGraphRunner:
        def __init__(self, name):
            self.backend = choose(name)
            self.fill()

        def fill(self):
            self.backend.record(1, lambda: 1)

        def again(self):
            self.backend.forget()
            self.fill()

        def step(self, size):
            self.backend.again(size)
"""


@pytest.mark.parametrize("held", ["Whole", "InPieces"])
def test_what_ends_graphs_of_any_table_takes_nothing_from_a_path_on_one(held: str) -> None:
    """The call may end segments, and is partial itself; neither graphs as a whole nor segments are out of sight for it."""
    program = {"segments": SEGMENTS, "backends": SEGMENTING, "prefill_runner": RECAPTURING}
    found = [
        path for path in entries({"backend": f"backends:{held}"}, **program) if path.runner == "PrefillGraphRunner"
    ]
    assert [(path.backend, path.inspectability) for path in found] == [(held, "lifetime-inspectable")]
