"""Paths of small checkouts in memory, from their text over linking to the finder."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from sgl_graph.analyzer.records.pathmap import PathEntry
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.checkout.project import Project
from sgl_graph.analyzer.static.link.driver import link
from sgl_graph.analyzer.static.linked import Linked
from sgl_graph.analyzer.static.paths.captured import Captured, Owners
from sgl_graph.analyzer.static.paths.chains import Chains
from sgl_graph.analyzer.static.paths.components import components_of
from sgl_graph.analyzer.static.paths.finder import PathFinder
from sgl_graph.analyzer.static.paths.inputs import PathInput
from sgl_graph.analyzer.static.paths.reach import Reachability
from sgl_graph.analyzer.static.paths.settings import PhaseSizes
from sgl_graph.analyzer.static.preflight import site_records
from sgl_graph.analyzer.static.sites.classify import Classifier, Surroundings
from sgl_graph.analyzer.static.sites.labels import Keys
from sgl_graph.analyzer.static.sites.search import find_sites

from .capturing_programs import TABLE
from .programs import MemorySources

#: A table of graphs, and a runner that captures two sizes into it.
RUNNERS = (
    TABLE
    + """
    class DecodeGraphRunner:
        def __init__(self, model_runner):
            self.model_runner = model_runner
            self.table = Table()
            self.record_all()

        def record_all(self):
            for size in (1, 2):
                self.table.record(size, lambda: self.forward(size))

        def forward(self, size):
            pass

        def step(self, size):
            self.table.again(size)
"""
)


def linked_program(entry: str, modules: Mapping[str, str]) -> tuple[Project, Linked]:
    """Modules named `sglang.srt.<name>` (`__` stands for a dot), linked from an entry."""
    files = {f"sglang/srt/{name.replace('__', '/')}.py": textwrap.dedent(text) for name, text in modules.items()}
    project = Project(MemorySources(files))
    linked = link(project, [entry], kept_externals=("torch.cuda",), draft_parameters=profile.DRAFT_PARAMETERS)
    return project, linked


def linked_paths(entry: str, modules: Mapping[str, str], *, algorithm: str | None = None) -> dict[str, PathEntry]:
    """Paths by name; `algorithm` names how the launch speculates."""
    return {path.name: path for path in every_path(entry, modules, algorithm=algorithm)}


def every_path(entry: str, modules: Mapping[str, str], *, algorithm: str | None = None) -> tuple[PathEntry, ...]:
    """All paths, also where several have one name."""
    project, linked = linked_program(entry, modules)
    found = find_sites(project)
    reach = Reachability(linked, [entry], found.owners.on_demand())
    classifier = Classifier(found.owners, found.sites)
    answers = [reach.of_site(raw) for raw in found.sites]
    sites = site_records(found, classifier, answers, Surroundings(device="cuda"))
    components = components_of(project, linked, reach, ranks=2)
    given = PathInput(
        search=found,
        sites=sites,
        chains=Chains(linked, reach, [entry]),
        keys=Keys(found.owners),
        settings={"speculative_algorithm": algorithm},
        unconfirmed=frozenset(),
        open_phases=frozenset(),
        buckets={phase: PhaseSizes(phase, (1, 2), None, (1, 2)) for phase in ("decode", "prefill")},
        components=components,
        worker="scheduler",
        linked=linked,
        captured=Captured(linked, found.types, found.owners.capturing()),
        owners=Owners(linked, [name for name, _ in components]),
        devices=classifier.devices_of_class,
        devices_of=classifier.devices_of,
        device="cuda",
    )
    return PathFinder(given).find()
