"""What a run needs of the probe: a prepared folder for one launch, its environment, and the seal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class Injection(Protocol):
    """One launch's injection."""

    @property
    def folder(self) -> Path:
        """The folder that goes first on PYTHONPATH."""
        ...

    def environment(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """`base` with what the probe needs."""
        ...

    def seal(self) -> None:
        """Ask every worker to write its footer."""
        ...


class Injector(Protocol):
    """Prepares injections."""

    def __call__(
        self, *, launch: str, receipts: Path, run: str, map_bytes: bytes | None, count_only: bool, poison: bool
    ) -> Injection:
        """Write the injection folder of a launch.

        Raises:
            ProbeUnsupported: The probe cannot act here.
        """
        ...
