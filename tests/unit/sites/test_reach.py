"""Whether split points are reached: where a wrapper is made says nothing, where it is called does."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.records.pathmap import Reach
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.linked import Truth
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.reach import Reachability, Reached
from sgl_graph.analyzer.static.paths.splits import settled_splits
from sgl_graph.analyzer.static.sites.graphtypes import GraphTypes
from sgl_graph.analyzer.static.sites.rawsite import RawSite
from sgl_graph.analyzer.static.sites.search import find_sites

from .programs import MemorySources
from .test_sites import SEGMENTS

MODEL = """
    from sglang.srt.segments import split

    def _used(x):
        return x

    def _unused(x):
        return x

    used = split(_used)
    spare = split(_unused)

    @split
    def decorated(x):
        return x

    @split
    def idle(x):
        return x

    class Layer:
        attend = split(_used)
        rest = split(_unused)

        def forward(self, x):
            return self.attend(x)

    def run():
        decorated(used(1))
        Layer().forward(2)
"""


def test_a_split_point_is_reached_where_its_wrapper_is_called() -> None:
    files = {"sglang/srt/segments.py": SEGMENTS, "sglang/srt/model.py": MODEL}
    project = Project(MemorySources(files))
    entry = "sglang.srt.model:run"
    reach = Reachability(link(project, [entry]), [entry])
    lines = MODEL.split("\n")
    found = {
        lines[site.line - 1].strip(): reach.of_site(site).reachable
        for site in find_sites(project).sites
        if site.role == "break" and site.scope.module.name.endswith("model")
    }
    assert found == {
        "used = split(_used)": "yes",
        "spare = split(_unused)": "no",
        "def decorated(x):": "yes",
        "def idle(x):": "no",
        "attend = split(_used)": "yes",
        "rest = split(_unused)": "no",
    }


CHOOSING = """
    from sglang.srt.segments import Recording, Segments, current, split

    def _used(x):
        return x

    def _unused(x):
        return x

    usual = split(_used)
    special = split(_unused)

    class Shape:
        def __init__(self):
            self.special = False

    def run(shape: Shape = Shape()):
        operation = special if shape.special else usual
        return operation(1)

    def record():
        recording = Recording(Segments())
        current.set(recording)
        with recording:
            run()
"""


def answers(entry: str, text: str) -> dict[str, tuple[str, str]]:
    """Answer and reason for each split point of a program that stands on `SEGMENTS`, by the line that makes it."""
    project = Project(MemorySources({"sglang/srt/segments.py": SEGMENTS, "sglang/srt/model.py": text}))
    entry = f"sglang.srt.model:{entry}"
    reach = Reachability(link(project, [entry]), [entry])
    sites = find_sites(project).sites
    found = settled_splits(sites, [reach.of_site(site) for site in sites])
    lines = text.split("\n")
    return {
        lines[site.line - 1].strip(): (answer.reachable, answer.why)
        for site, answer in zip(sites, found, strict=True)
        if site.role == "break" and site.scope.module.name.endswith("model")
    }


def test_a_split_point_is_reached_where_its_wrapper_is_chosen_and_then_called() -> None:
    assert answers("record", CHOOSING) == {
        "usual = split(_used)": ("yes", "called from the worker's entry"),
        "special = split(_unused)": ("no", "nothing that runs calls it: only its wrapper is made"),
    }


def test_nothing_is_split_where_no_segmented_graph_is_recorded() -> None:
    answer, why = answers("run", CHOOSING)["usual = split(_used)"]
    assert answer == "no"
    assert why.startswith("its wrapper splits no graph: ")


@pytest.mark.parametrize("end", ["unresolved", "no"])
def test_what_a_wrapper_does_between_segments_rests_on_whether_it_ends_one(end: Reach) -> None:
    sites = find_sites(Project(MemorySources({"sglang/srt/segments.py": SEGMENTS}))).sites
    given = [Reached(end if site.form == "segment-end" else "yes", "startup", site.form) for site in sites]
    found = {site.form: answer.reachable for site, answer in zip(sites, settled_splits(sites, given), strict=True)}
    assert {found[form] for form in ("segment-end", "break-record", "break-point")} == {end}
    assert found["eager-between"] == found["replay"] == "yes"


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


STARTING = """
    import torch

    ENABLED = {enabled}

    class Table:
        def __init__(self):
            self.kept = {{}}

        def capture(self, key, fn):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                fn()
            self.kept[key] = graph

        def replay(self, key):
            self.kept[key].replay()

    class Runner:
        def __init__(self):
            self.table = Table()
            self.table.capture(1, print)

        def execute(self):
            self.table.replay(1)

    def begin_graphs():
        if ENABLED:
            Runner().execute()

    def boot_graphs():
        begin_graphs()

    def run():
        boot_graphs()
"""


@pytest.mark.parametrize(("enabled", "expected"), [(True, "yes"), (False, "no")])
def test_a_call_that_starts_captures_is_reached_where_there_are_some(enabled: bool, expected: str) -> None:
    project = Project(MemorySources({"sglang/srt/server.py": STARTING.format(enabled=enabled)}))
    entry = "sglang.srt.server:run"
    reach = Reachability(link(project, [entry], kept_externals=("torch.cuda",)), [entry])
    sites = find_sites(project).sites
    found = reach.settled_entries(sites, [reach.of_site(site) for site in sites])
    answers = {site.api: answer for site, answer in zip(sites, found, strict=True) if site.form == "entry"}
    assert {api: answer.reachable for api, answer in answers.items()} == {
        "begin_graphs": expected,
        "boot_graphs": expected,
    }
    assert all(answer.why == "what it calls captures nothing in this configuration" for answer in answers.values()) is (
        not enabled
    )
    assert {a.reachable for s, a in zip(sites, found, strict=True) if s.form == "constructor"} == {expected}


def test_a_split_point_that_only_doubtful_code_calls_is_open() -> None:
    files = {"sglang/srt/segments.py": SEGMENTS, "sglang/srt/model.py": MODEL}
    project = Project(MemorySources(files))
    entry = "sglang.srt.model:run"
    linked = link(project, [entry])
    # Making the wrappers is certain; what calls them is not.
    linked.reached |= dict.fromkeys((entry, "sglang.srt.model:Layer.forward"), Truth.UNKNOWN)
    reach = Reachability(linked, [entry])
    lines = MODEL.split("\n")
    found = {
        lines[site.line - 1].strip(): reach.of_site(site).reachable
        for site in find_sites(project).sites
        if site.role == "break" and site.scope.module.name.endswith("model")
    }
    assert {answer for answer in found.values() if answer != "no"} == {"unresolved"}
    assert found["used = split(_used)"] == found["attend = split(_used)"] == "unresolved"


REGISTRY = """
    OPERATORS = []

    def register_split_op():
        def register(operator):
            OPERATORS.append(operator.__name__)
            return operator
        return register

    class Cuts:
        def __init__(self):
            self.names = list(OPERATORS)
"""
OPERATORS = """
    from sglang.srt.registry import Cuts, register_split_op

    @register_split_op()
    def attend(x):
        return x

    @register_split_op()
    def idle(x):
        return x

    def eager():
        attend(1)

    def compiled(config):
        if config.pieces:
            Cuts()
        attend(1)

    def cut():
        Cuts()
        attend(1)
"""


@pytest.mark.parametrize(("entry", "expected"), [("cut", "yes"), ("eager", "no")])
def test_an_operator_cuts_a_graph_where_what_is_registered_is_read(entry: str, expected: str) -> None:
    """Its module mentions no graph, and is found all the same."""
    project = Project(MemorySources({"sglang/srt/registry.py": REGISTRY, "sglang/srt/model.py": OPERATORS}))
    home = "sglang.srt.model:"
    reach = Reachability(link(project, [home + entry]), [home + entry])
    found = {site.scope.name: reach.of_site(site) for site in find_sites(project).sites if site.role == "break"}
    assert {name: answer.reachable for name, answer in found.items()} == {
        home + "attend": expected,
        home + "idle": "no",
    }
    if expected == "no":
        unread = "no graph is cut at operators: nothing that runs reads which are registered"
        assert found[home + "attend"].why == unread


def test_an_operator_is_open_where_only_doubtful_code_reads_what_is_registered() -> None:
    project = Project(MemorySources({"sglang/srt/registry.py": REGISTRY, "sglang/srt/model.py": OPERATORS}))
    home = "sglang.srt.model:"
    linked = link(project, [home + "cut"])
    linked.reached["sglang.srt.registry:Cuts.__init__"] = Truth.UNKNOWN
    reach = Reachability(linked, [home + "cut"])
    found = {site.scope.name: reach.of_site(site) for site in find_sites(project).sites if site.role == "break"}
    assert found[home + "attend"].reachable == "unresolved"


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


ENCODING = """
    import torch

    class Encoder:
        def __init__(self):
            self.graphs = {}

        def encode(self, shape):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                print(shape)
            self.graphs[shape] = graph

    def run_encoder():
        encoder = Encoder()
        while True:
            encoder.encode(1)

    def launch_encoder():
        run_encoder()
"""


def test_what_an_encoder_captures_in_its_loop_is_captured_by_a_request() -> None:
    project = Project(MemorySources({"sglang/srt/server.py": ENCODING}))
    entry = "sglang.srt.server:launch_encoder"
    reach = Reachability(link(project, [entry], kept_externals=("torch.cuda",)), [entry])
    found = {site.form: reach.of_site(site) for site in find_sites(project).sites if site.role == "capture"}
    assert {form: (answer.reachable, answer.trigger) for form, answer in found.items()} == {
        "constructor": ("yes", "request"),
        "context": ("yes", "request"),
    }
