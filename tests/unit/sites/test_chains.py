"""Chains to a capture: the one that is shown, and who on it bounds the sizes."""

from __future__ import annotations

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.rawsite import RawSite

from .capturing_programs import SEGMENTS
from .programs import MemorySources

SERVING = """
    def capture():
        pass

    def begin():
        capture()

    def prepare():
        begin()

    def update_weights():
        capture()

    def capture_late():
        pass

    def event_loop():
        update_weights()
        capture_late()

    def run():
        prepare()
        event_loop()
"""


def test_a_chain_leads_through_start_up_where_start_up_leads_there() -> None:
    """The chain through the serving loop is as short, and says nothing of what happens first."""
    home = "sglang.srt.worker:"
    project = Project(MemorySources({"sglang/srt/worker.py": SERVING}))
    linked = link(project, [home + "run"])
    chains = Chains(linked, Reachability(linked, [home + "run"]), [home + "run"])

    def functions(name: str) -> list[str]:
        return [step.qualname.removeprefix(home) for step in chains.to_function([home + name])]

    assert functions("capture") == ["run", "prepare", "begin", "capture"]
    assert functions("capture_late") == ["run", "event_loop", "capture_late"]


RUNNERS = """
    from sglang.srt.table import Table

    def get_sizes_to_capture(runner):
        sizes = [1, 2, 4]
        most = runner.pool.size
        return [n for n in sizes if n <= most]

    def get_tokens_to_capture(tokens):
        return sorted(set(tokens))

    class Base:
        def __init__(self, config):
            self.sizes = get_sizes_to_capture(config)

    class Decode(Base):
        pass

    class Prefill(Base):
        def __init__(self, config):
            self.tokens = get_tokens_to_capture(config.tokens)

    class Several:
        def __init__(self, config):
            self.runners = [self.make(config)]

        def make(self, config):
            return DecodeRunner(config)

    class DecodeRunner(Base):
        pass

    def make_prefill(config):
        bound = config.requests * config.length
        fitting = sorted(n for n in config.tokens if n <= bound)
        return Prefill(config)

    def make_plain(config):
        return Prefill(config)
"""


def test_sizes_are_clamped_where_the_nearest_class_makes_them_or_its_maker_did() -> None:
    project = Project(MemorySources({"sglang/srt/table.py": SEGMENTS, "sglang/srt/runners.py": RUNNERS}))
    types = GraphTypes(project, ["sglang.srt.runners"])
    chains = Chains(None, None, [])
    home = "sglang.srt.runners:"
    assert chains.clamp_of(types, home + "Decode") == chains.clamp_of(types, home + "Several") == "runner.pool.size"
    assert chains.clamp_of(types, home + "Prefill") is None

    def maker(name: str) -> RawSite:
        return RawSite(types.scopes[home + name], 1, "capture", "runner", "Prefill", frozenset())

    assert chains.clamp_of(types, home + "Prefill", [maker("make_prefill")]) == "config.requests * config.length"
    assert chains.clamp_of(types, home + "Prefill", [maker("make_plain")]) is None


BOUNDS = """
    def get_sizes_to_capture(runner):
        sizes = [n for n in (1, 2, 4) if n <= runner.asked]
        return [n for n in sizes if n <= runner.pool.size]

    class Decode:
        def __init__(self, runner):
            self.sizes = get_sizes_to_capture(runner)
"""


def test_the_last_bound_is_the_one_that_clamps() -> None:
    types = GraphTypes(Project(MemorySources({"sglang/srt/runners.py": BOUNDS})), ["sglang.srt.runners"])
    assert Chains(None, None, []).clamp_of(types, "sglang.srt.runners:Decode") == "runner.pool.size"
