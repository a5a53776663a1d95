"""Labels of a path: the key of its graphs, their variants and sizes, and the batches that no size takes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sgl_graph.analyzer.records.pathmap import CodeRef, Family, Label, Site
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.paths.admission import left_to_eager, padding_limit
from sgl_graph.analyzer.static.paths.chains import asked_for_sizes, reads_setting
from sgl_graph.analyzer.static.paths.inputs import PathInput
from sgl_graph.analyzer.static.paths.parts import PHASES
from sgl_graph.analyzer.static.sites.labels import KeyOf
from sgl_graph.analyzer.static.sites.rawsite import RawSite


class PathLabels:
    """Makes the label of each path."""

    def __init__(self, given: PathInput) -> None:
        self._in = given
        self._types = given.search.types

    def of(
        self,
        family: Family,
        runner: str,
        table: str,
        sites: Sequence[tuple[RawSite, Site]],
        built: Sequence[tuple[RawSite, Site]],
    ) -> Label:
        """The label of the graphs that a runner files in a table.

        Args:
            sites: primitives of the path.
            built: where the runner is made.
        """
        found = self._in.keys.of_class(table)
        if found is None:
            scopes = list({raw.scope.name: raw.scope for raw, _ in sites}.values())
            found = self._in.keys.of_functions(scopes)
        if found is None:
            return Label(key="none", expression="", enumerable=False)
        variants, open_ = self._variants(runner, found, sites)
        phase = PHASES.get(family)
        configured = runner != table or self._configured(table, phase)
        buckets = self._in.buckets.get(phase) if phase is not None and configured else None
        if buckets is None:
            return Label(
                key=found.key,
                expression=found.expression,
                variants=variants,
                variants_open=open_,
                stored_at=found.stored_at,
                enumerable=False,
            )
        clamp = self._in.chains.clamp_of(self._types, runner, [raw for raw, _ in built])
        limit = padding_limit(self._types, runner)
        return Label(
            key=found.key,
            expression=found.expression,
            variants=variants,
            variants_open=open_,
            buckets=buckets.sizes,
            buckets_from=buckets.source,
            buckets_effective=buckets.sizes if clamp is None else buckets.clamped,
            clamped_by=clamp,
            stored_at=found.stored_at,
            enumerable=buckets.sizes is not None,
            left_to_eager=tuple(left_to_eager(buckets.sizes or (), limit)),
            left_by=CodeRef(file=limit.file, line=limit.line, qualname=limit.qualname) if limit is not None else None,
        )

    def _configured(self, table: str, phase: str | None) -> bool:
        """Whether a table that serves itself captures the configured sizes, rather than sizes that it computes itself.

        It asks a function that gives them, or asks none but its own methods and reads the setting that holds them.
        """
        own = set(self._types.mro(table))
        asked = [f for f in asked_for_sizes(self._types, table) if f.owner not in own]
        if asked:
            return any(f.public_name in profile.CONFIGURED_SIZES for f in asked)
        return reads_setting(self._types, table, profile.LEGACY_SIZE_FIELDS.get(phase or "", ""))

    def _variants(
        self, runner: str, key: KeyOf, sites: Sequence[tuple[RawSite, Site]]
    ) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
        """Texts in the key besides the size, and those of them that only the server decides on.

        Texts that the capturing method is given for parts of the key are all captured. Of those that it makes itself, from
        numbers or lists that it is given, some may not be. One unnamed variant stands where the texts stay open.
        """
        capturing = {raw.scope.public_name for raw, _ in sites if raw.form == "table-capture"}
        given: set[str | None] = set()
        for (owner, function), parameters in self._in.arguments.items():
            if owner == runner and function in capturing:
                given = given.union(*(parameters[part] for part in key.fields if part in parameters))
        if given:
            texts = sorted(text for text in given if text is not None)
            return (tuple(texts) if texts and None not in given else (None,)), ()
        made: set[str | None] = set()
        for (owner, function, class_name), fields in self._in.made.items():
            if owner == runner and function in capturing and class_name == key.class_name:
                made = made.union(*fields.values())
        texts = sorted((text for text in made if text is not None), key=_natural)
        certain = len(made) == 1
        return tuple(texts if texts and None not in made else (None, *texts)), () if certain else tuple(texts)


def _natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Orders `x:2` before `x:10`."""
    parts = [part for part in re.split(r"(\d+)", text) if part]
    return tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)
