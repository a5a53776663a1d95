"""Labels of a launch of which the source leaves open how start-up captures something, and not that it does."""

from __future__ import annotations

import textwrap

import pytest
from sgl_graph.analyzer.records.pathmap import CheckoutIdentity, DeviceFacts, PathMap
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.link.moments import Serving
from sgl_graph.analyzer.static.paths.reach import _ADMIN, _LOOPS
from sgl_graph.analyzer.static.preflight import Request, build

from .linked_paths import RUNNERS
from .programs import MemorySources

#: Two ways to capture the same, and a runner that captures something else.
KINDS = """
    from sglang.srt.runners import DecodeGraphRunner

    class WholeDraftExtendGraphRunner(DecodeGraphRunner):
        def record_all(self):
            self.table.record(1, lambda: self.forward(1))

    class SteppedDraftExtendGraphRunner(DecodeGraphRunner):
        def record_all(self):
            for step in (1, 2):
                self.table.record(step, lambda: self.forward(step))

    class TargetVerifyGraphRunner(DecodeGraphRunner):
        pass
"""
SCHEDULER = """
    import ext
    from sglang.srt.kinds import SteppedDraftExtendGraphRunner, TargetVerifyGraphRunner, WholeDraftExtendGraphRunner

    class Scheduler:
        def __init__(self):
            self.backends = ext.backends()
            if all(backend.refreshes for backend in self.backends):
                self.extension = WholeDraftExtendGraphRunner(self)
            else:
                self.extension = {other}(self)

        def event_loop(self):
            while True:
                self.extension.step(1)

    def run_scheduler_process():
        Scheduler().event_loop()
"""


def _map(other: str, *, model_known: bool = True) -> PathMap:
    modules = {"runners": RUNNERS, "kinds": KINDS, "managers/scheduler": SCHEDULER.format(other=other)}
    files = {f"sglang/srt/{name}.py": textwrap.dedent(text) for name, text in modules.items()}
    project = Project(MemorySources(files))
    request = Request(
        CheckoutIdentity(root="x", layout="installed", digest="0" * 64),
        (),
        {},
        DeviceFacts(name="cuda", source="flag", kind="cuda"),
        model_known,
    )
    found, _ = build(
        project,
        request,
        None,
        lambda entries, capturing: link(
            project, entries, kept_externals=("torch.cuda",), serving=Serving(_LOOPS, _ADMIN), capturing=capturing
        ),
    )
    return found


@pytest.mark.parametrize(
    ("other", "labels"), [("SteppedDraftExtendGraphRunner", ("draft:draft-extend",)), ("TargetVerifyGraphRunner", ())]
)
def test_what_both_ways_capture_is_expected_though_neither_is_certain(other: str, labels: tuple[str, ...]) -> None:
    found = _map(other)
    assert [path.reachable for path in found.paths] == ["unresolved"] * 2
    assert found.labels == labels
    assert [item.labels for item in found.traffic] == ([labels] if labels else [])


def test_nothing_is_expected_either_way_while_the_model_is_not_known() -> None:
    found = _map("SteppedDraftExtendGraphRunner", model_known=False)
    assert [path.reachable for path in found.paths] == ["unresolved"] * 2
    assert found.labels == ()
    assert found.traffic == ()
