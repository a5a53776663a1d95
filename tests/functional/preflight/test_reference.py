"""The reference names every option and every JSON field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel
from sgl_graph.analyzer.records import pathmap
from sgl_graph.analyzer.static.rules import RULES
from sgl_graph.cli.app import build
from typer.testing import CliRunner

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "reference" / "preflight.md").read_text("utf-8")


@pytest.mark.parametrize("command", ["preflight", "diff", "explain"])
def test_every_option_of_help_is_in_the_reference_and_the_other_way_round(command: str) -> None:
    section = re.split(r"^## ", TEXT, flags=re.MULTILINE)
    own = next(part for part in section if part.startswith(f"sgl-graph {command}"))
    result = CliRunner().invoke(build(), [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert result.exit_code == 0
    in_help = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", result.output)) - {"--no-verbose"}
    in_text = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", own))
    assert in_help <= in_text
    assert in_text - in_help <= {"--strict"} if command == "preflight" else in_text - in_help == set()


def records() -> list[type[BaseModel]]:
    found: list[type[BaseModel]] = []
    stack: list[type[BaseModel]] = [pathmap.PathMap]
    while stack:
        model = stack.pop()
        if model in found:
            continue
        found.append(model)
        for field in model.model_fields.values():
            for name in re.findall(r"pathmap\.(\w+)", str(field.annotation)):
                stack.append(getattr(pathmap, name))
    return found


@pytest.mark.parametrize("model", records(), ids=lambda model: model.__name__)
def test_every_field_is_in_the_reference(model: type[BaseModel]) -> None:
    _, mark, rest = TEXT.partition(f"<!-- fields: {model.__name__} -->")
    assert mark, f"the reference has no part for {model.__name__}"
    part = rest.partition("<!-- fields:")[0].partition("\n## ")[0]
    for name, field in model.model_fields.items():
        shown = field.serialization_alias or field.alias or name
        assert f"`{shown}`" in part, f"{model.__name__}.{shown}"


def test_the_schema_knows_every_record() -> None:
    names = set(pathmap.PathMap.model_json_schema()["$defs"]) | {"PathMap"}
    assert names == {model.__name__ for model in records()}


def test_every_rule_explains_itself() -> None:
    for code, rule in RULES.items():
        assert re.fullmatch(r"SGG\d{3}", code)
        assert len(rule.text) > 60
        result = CliRunner().invoke(build(), ["explain", code])
        assert result.exit_code == 0
        assert rule.title in result.output
