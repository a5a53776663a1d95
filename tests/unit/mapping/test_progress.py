"""Progress of linking: a line every few seconds, never one for each call."""

from __future__ import annotations

import pytest
from sgl_graph.runtime import mapping


def test_a_long_link_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(mapping.time, "monotonic", lambda: now)
    said: list[str] = []
    progress = mapping._now_and_then(said.append)
    for seconds, done in ((1, 500), (9, 1000), (11, 1500), (12, 2000), (25, 2500)):
        now = 100.0 + seconds
        progress(done)
    assert [line.split()[1] for line in said] == ["1500", "2500"]
