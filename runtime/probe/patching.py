"""Replaces attributes so that everything can be put back: idempotent, and restores only what is still its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

_MISSING = object()


class Patches:
    """A set of replaced attributes; `remove` restores them in reverse order."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> bool:
        """Replace `owner.name` by `value`, once."""

        def make(_: Any) -> Any:
            return value

        return self.replace(owner, name, make)

    def replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> bool:
        """Replace `owner.name` by `make(original)`, once.

        Returns:
            Whether it was replaced; false when the attribute is missing or already replaced by this set.
        """
        original = getattr(owner, name, _MISSING)
        if original is _MISSING or any(o is owner and n == name for o, n, _, _ in self._done):
            return False
        stored = vars(owner).get(name, _MISSING) if hasattr(owner, "__dict__") else original
        replacement = make(original)
        setattr(owner, name, replacement)
        self._done.append((owner, name, stored, replacement))
        return True

    def sweep(self, original: Any, replacement: Any) -> int:
        """Rebind every module-level name that holds `original`; returns how many did."""
        count = 0
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if not isinstance(names, dict):
                continue
            for name, value in list(names.items()):
                if value is original:
                    count += self.set(module, name, replacement)
        return count

    def remove(self) -> None:
        """Put back every attribute that still holds the replacement."""
        while self._done:
            owner, name, stored, replacement = self._done.pop()
            if getattr(owner, name, _MISSING) is not replacement and vars(owner).get(name) is not replacement:
                continue
            if stored is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, stored)
