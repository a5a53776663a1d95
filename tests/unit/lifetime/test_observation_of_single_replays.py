"""Single replays and runs of them are observed alike, wherever they lie to the windows of the traffic."""

from __future__ import annotations

import random

import pytest
from sgl_graph.analyzer.reconcile.observation import Window, observe
from sgl_graph.analyzer.records.receipts import read_receipts

from tests.unit.lifetime.scene import Scene


def observed(times: list[tuple[int, int]], windows: list[Window], *, joined: bool) -> object:
    """Replays of (time, graph), as single records or in runs of equal graphs within a stretch of time."""
    scene = Scene()
    graphs = [scene.capture(scene.graph(), [], label=f"decode@{i}") for i in range(3)]
    records: list[list[int]] = []
    for t, which in times:
        if joined and records and records[-1][0] == which and t - records[-1][2] <= 1:
            records[-1][2:] = [t, records[-1][3] + 1]
        else:
            records.append([which, t, t, 1])
    for which, t0, t1, count in records:
        scene.replay(graphs[which], times=count)
        scene.bodies[-1] |= {"t0": t0, "t1": t1}
    seen = observe(read_receipts(scene.footer().content()), windows)
    return seen.in_windows, seen.by_set, seen.undecided, seen.replays, seen.problems


@pytest.mark.parametrize("windows", [[(10, 20), (30, 45)], [(10, 40), (30, 60)], [], [(0, 100)]])
def test_single_replays_count_as_runs_do(windows: list[tuple[int, int]]) -> None:
    source = random.Random(5)
    planned = [Window(f"set{i}", began, ended) for i, (began, ended) in enumerate(windows)]
    inside = [t for t in range(100) if all(t not in (b, e) and t + 1 not in (b, e) for b, e in windows)]
    times = [(t, source.randrange(3)) for t in inside if source.random() < 0.8]
    assert observed(times, planned, joined=False) == observed(times, planned, joined=True)


def test_a_label_runs_where_its_graph_is_a_child_graph() -> None:
    scene = Scene()
    inner = scene.capture(scene.graph(), [], label="decode@1")
    middle = scene.capture(scene.graph(), [], label="decode@2", embeds=[[0, inner], [1, inner]])
    outer = scene.capture(scene.graph(), [], label="all@2", embeds=[[0, middle]])
    scene.replay(outer, times=3)
    scene.bodies[-1] |= {"t0": 1, "t1": 2}
    seen = observe(read_receipts(scene.footer().content()), [Window("one", 0, 9)])
    assert seen.labels_replayed() == {"decode@1": 3, "decode@2": 3, "all@2": 3}
    assert seen.in_windows[inner] == seen.in_windows[middle] == 3
