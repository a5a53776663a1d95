"""Which family of captures a primitive belongs to, by the names that the checkout gives its runners and tables."""

from __future__ import annotations

import re

from sgl_graph.analyzer.records.pathmap import Family
from sgl_graph.analyzer.static import profile
from sgl_graph.analyzer.static.sites.rawsite import RawSite

_WORDS: tuple[tuple[Family, re.Pattern[str]], ...] = tuple(
    (family, re.compile(words, re.IGNORECASE))  # type: ignore[misc]
    for family, words in profile.FAMILY_WORDS
)
_DRAFT = re.compile(profile.DRAFT_WORDS, re.IGNORECASE)
_SEGMENTED_FORMS = {
    "container", "container-context", "container-replay", "segment-end", "break-record", "break-point", "eager-between",
}  # fmt: skip


def family_of_name(qualname: str) -> Family:
    """The family that a class or function is named for, its own name before its module's."""
    module, _, name = qualname.partition(":")
    for text in (_snake(name), _snake(module.rsplit(".", 1)[-1]), _snake(module)):
        for family, pattern in _WORDS:
            if pattern.search(text):
                return family
    return "other"


def family_of_site(site: RawSite) -> Family:
    """The family of one primitive."""
    if site.form in _SEGMENTED_FORMS:
        return "prefill-breakable"
    if site.form in ("split-operator", "split-call"):
        return "prefill-piecewise"
    return family_of_name(site.scope.name)


def is_draft(qualname: str) -> bool:
    """Whether a class or function works for the draft model."""
    return _DRAFT.search(qualname.partition(":")[2]) is not None


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
