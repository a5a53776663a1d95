"""One primitive as the search found it, before a configuration says anything about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sgl_graph.analyzer.static.extract.facts import Expression
from sgl_graph.analyzer.static.sites.scopes import CallFact, Scope, Test


@dataclass(frozen=True, slots=True)
class RawSite:
    """A line that makes, captures, replays, pools, splits, updates or chooses a device graph.

    Attributes:
        form: how it was recognised, one of the keys of `rules.FORMS`.
        devices: device kinds of the libraries called; `any` for a device module chosen at run time.
        forms: all forms that the alternatives of one call have.
        targets: functions or classes of the checkout that the call leads to.
        key: the subscripted target, where a graph is filed.
        tests: what must hold for control to come here, for a site that is no call.
    """

    scope: Scope
    line: int
    role: str
    form: str
    api: str
    devices: frozenset[str]
    forms: frozenset[str] = frozenset()
    targets: tuple[str, ...] = ()
    call: CallFact | None = None
    key: Expression | None = None
    tests: tuple[Test, ...] = ()

    def beside(self) -> list[CallFact]:
        """Calls under the same tests that their statements surely make: they run when a site runs that is no call itself."""
        statements = [part for target, value, _, _ in self.scope.assignments for part in (target, value)]
        sure = {id(call) for part in (*statements, *(v for v, _ in self.scope.returns)) for call in _surely(part)}
        alike = [c for c in self.scope.calls if c.tests == self.tests and (c.entered or id(c.expression) in sure)]
        return sorted(alike, key=lambda call: abs(call.line - self.line))


def _surely(item: Expression) -> Iterator[Expression]:
    """Calls that the evaluation of an expression cannot leave out."""
    kind = item[0] if item else ""
    if kind == "c":
        yield item
        parts = [item[1], *(a[2] if a[0] == "k" else a for a in item[2])]
    elif kind == "s":
        parts = [item[1], *item[2]]
    elif kind == "b":
        parts = item[2:4]
    elif kind in ("t", "L"):
        parts = item[1]
    elif kind in ("bo", "a", "cmp", "i"):
        parts = [item[2] if kind == "bo" else item[1]]
    else:
        return
    for part in parts:
        yield from _surely(part)
