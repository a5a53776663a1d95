"""The call chains of a map's paths as a graph file: node-link JSON, or DOT."""

from __future__ import annotations

import json
from typing import Any

from sgl_graph.analyzer.records.pathmap import PathMap


def graph_file(made: PathMap, *, dot: bool) -> str:
    """The slice of the call graph that the paths' chains span."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: dict[tuple[str, str], dict[str, Any]] = {}
    for path in made.paths:
        for ref in path.chain:
            nodes.setdefault(ref.qualname, {"id": ref.qualname, "paths": []})
            if path.id not in nodes[ref.qualname]["paths"]:
                nodes[ref.qualname]["paths"].append(path.id)
        for caller, callee in zip(path.chain, path.chain[1:], strict=False):
            edges.setdefault(
                (caller.qualname, callee.qualname),
                {"source": caller.qualname, "target": callee.qualname, "file": caller.file, "line": caller.line},
            )
    listed = [nodes[name] for name in sorted(nodes)]
    links = [edges[key] for key in sorted(edges)]
    if not dot:
        body = {"directed": True, "multigraph": False, "graph": {}, "nodes": listed, "edges": links}
        return json.dumps(body, indent=1)
    lines = ["digraph paths {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    lines += [f"  {_quoted(node['id'])} [label={_quoted(node['id'].rpartition(':')[2])}];" for node in listed]
    lines += [f"  {_quoted(e['source'])} -> {_quoted(e['target'])} [label={_quoted(str(e['line']))}];" for e in links]
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
