"""A `--traffic` file is taken whole or refused with the file, the record and the field that are wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sgl_graph.analyzer.errors import ConfigError
from sgl_graph.analyzer.request_sets import Model, request_sets
from sgl_graph.analyzer.traffic_file import traffic_records

from tests.unit.run.builders import map_view

VIEW = map_view(
    ("target:decode", ["lora", "nolora", "two-batch"], [1, 2, 4]), ("target:prefill-breakable", [None], [8])
)
GOOD = {
    "name": "x.1_a-b",
    "labels": ["target:decode/lora@4", "target:prefill-breakable"],
    "concurrency": 2,
    "input_len": 16,
    "output_len": None,
    "variant": "two-batch",
    "logprobs": False,
}


def test_a_list_and_a_map_are_taken() -> None:
    listed = traffic_records(json.dumps([GOOD]).encode(), "f", VIEW)
    assert listed == traffic_records(json.dumps({"labels": [], "traffic": [GOOD]}).encode(), "f", VIEW) == ([GOOD], [])
    assert request_sets(listed[0], Model(99), control=False, budget=None).sets[0].labels == GOOD["labels"]
    assert traffic_records(b'[{}, {"name": null, "labels": null, "variant": null}]', "f", VIEW)[1] == []


@pytest.mark.parametrize("data", [b"{", b"3", b"{}", b'{"traffic": 3}', b"[" * 100_000, b"[NaN]", b"\xff"])
def test_what_is_no_list_is_refused_with_the_name_of_the_file(data: bytes) -> None:
    with pytest.raises(ConfigError, match=r"^the file: "):
        traffic_records(data, "the file")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": 5}, "name: 5 is no name"),
        ({"name": "../../x"}, "name: '../../x' is no name"),
        ({"name": ""}, "name: '' is no name"),
        ({"name": "x\n"}, r"name: 'x\\n' is no name"),
        ({"name": "first"}, "name: first is the name of record 0, too"),
        ({"labels": "abc"}, "labels: a list of labels, not 'abc'"),
        ({"labels": [3]}, "labels: a list of labels"),
        ({"labels": ["abc"]}, "labels: 'abc' is no label"),
        (
            {"labels": ["target:decod/lora"]},
            "labels: target:decod/lora: the map knows no such .* nearest is target:decode/lora",
        ),
        ({"variant": "foo"}, "variant: 'foo' is unknown"),
        ({"variant": "lra"}, "variant: 'lra' is unknown; is lora meant?"),
        ({"variant": ["lora"]}, "variant: .* is unknown"),
        ({"concurency": 4}, "unknown field 'concurency'; is concurrency meant?"),
        ({"concurrency": 0}, "concurrency: a whole number"),
        ({"input_len": True}, "input_len: a whole number"),
        ({"output_len": "8"}, "output_len: a whole number"),
        ({"input_len": 10**12}, "input_len: a whole number"),
        ({"logprobs": "no"}, "logprobs: true or false"),
    ],
)
def test_one_error_names_file_record_and_field(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"^f\.json, record 1[,:] {said.replace('?', chr(92) + '?')}"):
        traffic_records(json.dumps([{"name": "first"}, wrong]).encode(), "f.json", VIEW)


def test_a_record_that_is_no_object_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^f, record 1: not an object, but 'x'"):
        traffic_records(b'[{}, "x"]', "f")


def test_labels_that_the_map_does_not_expect_are_told_and_sent() -> None:
    records, doubts = traffic_records(b'[{"labels": ["target:decode/quant", "target:decode/lora@3"]}]', "f", VIEW)
    assert len(records) == 1
    assert [d.split(": ")[1] for d in doubts] == ["target:decode/quant", "target:decode/lora@3"]
    assert "1, 2, 4" in doubts[1]
