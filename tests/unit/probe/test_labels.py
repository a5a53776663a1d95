"""Labels and sites: the map against real frames."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sgl_graph.runtime.probe import frames
from sgl_graph.runtime.probe.expressions import Unevaluable, evaluate
from sgl_graph.runtime.probe.labels import LabelReader

HERE = "tests/unit/probe/test_labels.py"


@dataclass
class Key:
    size: int
    stream: int | None = None
    variant: str | None = None


class Runner:
    def __init__(self, key: Any) -> None:
        self.key = key

    def capture(self) -> FrameType:
        return sys._getframe()

    def drive(self) -> FrameType:
        shape = self.key
        assert shape is not None
        return self.enter()

    def enter(self) -> FrameType:
        return sys._getframe()


def pathmap(expression: str, qualname: str = "tests.unit:Runner.enter", **path: Any) -> dict[str, Any]:
    site = {"id": "s1", "file": HERE, "line": 40, "qualname": qualname, "role": "capture"}
    base = {"id": "p1", "sites": ["s1"], "name": "target:decode", "label": {"expression": expression}}
    return {"sites": [site], "paths": [base | path]}


@pytest.mark.parametrize(
    ("key", "label"),
    [
        (8, "target:decode@8"),
        (Key(16), "target:decode@16"),
        (Key(16, variant="lora"), "target:decode/lora@16"),
        ((4, "chunked"), "target:decode/chunked@4"),
        ("eager", "target:decode/eager"),
    ],
)
def test_the_label_is_read_from_the_frame_or_its_callers(key: Any, label: str) -> None:
    found = LabelReader(pathmap("shape")).read(Runner(key).drive())
    assert (found.label, found.path) == (label, "p1")
    assert found.site is not None and found.site["id"] == "s1"


def test_attributes_and_subscripts_are_followed() -> None:
    runner = Runner({"sizes": [1, 2]})
    assert LabelReader(pathmap("self.key['sizes'][1]")).read(runner.drive()).label == "target:decode@2"


def test_no_site_no_label_and_no_value_no_label() -> None:
    assert LabelReader(pathmap("shape", "x:Runner.other")).read(Runner(1).drive()).site is None
    missing = LabelReader(pathmap("nowhere")).read(Runner(1).drive())
    assert missing.site is not None and missing.label is None
    assert LabelReader(None).read(sys._getframe()).site is None


def test_a_function_inside_a_function_is_named_as_maps_name_it() -> None:
    """Maps leave out `<locals>`, which Python's own names hold."""

    class Local:
        def capture(self, size: int) -> FrameType:
            def body() -> FrameType:
                return sys._getframe()

            return body()

    inside = "test_a_function_inside_a_function_is_named_as_maps_name_it.Local.capture.body"
    for spelled in (
        inside,
        "test_a_function_inside_a_function_is_named_as_maps_name_it.<locals>.Local.capture.<locals>.body",
    ):
        raw = pathmap(
            "size", f"x:{spelled}", chain=[{"file": HERE, "line": 1, "qualname": f"x:{spelled.rpartition('.')[0]}"}]
        )
        assert LabelReader(raw).read(Local().capture(4)).label == "target:decode@4"


def test_of_two_paths_over_a_site_the_call_chain_decides() -> None:
    raw = pathmap("shape", chain=[{"file": HERE, "line": 1, "qualname": "t:Runner.drive"}])
    other = {**raw["paths"][0], "id": "p2", "name": "draft:decode"}
    other["chain"] = [{"file": HERE, "line": 1, "qualname": "t:Draft.drive"}]
    raw["paths"].append(other)
    assert LabelReader(raw).read(Runner(1).drive()).label == "target:decode@1"
    for path in raw["paths"]:
        path["chain"] = []
    undecided = LabelReader(raw).read(Runner(1).drive())
    assert undecided.label is None and undecided.path is None


def test_of_two_chains_that_the_stack_bears_out_the_longer_counts() -> None:
    """The draft's worker has the target's own worker class capture, with the target's runner class."""
    raw = pathmap("shape", chain=[{"file": HERE, "line": 1, "qualname": "t:Runner.drive"}])
    around = {"file": HERE, "line": 1, "qualname": f"t:{_drafted.__qualname__}"}
    other = {**raw["paths"][0], "id": "p2", "name": "draft:decode"}
    raw["paths"].append({**other, "chain": [around, *raw["paths"][0]["chain"]]})
    assert LabelReader(raw).read(_drafted(Runner(1))).label == "draft:decode@1"
    assert LabelReader(raw).read(Runner(1).drive()).label == "target:decode@1"


def _drafted(runner: Runner) -> FrameType:
    return runner.drive()


@pytest.mark.parametrize(
    "text", ["f()", "a + b", "[x for x in y]", "lambda: 1", "__import__('os')", "a if b else c", ")"]
)
def test_nothing_that_runs_code_is_evaluated(text: str) -> None:
    with pytest.raises(Unevaluable):
        evaluate(text, {"a": 1, "b": 2, "c": 3, "f": lambda: 1 / 0, "y": []})


def test_constants_and_signs() -> None:
    assert evaluate("(a, -1, 'x', None)", {"a": 3}) == (3, -1, "x", None)


def test_stacks_keep_the_program_and_lose_the_probe_and_the_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = str(Path(frames.__file__).parent / "inspectors" / "cuda.py")

    class Torch:
        __file__ = "/site-packages/torch/__init__.py"

    monkeypatch.setitem(sys.modules, "torch", Torch)  # type: ignore[arg-type]
    raw = [
        {"filename": probe, "line": 1, "name": "probe"},
        {"filename": "/site-packages/torch/cuda/graphs.py", "line": 2, "name": "capture"},
        {"filename": "/opt/torch/program.py", "line": 3, "name": "main"},
    ]
    assert frames.from_trace(raw) == [["/opt/torch/program.py", 3, "main"]]
    assert frames.from_trace(raw[:2]) == [["/site-packages/torch/cuda/graphs.py", 2, "capture"]]
    assert frames.here()[0][2].endswith("and_lose_the_probe_and_the_framework")
