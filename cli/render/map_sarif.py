"""A path map's gaps and weak primitives as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import json
from typing import Any

from sgl_graph.analyzer.records.pathmap import PathMap, Site
from sgl_graph.analyzer.static.rules import RULES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(made: PathMap) -> str:
    """The map as SARIF text."""
    from importlib.metadata import version

    sites = {site.id: site for site in made.sites}
    results = [_gap(gap.text, gap.code, gap.severity, [sites[i] for i in gap.sites if i in sites]) for gap in made.gaps]
    results += [_site(site) for site in made.sites if _weak(site)]
    used = sorted({result["ruleId"] for result in results})
    run = {
        "tool": {
            "driver": {
                "name": "sgl-graph",
                "version": version("sgl-graph"),
                "rules": [
                    {
                        "id": code,
                        "shortDescription": {"text": RULES[code].title},
                        "fullDescription": {"text": RULES[code].text},
                    }
                    for code in used
                ],
            }
        },
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False)


def _weak(site: Site) -> bool:
    return (
        site.reachable != "no" and site.role in ("capture", "replay") and site.inspectability != "lifetime-inspectable"
    )


def _gap(text: str, code: str | None, severity: str, sites: list[Site]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": code or "SGG040",
        "level": "warning" if severity == "material" else "note",
        "message": {"text": text},
    }
    if sites:
        result["locations"] = [_location(site.file, site.line) for site in sites[:1]]
        result["relatedLocations"] = [_location(site.file, site.line) for site in sites[1:10]]
    return result


def _site(site: Site) -> dict[str, Any]:
    code = next((reason.code for reason in site.reasons if reason.code), "SGG001")
    text = f"{site.api}: {site.inspectability}: {site.reason}"
    return {"ruleId": code, "level": "note", "message": {"text": text}, "locations": [_location(site.file, site.line)]}


def _location(file: str, line: int) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": file, "uriBaseId": "CHECKOUT"},
            "region": {"startLine": max(line, 1)},
        }
    }
