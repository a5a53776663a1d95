"""Arguments of one call as they stand in the source."""

from __future__ import annotations

from collections.abc import Iterable

from sgl_graph.analyzer.static.link.values import NOTHING, Values


class Arguments:
    """Arguments of one call."""

    __slots__ = ("double", "keywords", "positional", "star")

    def __init__(
        self,
        positional: list[Values] | None = None,
        keywords: dict[str, Values] | None = None,
        star: Values = NOTHING,
        double: Values = NOTHING,
    ) -> None:
        self.positional = positional if positional is not None else []
        self.keywords = keywords if keywords is not None else {}
        self.star = star
        self.double = double

    def every(self) -> Iterable[Values]:
        yield from self.positional
        yield from self.keywords.values()
        yield self.star
        yield self.double

    def get(self, position: int, name: str) -> Values:
        """A model's argument by position or name."""
        if position < len(self.positional):
            return self.positional[position]
        return self.keywords.get(name) or self.star or NOTHING
