"""Arguments of one call as they stand in the source."""

from __future__ import annotations

from collections.abc import Iterable

from sgl_graph.analyzer.static.link.values import NOTHING, Values


class Spread:
    """The last positional argument is `*x`, and `x` may be one of several sequences.

    Attributes:
        rows: the items of each sequence whose length is fixed.
        loose: items of those whose length is not; they may come in any place.
    """

    __slots__ = ("loose", "rows")

    def __init__(self, rows: list[list[Values]], loose: Values) -> None:
        self.rows = rows
        self.loose = loose


class Arguments:
    """Arguments of one call.

    `star` is all that arguments of unknown number may give, in any place; `spread`, where it is known, says the same in more detail.
    """

    __slots__ = ("double", "keywords", "positional", "spread", "star")

    def __init__(
        self,
        positional: list[Values] | None = None,
        keywords: dict[str, Values] | None = None,
        star: Values = NOTHING,
        double: Values = NOTHING,
        spread: Spread | None = None,
    ) -> None:
        self.positional = positional if positional is not None else []
        self.keywords = keywords if keywords is not None else {}
        self.star = star
        self.double = double
        self.spread = spread

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
