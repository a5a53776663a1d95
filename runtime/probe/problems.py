"""The probe's own failures: all are counted, and of each place the first few are told."""

from __future__ import annotations

#: Problems beyond this many of one place are counted, not written.
PER_PLACE = 20
_LONGEST = 2000


class Problems:
    """Counts failures by where they happened."""

    def __init__(self) -> None:
        """None so far."""
        self.count = 0
        self._places: dict[str, int] = {}

    def add(self, where: str, error: BaseException | str) -> str | None:
        """Count a failure; gives the text to write, or None when this place has been told of often enough."""
        self.count += 1
        seen = self._places[where] = self._places.get(where, 0) + 1
        if seen > PER_PLACE:
            return None
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return text[:_LONGEST]
