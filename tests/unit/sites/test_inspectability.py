"""What an observer can prove of each primitive: by device, segments, and who owns executable and memory."""

from __future__ import annotations

from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings

from .capturing_programs import BASE, SEGMENTS, TABLE_OF_BASE
from .programs import search


def classes(**modules: str) -> dict[tuple[int, str], str]:
    found = search(**modules)
    classifier = Classifier(found.owners, found.sites)
    return {(site.line, site.role): classifier.classify(site, Surroundings("cuda"))[0] for site in found.sites}


def test_segments_are_inspectable_their_container_is_partial() -> None:
    found = classes(segments=SEGMENTS)
    assert found[43, "capture"] == found[44, "capture"] == found[48, "capture"] == "lifetime-inspectable"
    assert found[26, "replay"] == "lifetime-inspectable"
    assert found[66, "replay"] == "partial"
    assert found[28, "break"] == "unsupported"


def test_an_executable_behind_torch_is_partial() -> None:
    program = """
        from cuda.bindings import runtime as rt

        class Proxy:
            def __init__(self, raw, home):
                self.raw = raw
                self.home = home

            def replay(self, stream=None):
                self.home.launch(self, stream)

        class Home:
            def take(self, raw):
                self.exec = rt.cudaGraphInstantiateWithFlags(raw, 0)
                return Proxy(raw, self)

            def launch(self, proxy, stream):
                rt.cudaGraphExecUpdate(self.exec, proxy.raw)
                rt.cudaGraphLaunch(self.exec, stream)
    """
    found = classes(execs=program)
    assert found[10, "replay"] == found[19, "replay"] == "partial"
    assert {role for _, role in found} == {"replay", "update"}
    assert all(value == "partial" for value in found.values())


def test_other_devices_are_unsupported_also_by_the_test_they_stand_under() -> None:
    program = """
        import torch

        def on_xpu():
            return hasattr(torch, "xpu") and torch.xpu.is_available()

        IS_XPU = on_xpu()

        def begin(pool):
            kind = torch.xpu.XPUGraph if IS_XPU else torch.cuda.CUDAGraph
            graph = kind()
            if IS_XPU:
                graph.capture_begin(pool)
            else:
                graph.capture_begin(pool=pool)
            return graph

        class Ascend:
            def make(self):
                self.graph = torch.npu.NPUGraph()

            def again(self, key):
                self.graph.replay()
    """
    found = classes(devices=program)
    assert found[13, "capture"] == "unsupported"
    assert found[15, "capture"] == "lifetime-inspectable"
    assert found[20, "capture"] == found[23, "replay"] == "unsupported"


def test_nothing_is_inspectable_on_a_device_that_it_is_not_made_for() -> None:
    # Where such code runs all the same, something else stands in the place of torch.cuda's graphs.
    found = search(backend=TABLE_OF_BASE, base=BASE)
    classifier = Classifier(found.owners, found.sites)
    graphs = [site for site in found.sites if site.api.startswith("torch.cuda.")]
    assert graphs
    for device in ("npu", "xpu"):
        answers = {classifier.classify(site, Surroundings(device)) for site in graphs}
        assert {(kind, reason.code) for kind, reason in answers} == {("unsupported", "SGG006")}


def test_a_replay_is_only_observable_where_nodes_cannot_be_read() -> None:
    found = search(backend=TABLE_OF_BASE, base=BASE)
    classifier = Classifier(found.owners, found.sites)
    kinds = {classifier.classify(site, Surroundings("hip"))[0] for site in found.sites if site.role == "replay"}
    assert kinds == {"replay-observable-only"}


def test_the_memory_saver_makes_a_capture_partial_only_when_in_force() -> None:
    program = """
        import torch
        import torch_memory_saver

        class Saver:
            def cuda_graph(self, **kwargs):
                return torch_memory_saver.cuda_graph(**kwargs)

        def take(saver: Saver | None):
            graph = torch.cuda.CUDAGraph()
            context = saver.cuda_graph if saver is not None else torch.cuda.graph
            with context(graph):
                pass
            return graph
    """
    found = search(saver=program)
    classifier = Classifier(found.owners, found.sites)
    entered = next(site for site in found.sites if site.line == 12)
    assert classifier.classify(entered, Surroundings("cuda"))[0] == "lifetime-inspectable"
    assert classifier.classify(entered, Surroundings("cuda", saver_active=True))[0] == "partial"
