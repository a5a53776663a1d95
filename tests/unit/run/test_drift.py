"""Drift stands beside the verdicts: dispatch, captures, paths, classes, and ranks that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.reconcile.dispatch import dispatch_table
from sgl_graph.analyzer.reconcile.drift import drift
from sgl_graph.analyzer.reconcile.mapview import MapView
from sgl_graph.analyzer.reconcile.observed import observed_map, path_rows
from sgl_graph.analyzer.reconcile.worker_source import worker_source

from .builders import worker


def view(**more: Any) -> MapView:
    path = {
        "id": "p1", "name": "target:decode", "family": "decode", "worker": "scheduler", "runner": "target", "backend": "full",
        "reachable": "yes", "inspectability": "lifetime-inspectable", "sites": ["s1"],
        "label": {"variants": [None, "lora"], "buckets": [1, 2], "buckets_from": {"file": "f.py", "line": 3}},
        **more.pop("path", {}),
    }  # fmt: skip
    body = {"schema": "sgl-graph.path-map/1", "paths": [path], "config": more.pop("config", []), **more}
    return MapView.parse(json.dumps(body).encode(), "map")


def kinds(made: MapView, workers: list[Any], info: dict[str, Any] | None = None) -> list[str]:
    return [d.kind for d in drift(made, workers, info)]


BOTH = ["target:decode@1", "target:decode@2"]


def test_a_run_as_predicted_drifts_nowhere() -> None:
    assert kinds(view(), [worker(captured=BOTH, replayed=[0, 1])]) == []
    [row] = path_rows(view(), [worker(captured=BOTH, replayed=[0, 1])])
    assert (row["status"], row["unreplayed"]) == ("verified", [])


def test_each_difference_has_its_kind() -> None:
    assert kinds(view(), [worker(captured=BOTH, replayed=[0])]) == ["bucket-unreplayed"]
    assert kinds(view(), [worker(captured=["target:decode@1"], replayed=[0])]) == ["buckets"]
    assert kinds(view(), [worker(captured=[], replayed=[])]) == ["path-unexecuted"]
    assert kinds(view(), [worker(captured=[*BOTH, "draft:decode@1"], replayed=[0, 1, 2])]) == ["unmapped-capture"]
    assert kinds(view(), [worker(captured=BOTH, replayed=[0, 1], complete=False)]) == ["class"]
    assert "reachability" in kinds(view(path={"reachable": "no"}), [worker(captured=BOTH, replayed=[0, 1])])
    assert kinds(view(path={"inspectability": "unsupported"}), [worker(captured=BOTH, replayed=[0, 1])]) == ["class"]


def test_ranks_that_differ_are_named() -> None:
    found = drift(view(), [worker("w0", BOTH, [0, 1]), worker("w1", BOTH, [0])], None)
    [between] = [d for d in found if d.kind == "workers-differ"]
    assert (between.subject, between.observed) == ("target:decode@2", "not replayed on w1")


@pytest.mark.parametrize(
    ("item", "info", "status", "drifts"),
    [
        ({"value": None, "source": "unresolved", "predicted": "triton"}, {"x": "triton"}, "confirmed", []),
        ({"value": None, "source": "unresolved", "predicted": "triton"}, {"x": "fa3"}, "differs", ["dispatch"]),
        ({"value": None, "source": "unresolved", "predicted": None}, {"x": "fa3"}, "settled by the server", []),
        ({"value": None, "source": "unresolved", "predicted": "triton"}, {}, "not reported", []),
        ({"value": 4, "source": "flag", "automatic": True, "predicted": None}, {"x": 5}, "differs", ["dispatch"]),
    ],
)
def test_dispatch(item: dict[str, Any], info: dict[str, Any], status: str, drifts: list[str]) -> None:
    made = view(config=[{"name": "x", "automatic": True, **item}], paths=[])
    assert [row["status"] for row in dispatch_table(made, info)] == [status]
    assert kinds(made, [], info) == drifts


@pytest.mark.parametrize(
    ("predicted", "reported", "drifts"),
    [
        ([{"id": None, "name": "a"}], [{"id": "5f0c", "name": "a"}], []),
        ([{"id": None, "name": "a"}], [{"id": "5f0c", "name": "b"}], ["setting"]),
        ([{"id": None}], [{"id": "5f0c"}, {"id": "77aa"}], ["setting"]),
        ({"a": None}, {"b": 1}, ["setting"]),
        ([1, 2], [1, 2], []),
        ([1, 2], [2, 1], ["setting"]),
        (["q_proj", "v_proj"], ["v_proj", "q_proj"], []),
        (["q_proj", "v_proj"], ["v_proj"], ["setting"]),
        (["q_proj", "v_proj"], ["q_proj", "k_proj"], ["setting"]),
        (["a", "a", "b"], ["a", "b", "b"], ["setting"]),
        ([[1], {"x": [None, 2]}], [[1], {"x": [9, 2]}], []),
    ],
)
def test_members_that_no_source_tells_differ_from_nothing(predicted: Any, reported: Any, drifts: list[str]) -> None:
    """A random identity inside a setting is null in the map."""
    made = view(config=[{"name": "x", "value": predicted, "source": "flag", "automatic": False, "predicted": None}])
    assert kinds(made, [worker(captured=BOTH, replayed=[0, 1])], {"x": reported}) == drifts


def test_nested_settings_are_looked_up_by_their_dotted_name() -> None:
    config = [{"name": "g.decode.backend", "value": "full", "source": "default"}]
    found = drift(view(config=config, paths=[]), [], {"g": {"decode": {"backend": "disabled"}}})
    assert [(d.kind, d.observed) for d in found] == [("setting", "disabled")]
    assert (
        drift(view(config=config, paths=[]), [], {"g": {"decode": {"backend": "disabled"}}}, ["g.decode.backend"]) == []
    )


def test_the_observed_map_keeps_the_prediction_and_adds_what_each_worker_showed() -> None:
    made = view()
    observed = observed_map(made, [worker("w0", BOTH, [0]), worker("w1", [], [])])
    [path] = observed["paths"]
    assert path["label"] == made.body["paths"][0]["label"]
    assert path["status"] == "unverified"
    assert [(o["worker"], o["captures"], o["replayed"], o["unreplayed_buckets"]) for o in path["observed"]] == [
        ("w0", 2, {"target:decode@1": 1}, [2]),
        ("w1", 0, {}, [1, 2]),
    ]


@pytest.mark.parametrize("data", [b"", b"[]", b'{"schema": "other"}', b"{" * 9])
def test_what_is_no_map_is_refused(data: bytes) -> None:
    with pytest.raises(ConfigError):
        MapView.parse(data, "map")


def test_members_of_the_wrong_shape_count_as_absent() -> None:
    body = {"schema": "sgl-graph.path-map/1", "paths": [3, {"label": 5, "sites": None}], "workers": "x", "gaps": None}
    made = MapView.parse(json.dumps(body).encode(), "map")
    assert (len(made.paths), made.workers, made.material_gaps) == (1, [], [])


def test_worker_source_by_module_digests() -> None:
    index = {"sglang.a": "1", "sglang.b": "2"}
    same, other, silent = worker("w0"), worker("w1"), worker("w2")
    same.modules = {"sglang.a": "1", "torch": "9"}
    other.modules = {"sglang.a": "1", "sglang.b": "3"}
    assert worker_source([same], index).status == "matches"
    assert worker_source([same, other], index).status == "differs"
    assert worker_source([same, silent], index).status == "unknown"
    assert worker_source([same], None).status == "unknown"
    foreign = worker("w3")
    foreign.modules = {"sglang.elsewhere": "7"}
    assert worker_source([foreign], index).status == "differs"
    foreign.modules = {"sglang.alias": "1"}
    assert worker_source([foreign], index).status == "matches"
