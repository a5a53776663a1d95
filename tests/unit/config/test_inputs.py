"""Devices and assumptions as the user types them."""

from __future__ import annotations

import pytest
from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.static.config.device import DeviceFacts, parse_device
from sgl_graph.analyzer.static.config.inputs import assumed_device, parse_assumptions


@pytest.mark.parametrize(
    ("text", "kind", "capability"),
    [("h200", "cuda", (9, 0)), ("NVIDIA H100", "cuda", (9, 0)), ("cuda:sm90", "cuda", (9, 0)), ("cuda:sm120", "cuda", (12, 0)),
     ("hip", "hip", None), ("mi300x", "hip", (9, 4)), ("npu", "npu", None), ("cpu", "cpu", None)],
)  # fmt: skip
def test_devices_by_product_kind_and_capability(text: str, kind: str, capability: tuple[int, int] | None) -> None:
    found = parse_device(text)
    assert (found.kind, found.capability) == (kind, capability)


@pytest.mark.parametrize("text", ["", "h2000", "cuda:90", "gpu"])
def test_an_unknown_device_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="unknown device"):
        parse_device(text)


def test_assumptions_by_kind() -> None:
    found = parse_assumptions(
        ["--attention-backend=fa3", "package:flashinfer=no", "env:A=1", "device.memory=10", 'model.x={"y":1}']
    )
    assert found.fields == {"attention_backend": "fa3"} and found.packages == {"flashinfer": False}
    assert found.environment == {"A": "1"} and found.device == {"memory": "10"} and found.model == {"x": {"y": 1}}


@pytest.mark.parametrize("text", ["nothing", "=1", "package:x=maybe"])
def test_bad_assumptions_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_assumptions([text])


def test_device_facts_settled_by_hand() -> None:
    assert assumed_device(DeviceFacts("cuda"), {"memory": "100", "capability": "8.6"}) == DeviceFacts(
        "cuda", capability=(8, 6), memory=100
    )
    with pytest.raises(ConfigError, match="not a number"):
        assumed_device(None, {"memory": "much"})
    with pytest.raises(ConfigError, match="no fact"):
        assumed_device(None, {"colour": "red"})
