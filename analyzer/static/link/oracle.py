"""What the linker asks about the configuration; `NoOracle` knows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from sgl_graph.analyzer.static.link.objects import Configured, Foreign
from sgl_graph.analyzer.static.link.values import ClassValue, Values

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.heap import Activation
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


class Oracle(Protocol):
    """Answers in abstract values; None means "not mine: work it out from the source"."""

    def configures(self, owner: str) -> bool:
        """Whether every object of a class is configuration, wherever it comes from."""
        ...

    def field(self, interpreter: Interpreter, owner: str, name: str) -> Values | None:
        """Attribute `name` of the configuration objects of class `owner` (qualified name)."""

    def settles(self, owner: str, name: str, writer: Activation) -> bool:
        """Whether a store into `owner.name` by this code is part of the resolution, and so already in the answer."""

    def is_instance(self, value: Configured | Foreign, cls: ClassValue) -> bool | None:
        """Whether a configuration object is an instance of a class of the checkout."""

    def attribute(self, interpreter: Interpreter, configured: Configured | Foreign, name: str) -> Values | None:
        """Attribute `name` of one configuration object."""

    def call(self, interpreter: Interpreter, function: str, arguments: Sequence[Values]) -> Values | None:
        """Result of a pure function such as a platform check or a configuration accessor."""

    def module_attribute(self, interpreter: Interpreter, module: str, name: str) -> Values | None:
        """A module-level name that the resolution of the configuration settled."""

    def environment(self, interpreter: Interpreter, name: str) -> Values | None:
        """An environment variable: constants, or None when nothing is known of it."""


class NoOracle:
    """Knows nothing: every configuration value is worked out from the source or unknown."""

    def configures(self, owner: str) -> bool:
        return False

    def field(self, interpreter: Interpreter, owner: str, name: str) -> Values | None:
        return None

    def settles(self, owner: str, name: str, writer: Activation) -> bool:
        return False

    def is_instance(self, value: Configured | Foreign, cls: ClassValue) -> bool | None:
        return None

    def attribute(self, interpreter: Interpreter, configured: Configured | Foreign, name: str) -> Values | None:
        return None

    def call(self, interpreter: Interpreter, function: str, arguments: Sequence[Values]) -> Values | None:
        return None

    def module_attribute(self, interpreter: Interpreter, module: str, name: str) -> Values | None:
        return None

    def environment(self, interpreter: Interpreter, name: str) -> Values | None:
        return None
