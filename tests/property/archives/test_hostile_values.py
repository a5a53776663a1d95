"""Untrusted archives: whatever value stands wherever in whichever file, reading ends in a report or in one clear error."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sgl_graph.analyzer.errors import SglGraphError
from sgl_graph.analyzer.records.archive import Manifest
from sgl_graph.analyzer.records.receipts import FIRST_LINK, seal_line
from sgl_graph.analyzer.records.strict_json import parse_json
from sgl_graph.cli.reconcile import Format, _ledger_text
from sgl_graph.runtime.archive import pretty_json
from sgl_graph.runtime.exporting import export
from sgl_graph.runtime.inspection import inspect, recompute

from tests.fakes import archives

_MARK = "@@hostile@@"
HOSTILE = {
    "deep-300": "[" * 300 + "]" * 300,
    "deep-5000": "[" * 5000 + "]" * 5000,
    "deep-200000": "[" * 200_000 + "]" * 200_000,
    "deep-object": '{"a":' * 900 + "1" + "}" * 900,
    "400-digits": "9" * 400,
    "100000-digits": "9" * 100_000,
    "2**63": str(2**63),
    "2**64": str(2**64),
    "nan": "NaN",
    "infinity": "Infinity",
    "1e999": "1e999",
    "negative": "-1",
    "fraction": "1.5",
    "long": '"' + "x" * 300_000 + '"',
    "half-a-character": '"\\ud800"',
    "nul": '"\\u0000\\u001b[2J"',
    "null": "null",
    "true": "true",
    "list": '[1,"a",null]',
    "object": '{"a":{"b":[]}}',
    "empty-text": '""',
    "empty-list": "[]",
    "empty-object": "{}",
    "outward": '"../../../etc/passwd"',
}
_CASES = 60


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every member, the first three of a list."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(min(len(value), 3)):
            yield from places(value[index], (*path, index))


def spelled(value: Any, path: tuple[Any, ...], hostile: str) -> str:
    """JSON of the value with the hostile text at a place."""
    if not path:
        return hostile
    value = json.loads(json.dumps(value))
    at = value
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = _MARK
    return json.dumps(value, separators=(",", ":")).replace(f'"{_MARK}"', hostile)


def bend(root: Path, source: random.Random) -> str:
    """Put one hostile value at one place of one file and sign everything anew; says what was done."""
    names = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.json*"))
    name, hostile = source.choice(names), source.choice(sorted(HOSTILE))
    file = root / name
    if name.endswith(".json"):
        body = json.loads(file.read_text())
        place = source.choice(list(places(body)))
        file.write_text(spelled(body, place, HOSTILE[hostile]))
    else:
        bodies = [json.loads(line) for line in file.read_bytes().splitlines()]
        number = source.randrange(len(bodies))
        for body in bodies:
            del body["h"]
        place = source.choice([p for p in places(bodies[number]) if p])
        texts = [json.dumps(body, separators=(",", ":")) for body in bodies]
        texts[number] = spelled(bodies[number], place, HOSTILE[hostile])
        previous, lines = FIRST_LINK, []
        for text in texts:
            line, previous = seal_line(text.encode(), previous)
            lines.append(line)
        file.write_bytes(b"".join(lines))
    if name != "manifest.json" and source.random() < 0.8:
        manifest = json.loads((root / "manifest.json").read_text())
        for known in manifest["files"]:
            data = (root / known).read_bytes()
            manifest["files"][known] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
        sealed = Manifest.model_validate(manifest).sealed()
        (root / "manifest.json").write_bytes(pretty_json(sealed.model_dump(mode="json")))
    return f"{hostile} in {name} at {place}"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = archives.make(tmp_path_factory.mktemp("hostile") / "whole").root
    return root


def test_every_hostile_value_ends_in_a_report_or_one_clear_error(whole: Path, tmp_path: Path) -> None:
    jobs: dict[str, Callable[[Path], object]] = {
        "inspect": lambda root: [_ledger_text(inspect(root, expected=None), f) for f in Format],
        "recompute": lambda root: [
            _ledger_text(recompute(root, expected=None, work=None, in_place=True)[0], f) for f in Format
        ],
        "export": lambda root: export(root, tmp_path / "x.zip", include_outputs=True),
    }
    for seed in range(_CASES):
        root = tmp_path / "case"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(whole, root)
        what = bend(root, random.Random(seed))
        for job, call in jobs.items():
            try:
                call(root)
            except SglGraphError as error:
                assert error.message
            except Exception as error:
                raise AssertionError(f"seed {seed}: {job} of {what}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize(
    "name", ["deep-300", "deep-5000", "deep-200000", "nan", "infinity", "1e999", "half-a-character", "100000-digits"]
)
def test_what_could_not_be_written_again_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        parse_json(HOSTILE[name].encode())


def test_honest_json_is_read() -> None:
    value = {"a": [1, 2.5, None, "\\ud800 is text", "é", "\U0001f600"], "b": {"c": [[[[1]]]]}}
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value
