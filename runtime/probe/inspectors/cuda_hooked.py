"""What hooks on graphs tell, and to whom: the inspector as they see it."""

from __future__ import annotations

from typing import Any, Protocol

from ..patching import Patches
from ..recorder import Recorder


class Launches(Protocol):
    """Executables, and the graphs that they were made of."""

    def hand_out(self, executable: int, graph: int) -> None:
        """The program asked PyTorch for the handle of a graph's executable."""


class Hooked(Protocol):
    """Receives what hooks see.

    Attributes:
        recorder: Told of what happens.
        torch: The imported module.
        patches: Replaces functions, and restores them.
        raw: Captured graphs by the handles of their raw graphs.
        kept: Graphs that PyTorch keeps beside their executables.
    """

    recorder: Recorder
    torch: Any
    patches: Patches
    raw: dict[int, int]
    kept: set[int]

    @property
    def launches(self) -> Launches:
        """Executables that are launched behind PyTorch."""

    def began(self, graph: Any, pool: Any) -> None:
        """A capture is about to begin on the current stream."""

    def ending(self, graph: Any) -> None:
        """The capture is about to end."""

    def ended(self, graph: Any, keep_graph: bool | None) -> int | None:
        """The capture ended well; the graph's identifier."""

    def failed(self, graph: Any, reason: str) -> None:
        """The capture did not end well."""

    def replayed(self, graph: int, stream: int | None = None) -> None:
        """A launch of `graph` starts, on `stream` where the call names it."""

    def inspect_now(self, handle: int) -> int:
        """Inspect a graph that no PyTorch capture made; its identifier."""

    def raw_graph(self, handle: int) -> int | None:
        """The captured graph of a raw handle, unless its owner is gone."""

    def holds(self, handle: int, node: int) -> bool:
        """Whether a raw graph holds a node."""

    def forget_raw(self, graph: int) -> None:
        """The raw graph is gone."""
