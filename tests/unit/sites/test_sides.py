"""Paths of a launch that speculates: of one class of runners, those that are made for the draft, and those for the target."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.records.pathmap import PathEntry
from sgl_graph.analyzer.static.link.driver import link

from .capturing_programs import TABLE
from .linked_paths import RUNNERS, every_path, linked_paths, linked_program

ENTRY = "sglang.srt.scheduler:run"
PREFILL = """
    class PrefillGraphRunner(DecodeGraphRunner):
        pass
"""
WORKERS = """
    from sglang.srt.runners import DecodeGraphRunner, PrefillGraphRunner

    class ModelRunner:
        def __init__(self, name, is_draft_worker=False):
            self.is_draft_worker = is_draft_worker
            self.eager = None
            self.decode = None

        def capture(self, decode=True):
            self.prefill = prefill_of(self)
            capture_all(model_runner=self, decode=decode)

        def capture_again(self):
            if self.decode is not self.eager:
                self.decode = capture_decode(model_runner=self)

    def capture_all(*, model_runner, decode):
        if decode:
            model_runner.decode = capture_decode(model_runner=model_runner)

    def capture_decode(*, model_runner):
        return DecodeGraphRunner(model_runner)

    def prefill_of(model_runner, force=False):
        if model_runner.is_draft_worker and not force:
            return model_runner.eager
        return PrefillGraphRunner(model_runner)

    class Worker:
        def __init__(self, name, is_draft_worker=False):
            self.is_draft_worker = is_draft_worker
            self.model_runner = ModelRunner(name, is_draft_worker=self.is_draft_worker)

        def capture(self, decode=True):
            self.model_runner.capture(decode=decode)

        def update_weights_from_disk(self):
            self.model_runner.capture_again()
"""
#: An algorithm of which the worker makes a second worker; {how} it has that capture.
ALGORITHM = """
    import os
    from sglang.srt.workers import Worker, prefill_of

    class Algorithm:
        def __init__(self, target):
            self.target = target
            self.own = Worker("small", True)

        def capture(self):
            {how}

        def update_weights_from_disk(self):
            self.own.update_weights_from_disk()
"""
SCHEDULER = """
    from sglang.srt.algorithm import Algorithm
    from sglang.srt.workers import Worker

    class Scheduler:
        def __init__(self):
            self.worker = Worker("big")
            self.algorithm = Algorithm(self.worker)
            self.worker.capture()
            self.algorithm.capture()

        def event_loop(self):
            while True:
                self.handle()

        def handle(self):
            self.administer()

        def administer(self):
            self.worker.update_weights_from_disk()
            self.algorithm.update_weights_from_disk()

    def run():
        Scheduler().event_loop()
"""


def _program(how: str) -> dict[str, str]:
    return {
        "runners": RUNNERS + PREFILL,
        "workers": WORKERS,
        "algorithm": ALGORITHM.format(how=how),
        "scheduler": SCHEDULER,
    }


def _paths(how: str) -> dict[str, PathEntry]:
    return linked_paths(ENTRY, _program(how), algorithm="ANY")


def _calls(path: PathEntry) -> list[str]:
    return [ref.qualname.partition(":")[2] for ref in path.chain]


def test_a_draft_that_captures_with_the_targets_class_has_a_path_of_its_own() -> None:
    found = _paths("self.own.capture()")
    assert set(found) == {"draft:verify", "target:verify", "target:prefill-full"}
    draft, target = found["draft:verify"], found["target:verify"]
    assert (draft.runner, draft.backend, draft.reachable, draft.trigger) == (
        "DecodeGraphRunner", "Table", "yes", "startup",
    )  # fmt: skip
    assert draft.sites == target.sites
    assert draft.label == target.label
    assert draft.label.buckets == (1, 2)
    recording = ["DecodeGraphRunner.__init__", "DecodeGraphRunner.record_all", "Table.record"]
    assert _calls(draft) == [
        "run", "Scheduler.__init__", "Algorithm.capture", "Worker.capture", "ModelRunner.capture", "capture_all",
        "capture_decode", *recording,
    ]  # fmt: skip
    assert _calls(target) == [
        "run", "Scheduler.__init__", "Worker.capture", "ModelRunner.capture", "capture_all", "capture_decode", *recording,
    ]  # fmt: skip


def test_a_draft_that_is_told_not_to_capture_has_none() -> None:
    # Administration captures again what there is: of the draft there is nothing.
    assert set(_paths("self.own.capture(decode=False)")) == {"target:verify", "target:prefill-full"}


def test_a_draft_captures_what_its_own_worker_forces() -> None:
    found = _paths("self.own.capture(decode=False); self.kept = prefill_of(self.own.model_runner, force=True)")
    assert set(found) == {"draft:prefill-full", "target:verify", "target:prefill-full"}
    assert _calls(found["draft:prefill-full"])[2:4] == ["Algorithm.capture", "prefill_of"]


@pytest.mark.parametrize(
    ("how", "expected"),
    [("self.own.capture(decode=os.path.exists('x'))", "yes"), ("self.own.capture(decode=False)", None)],
)
def test_what_only_running_code_can_tell_leaves_the_draft_certain(how: str, expected: str | None) -> None:
    found = _paths(how).get("draft:verify")
    assert (found.reachable if found is not None else None) == expected


def test_the_linker_tells_the_sides_apart() -> None:
    _, linked = linked_program(ENTRY, _program("self.own.capture()"))
    sides = linked.sides["sglang.srt.runners:DecodeGraphRunner"]
    assert {side: making.truth.value for side, making in sides.items()} == {False: "true", True: "true"}
    ways = [[step.caller.partition(":")[2] for step in way] for way in sides[True].ways]
    assert ways == [
        ["Algorithm.capture", "Worker.capture", "ModelRunner.capture", "capture_all", "capture_decode"],
        ["Algorithm.update_weights_from_disk", "Worker.update_weights_from_disk", "ModelRunner.capture_again",
         "capture_decode"],
    ]  # fmt: skip
    prefill = linked.sides["sglang.srt.runners:PrefillGraphRunner"]
    assert set(prefill) == {False}


#: Runners that keep their graphs themselves, as older releases have them.
SERVING_THEMSELVES = (
    TABLE.replace("class Table", "class DecodeGraphRunner").replace(
        "self.kept = {}", "self.kept = {}\n            self.record(1, lambda: None)"
    )
    + PREFILL
)


@pytest.mark.parametrize(
    ("before", "after", "draft"),
    [
        ("settings.disable_cuda_graph = True", "settings.disable_cuda_graph = kept", False),
        ("settings.disable_cuda_graph = False", "settings.disable_cuda_graph = kept", True),
        ("settings.disable_cuda_graph = True\n            settings.disable_cuda_graph = kept", "pass", True),
        ("pass", "settings.disable_cuda_graph = True", True),
        ("settings.other = True", "pass", True),
    ],
)
def test_captures_that_are_turned_off_while_the_draft_is_made_are_not_the_drafts(
    before: str, after: str, draft: bool
) -> None:
    how = f"""
            kept = settings.disable_cuda_graph
            {before}
            self.own.capture()
            {after}
    """
    algorithm = ALGORITHM.format(how=how.strip()).replace(
        "import os", "import os\n    from sglang.srt.settings import settings"
    )
    program = _program("pass") | {
        "algorithm": algorithm,
        "settings": "class Settings:\n    pass\n\nsettings = Settings()\n",
        "runners": SERVING_THEMSELVES.replace("def __init__(self)", "def __init__(self, model_runner)"),
    }
    assert ("draft:verify" in linked_paths(ENTRY, program, algorithm="ANY")) is draft


def test_without_the_parameter_nothing_is_told_apart() -> None:
    project, _ = linked_program(ENTRY, _program("self.own.capture()"))
    linked = link(project, [ENTRY], kept_externals=("torch.cuda",))
    assert linked.sides == {}


def test_what_a_base_refuses_is_refused_for_every_class_on_it() -> None:
    program = KEEPING.format(refusal=f"if self.model_runner.is_draft_worker: {REFUSING}").replace(
        "self.graphs = CudaGraphRunner(self)", "self.graphs = OtherCudaGraphRunner(self)"
    )
    found = linked_paths("sglang.srt.keeping:run", {"keeping": program + DERIVED}, algorithm="ANY")
    assert set(found) == {"target:verify"}


def test_a_base_of_which_no_object_is_made_captures_for_the_class_on_it_alone() -> None:
    program = KEEPING.format(refusal="pass").replace(
        "self.graphs = CudaGraphRunner(self)", "self.graphs = OtherCudaGraphRunner(self)"
    )
    found = every_path("sglang.srt.keeping:run", {"keeping": program + DERIVED}, algorithm="ANY")
    assert {(path.name, path.runner) for path in found} == {
        ("draft:verify", "OtherCudaGraphRunner"), ("target:verify", "OtherCudaGraphRunner"),
    }  # fmt: skip


#: A runner that keeps its graphs itself, and workers that all make one; a constructor may refuse the draft's.
KEEPING = """
    import os
    import torch

    class CudaGraphRunner:
        def __init__(self, model_runner):
            self.model_runner = model_runner
            self.graphs = {{}}
            {refusal}
            for size in (1, 2):
                self.capture_one(size)

        def capture_one(self, size):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                print(size)
            self.graphs[size] = graph

        def replay(self, size):
            self.graphs[size].replay()

    class ModelRunner:
        def __init__(self, name, is_draft_worker=False):
            self.is_draft_worker = is_draft_worker
            self.graphs = CudaGraphRunner(self)

    class Draft:
        def __init__(self):
            self.own = ModelRunner("small", is_draft_worker=True)

    def run():
        target = ModelRunner("big")
        draft = Draft()
        target.graphs.replay(1)
"""
DERIVED = """
    class OtherCudaGraphRunner(CudaGraphRunner):
        def __init__(self, model_runner):
            super().__init__(model_runner)

        def capture_one(self, size):
            super().capture_one(size)
"""
REFUSING = "raise RuntimeError('never')"
OPEN = "os.path.exists('x')"


@pytest.mark.parametrize(
    ("refusal", "names"),
    [
        ("pass", {"draft:verify", "target:verify"}),
        (f"if self.model_runner.is_draft_worker: {REFUSING}", {"target:verify"}),
        (f"if {OPEN} and self.model_runner.is_draft_worker: {REFUSING}", {"target:verify"}),
        (f"if not self.model_runner.is_draft_worker: {REFUSING}", {"draft:verify", "target:verify"}),
        (f"if {OPEN}: {REFUSING}", {"draft:verify", "target:verify"}),
        (f"if {OPEN} or self.model_runner.is_draft_worker: {REFUSING}", {"draft:verify", "target:verify"}),
        (f"if self.model_runner.is_draft_worker and 1 > 2: {REFUSING}", {"draft:verify", "target:verify"}),
    ],
)
def test_a_runner_that_keeps_its_graphs_itself_works_for_the_draft_where_it_does_not_refuse(
    refusal: str, names: set[str]
) -> None:
    found = linked_paths("sglang.srt.keeping:run", {"keeping": KEEPING.format(refusal=refusal)}, algorithm="ANY")
    assert set(found) == names
    if "draft:verify" in names:
        assert _calls(found["draft:verify"]) == [
            "run", "Draft.__init__", "ModelRunner.__init__", "CudaGraphRunner.__init__", "CudaGraphRunner.capture_one",
        ]  # fmt: skip
    assert _calls(found["target:verify"]) == [
        "run", "ModelRunner.__init__", "CudaGraphRunner.__init__", "CudaGraphRunner.capture_one",
    ]  # fmt: skip
