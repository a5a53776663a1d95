"""PyCG's public micro-benchmark run on the linker: exact call graphs, precision and recall.

usage: python benchmarks/pycg.py PATH_TO_MICRO_BENCHMARK [-v] [CATEGORY[/CASE]...]

The benchmark (github.com/vitsalis/PyCG, folder micro-benchmark) holds `snippets/<category>/<case>/main.py` and beside
it the call graph that its authors wrote by hand. Only names are adapted here: PyCG's spelling of builtins, lambdas and
nested functions. Everything that a module defines is surveyed, because PyCG counts functions that nobody calls.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.extract.facts import ModuleFacts
from sgl_graph.analyzer.static.extract.lower import extract
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.linked import Call, Linked

#: What PyCG's authors report of their own tool on this benchmark.
PYCG = (106, 0.976, 0.932)
_CALLED = re.compile(r"\(\)")

Edges = set[tuple[str, str]]


class Folder:
    """The Python files of one case."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def paths(self) -> list[str]:
        return sorted(path.relative_to(self._root).as_posix() for path in self._root.rglob("*.py"))

    def text(self, path: str) -> bytes:
        return (self._root / path).read_bytes()

    def lost(self) -> dict[str, str]:
        return {}

    def problem(self, path: str) -> str | None:
        return None

    def digest(self, path: str) -> str:
        return path

    def facts(self, path: str) -> ModuleFacts:
        return extract(self.text(path))

    def prefetch(self, paths: Iterable[str]) -> None:
        pass

    def suggest(self, paths: Iterable[str]) -> None:
        pass


class Names:
    """Qualified names in PyCG's spelling."""

    def __init__(self, linked: Linked) -> None:
        self._lambdas: dict[str, str] = {}
        counted: dict[str, int] = {}
        lambdas = [d for d in linked.definitions.values() if d.facts.name == "<lambda>"]
        for definition in sorted(lambdas, key=lambda d: (d.module.name, d.facts.line, d.index)):
            scope = definition.qualname.rsplit("<lambda", 1)[0]
            counted[scope] = counted.get(scope, 0) + 1
            self._lambdas[definition.qualname] = f"{scope}<lambda{counted[scope]}>"

    def of(self, qualname: str) -> str:
        module, _, rest = self._lambdas.get(qualname, qualname).partition(":")
        return module if rest == "<module>" else f"{module}.{rest.replace('<locals>.', '')}"


def expected_edges(case: Path) -> Edges:
    """The hand-written graph of a case."""
    graph: dict[str, list[str]] = json.loads((case / "callgraph.json").read_text())
    return {(caller, callee) for caller, callees in graph.items() for callee in callees}


def found_edges(case: Path) -> Edges:
    """The linker's graph of a case, in PyCG's names."""
    project = Project(Folder(case))
    linked = link(project, ["main:<module>"], kept_externals=("",))
    loaded = [module.name for module in project.loaded()]
    linked = link(Project(Folder(case)), ["main:<module>"], survey=loaded, kept_externals=("",))
    names = Names(linked)
    edges: Edges = set()
    for caller, calls in linked.calls.items():
        for call in calls:
            if call.active or caller not in linked.reached:
                edges |= {(names.of(caller), callee) for callee in _callees(call, names)}
    return edges


def _callees(call: Call, names: Names) -> Iterable[str]:
    for target in call.targets:
        yield names.of(target)
    for path in call.externals:
        if path.startswith("builtins."):
            yield f"<builtin>.{path.removeprefix('builtins.')}"
        else:
            yield _CALLED.sub("", path)


def main() -> int:
    """Run every case and print the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark", type=Path, help="folder micro-benchmark of PyCG's repository")
    parser.add_argument("only", nargs="*", help="categories or category/case")
    parser.add_argument("-v", "--verbose", action="store_true", help="print what is missing and what is too much")
    options = parser.parse_args()
    cases = sorted(path.parent for path in options.benchmark.glob("snippets/*/*/callgraph.json"))
    if not cases:
        print(f"{options.benchmark}: no snippets/<category>/<case>/callgraph.json below", file=sys.stderr)
        return 2
    exact = total = right = found = wanted = 0
    for case in cases:
        name = f"{case.parent.name}/{case.name}"
        if options.only and not any(name == only or case.parent.name == only for only in options.only):
            continue
        expected, edges = expected_edges(case), found_edges(case)
        total += 1
        exact += expected == edges
        right += len(expected & edges)
        found += len(edges)
        wanted += len(expected)
        if options.verbose and expected != edges:
            print(name)
            for sign, items in (("missing", expected - edges), ("too much", edges - expected)):
                for caller, callee in sorted(items):
                    print(f"  {sign}: {caller} -> {callee}")
    precision, recall = right / max(found, 1), right / max(wanted, 1)
    print(f"cases {total}   exact {exact}   precision {precision:.3f}   recall {recall:.3f}")
    print(f"PyCG as published: exact {PYCG[0]}   precision {PYCG[1]:.3f}   recall {PYCG[2]:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
