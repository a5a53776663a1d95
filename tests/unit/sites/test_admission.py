"""How much padding a runner accepts, read from the statement that refuses more."""

from __future__ import annotations

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.paths.admission import PaddingLimit, left_to_eager, padding_limit
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes

from .programs import MemorySources

RUNNERS = """
    FACTOR = 2

    class Base:
        def fits(self, tokens):
            if tokens > self.most:
                return False
            padded = self.pad(tokens, self.sizes)
            if padded > tokens * FACTOR:
                return False
            return True

    class Prefill(Base):
        pass

    class Generous(Base):
        def fits(self, tokens):
            padded = self.pad(tokens, self.sizes)
            if 3.5 * tokens <= padded:
                self.count += 1
            if padded >= 4 * tokens:
                return False
            return True

    class Other:
        def grows(self, tokens):
            used = self.used
            if used > tokens * FACTOR:
                return False
            return True
"""


def limit(name: str) -> PaddingLimit | None:
    types = GraphTypes(Project(MemorySources({"runners.py": RUNNERS})), ["runners"])
    return padding_limit(types, f"runners:{name}")


def test_the_limit_is_that_of_the_nearest_class() -> None:
    assert limit("Prefill") == PaddingLimit(2.0, "runners.py", 9, "runners:Base.fits")
    assert limit("Generous") == PaddingLimit(4.0, "runners.py", 21, "runners:Generous.fits")


def test_a_comparison_with_something_that_is_no_captured_size_is_no_limit() -> None:
    assert limit("Other") is None


def test_batches_between_the_sizes() -> None:
    found = limit("Prefill")
    assert list(left_to_eager((16, 64, 256), found)) == [(1, 7), (17, 31), (65, 127)]
    assert list(left_to_eager((4, 8, 12), found)) == [(1, 1)]
    assert list(left_to_eager((1, 2, 4), found)) == []
    assert list(left_to_eager((16, 64), None)) == []
