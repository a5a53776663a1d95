"""What is read for its text is known, and begun, before anything else is done."""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Iterable

import pytest
from sgl_graph.analyzer.static.checkout import textindex
from sgl_graph.analyzer.static.checkout.project import Project, headers_in
from sgl_graph.analyzer.static.checkout.textindex import TextIndex
from sgl_graph.runtime.mapping import no_collections

from tests.unit.config.programs import Texts

FILES = {
    "sglang/srt/graphs.py": "import torch\n\ngraph = torch.cuda.CUDAGraph()\n",
    "sglang/srt/plain.py": "x = 1\n",
    "sglang/other.py": "graph = torch.cuda.CUDAGraph()\n",
}


class Begun(Texts):
    """Files that remember which of them were to be parsed ahead."""

    def __init__(self) -> None:
        super().__init__(FILES)
        self.begun: list[str] = []

    def prefetch(self, paths: Iterable[str]) -> None:
        self.begun += paths


def test_files_of_the_first_round_are_begun_when_the_index_is_made() -> None:
    sources = Begun()
    index = TextIndex(Project(sources))
    assert sources.begun == ["sglang/srt/graphs.py"]
    assert index.first() == ["sglang.srt.graphs"]
    assert index.mentioning(["x"]) == ["sglang.srt.plain"]


def test_an_index_that_was_released_holds_no_texts() -> None:
    index = TextIndex(Project(Begun()))
    index.first()
    index.release()
    assert index.mentioning(["x"]) == []


def test_headers_are_lines_that_begin_so() -> None:
    alphabet = (b"def", b"async", b" ", b"\t", b"\n", b"x")
    pattern = re.compile(rb"^[ \t]*(?:async[ \t]+)?def[ \t]", re.MULTILINE)
    for length in range(6):
        for words in itertools.product(alphabet, repeat=length):
            text = b"".join(words)
            assert headers_in(text) == len(pattern.findall(text)), text


@pytest.fixture
def fresh_collector() -> None:
    """The collector as a process begins with it, whatever ran in this one before."""
    gc.unfreeze()
    gc.enable()


@pytest.mark.usefixtures("fresh_collector")
@pytest.mark.parametrize("enabled", [True, False])
def test_there_are_no_collections_within_and_then_as_before(enabled: bool) -> None:
    if not enabled:
        gc.disable()
    try:
        with no_collections():
            assert not gc.isenabled()
            with no_collections():
                pass
            assert not gc.isenabled()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()


@pytest.mark.usefixtures("fresh_collector")
def test_what_was_made_within_is_old_right_afterwards() -> None:
    with no_collections():
        made = [[number] for number in range(100_000)]
    young = {id(one) for generation in (0, 1) for one in gc.get_objects(generation)}
    assert not young & {id(one) for one in made}
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("fresh_collector")
def test_what_others_froze_stays_frozen() -> None:
    frozen = [object]
    gc.freeze()
    try:
        assert not any(one is frozen for one in gc.get_objects())  # none of a generation that is looked through
        with no_collections():
            pass
        # Not their number: of what is frozen some dies meanwhile.
        assert not any(one is frozen for one in gc.get_objects())
    finally:
        gc.unfreeze()


def test_the_words_that_are_looked_for_first_miss_nothing_that_the_pattern_finds() -> None:
    parts = (
        "CUDA",
        "NPU",
        "XPU",
        "MUSA",
        "cuda",
        "hip",
        "cu",
        "Graph",
        "Launch",
        "launch",
        "Stream",
        "Begin",
        "Capture",
        "s",
        " ",
    )
    parts += (
        "graph_pool_handle",
        "capture_begin",
        "make_graphed_callables",
        ".graph",
        "(",
        ".cuda_graph",
        "torchair",
        ".region",
        "torch.compile",
    )
    found = 0
    for words in itertools.product(parts, repeat=3):
        text = "".join(words).encode()
        wanted = textindex._TOKENS.search(text) is not None
        assert textindex._has_token(text) == wanted, text
        found += wanted
    assert found > 1000
