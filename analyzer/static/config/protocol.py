"""What the resolution of one launch offers to its readers: values with provenance, and questions that the linker asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class Source(StrEnum):
    """Where a configuration value comes from (the `source` of the contract's `config` entries)."""

    FLAG = "flag"
    ENV = "env"
    DEFAULT = "default"
    MODEL = "model"
    DEVICE = "device"
    ASSUMPTION = "assumption"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Place:
    """A place in the checkout; `file` is relative to the folder that holds `sglang/`."""

    file: str
    line: int
    qualname: str


@dataclass(frozen=True, slots=True)
class InstanceOf:
    """One object of the resolved configuration.

    Attributes:
        qualname: `module:Class`; an access path for a class outside the checkout.
        identity: tells objects of one class apart (two configuration bags are different objects of one class);
            give it back to `Configuration.attribute`. Empty when several objects may be meant.
    """

    qualname: str
    identity: str = ""


@dataclass(frozen=True, slots=True)
class ClassOf:
    """A class itself, `module:Class`."""

    qualname: str


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """A function itself, `module:Class.method`."""

    qualname: str


#: Constants are None, bool, int, float, str, tuples of constants (lists and sets too, in order), or one of the classes above.
Constant = object


@dataclass(frozen=True, slots=True)
class Values:
    """What an expression may be under this configuration.

    Attributes:
        constants: the possibilities that are known, most likely first, no two equal ones of one type.
        complete: no other value is possible. `complete` with one constant means known.
        automatic: the value is the outcome of an automatic dispatch (device, architecture, installed packages) that only
            the server confirms; `constants` then holds the prediction.
        depends: names of configuration (fields, `env:NAME`, `device`, `model`, `package:NAME`) that it rests on.
        decided_by: the statement that decided it, where there is one.
    """

    constants: tuple[Constant, ...] = ()
    complete: bool = False
    automatic: bool = False
    depends: tuple[str, ...] = ()
    decided_by: Place | None = None

    @property
    def known(self) -> bool:
        """Whether exactly one value is possible."""
        return self.complete and len(self.constants) == 1

    @property
    def constant(self) -> Constant:
        """The single value; only where `known`."""
        assert self.known
        return self.constants[0]

    def truth(self) -> bool | None:
        """True or False where every possible value is truthy or falsy, else None."""
        if not self.complete or not self.constants:
            return None
        found = {_truthy(item) for item in self.constants}
        return found.pop() if len(found) == 1 else None


#: Nothing is known and nothing says why.
UNKNOWN = Values()


@dataclass(frozen=True, slots=True)
class Starts:
    """Whether the launch gets past the resolution of its arguments; `why`, `file`, `line` where it does not."""

    value: bool
    why: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of the contract's `config`."""

    name: str
    value: Constant
    source: Source
    automatic: bool = False
    predicted: Constant = None
    confirmed_by: str | None = None
    decided_by: Place | None = None
    depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Buckets:
    """A configured list of capture sizes.

    Attributes:
        phase: `decode` or `prefill`.
        sizes: the list after resolution, None where it is not settled.
        source: the function that computes it, None when the command lists the sizes.
        depends: what the unsettled list rests on.
        clamped: what is left of it under a request pool of the size that the arguments ask for, None where they do not.
    """

    phase: str
    sizes: tuple[int, ...] | None
    source: Place | None
    depends: tuple[str, ...] = ()
    clamped: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Unresolved:
    """One value that source alone does not settle, with what would."""

    what: str
    predicted: Constant
    decided_by: Place | None
    settle_with: str
    depends: tuple[str, ...] = field(default=())


class Configuration(Protocol):
    """One resolved launch. All questions are answered three-valued and none of them changes the resolution."""

    @property
    def entries(self) -> Sequence[Entry]:
        """Every configuration value, in order of name."""

    @property
    def starts(self) -> Starts:
        """Whether the server gets past its arguments."""

    @property
    def unresolved(self) -> Sequence[Unresolved]:
        """Values that a launch or a further fact would settle."""

    @property
    def buckets(self) -> Sequence[Buckets]:
        """Configured capture sizes by phase."""

    def field(self, class_qualname: str, attribute: str) -> Values | None:
        """What an attribute holds after resolution, over all objects of a configuration class.

        None when no object of that class belongs to the resolved configuration.
        """

    def only(self, class_qualname: str) -> InstanceOf | None:
        """The object of a configuration class, where the resolved configuration holds exactly one."""

    def attribute(self, instance: InstanceOf, name: str) -> Values | None:
        """What an attribute of one object holds; `__getattr__` and properties of its class are evaluated."""

    def is_instance(self, instance: InstanceOf, class_qualname: str) -> bool | None:
        """Whether one object is an instance of a class of the checkout; None where that is not settled."""

    def environment(self, name: str) -> Values:
        """The value of an environment variable (a string, or None when unset)."""

    def module_attribute(self, module: str, name: str) -> Values | None:
        """What a module-level name is bound to, None when the module does not bind it."""

    def call(self, qualname: str, arguments: Sequence[Constant] = ()) -> Values | None:
        """What a function of the checkout returns for constant arguments (InstanceOf included); None if it has no such function."""

    def evaluate_function(self, qualname: str, arguments: Sequence[Constant] = ()) -> Values:
        """As `call`, UNKNOWN instead of None."""


def _truthy(item: Constant) -> bool:
    if isinstance(item, (InstanceOf, ClassOf, FunctionOf)):
        return True
    return bool(item)
