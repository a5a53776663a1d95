"""Findings of one cause told once: the first in full, the others as the graphs and workers they were seen in."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from sgl_graph.analyzer.records.ledger import UNKNOWN, Finding

_MOST_LABELS = 12


@dataclass(frozen=True, slots=True)
class Cause:
    """What findings have in common, in the order in which they were found."""

    findings: tuple[Finding, ...]

    @property
    def first(self) -> Finding:
        """The one that is told in full."""
        return self.findings[0]

    def others(self) -> str:
        """The rest in one line; empty when there is none."""
        rest = self.findings[1:]
        if not rest:
            return ""
        like = "freed there" if _innermost(self.first.freed_at) != UNKNOWN else "like it"
        told = f"and {len(rest)} more {like}"
        labels = _distinct(f.label for f in self.findings)
        workers = _distinct(f.worker for f in self.findings)
        if labels:
            shown = ", ".join(labels[:_MOST_LABELS]) + (" ..." if len(labels) > _MOST_LABELS else "")
            told += f": {len(labels)} graph{'s' * (len(labels) != 1)} in all ({shown})"
        if len(workers) > 1:
            told += f"; {len(workers)} workers ({', '.join(workers)})"
        return told


def by_cause(findings: Sequence[Finding]) -> list[Cause]:
    """Causes in the order of their first finding: memory by the line that freed it, all else by what it has in common."""
    groups: dict[Hashable, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_cause(finding), []).append(finding)
    return [Cause(tuple(items)) for items in groups.values()]


def _cause(finding: Finding) -> Hashable:
    freed = _innermost(finding.freed_at)
    if freed != UNKNOWN:
        return finding.severity, freed
    allocated = _innermost(finding.allocated_at)
    return finding.severity, finding.code, finding.kernel, finding.parameter, allocated, _innermost(finding.owner_now)


def _innermost(stack: str | list[str]) -> str:
    if isinstance(stack, list):
        return stack[0] if stack else UNKNOWN
    return stack


def _distinct(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name != UNKNOWN]
