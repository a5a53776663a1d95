"""One primitive as the search found it, before a configuration says anything about it."""

from __future__ import annotations

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
        """Whole statements that are calls and stand under the same tests: they run when a site runs that is no call itself."""
        whole = {id(value) for _, value, _, _ in self.scope.assignments} | {id(v) for v, _ in self.scope.returns}
        alike = [c for c in self.scope.calls if c.tests == self.tests and (c.entered or id(c.expression) in whole)]
        return sorted(alike, key=lambda call: abs(call.line - self.line))
