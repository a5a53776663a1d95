"""What is read for its text is known, and begun, before anything else is done."""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Iterable

from sgl_graph.analyzer.static.checkout.project import Project, headers_in
from sgl_graph.analyzer.static.checkout.textindex import TextIndex
from sgl_graph.runtime.mapping import rare_collections

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


def test_collections_are_rare_only_within() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before
