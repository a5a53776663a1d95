"""Every error that a user may meet; the class decides the exit code."""

from __future__ import annotations


class SglGraphError(Exception):
    """Base of all expected errors: one clear message, an optional remedy, a documented exit code."""

    exit_code = 70

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Errors cross process pools; the default protocol would drop the keyword-only hint.
        return (_rebuild, (type(self), self.message, self.hint))


def _rebuild(cls: type[SglGraphError], message: str, hint: str | None) -> SglGraphError:
    return cls(message, hint=hint)


class ConfigError(SglGraphError):
    """Usage or configuration is wrong (exit code 2)."""

    exit_code = 2


class CheckoutNotFound(ConfigError):
    """No serving checkout where one was asked for."""


class CommandInvalid(ConfigError):
    """The serving command cannot be understood by the checkout's own declarations."""


class OutputExists(ConfigError):
    """An output path exists and will not be overwritten."""


class HostError(SglGraphError):
    """The host cannot do the work: server, worker, GPU or injection (exit code 4)."""

    exit_code = 4


class ServerStartFailed(HostError):
    """A launched server died or never became healthy."""


class WorkerLost(HostError):
    """A worker process vanished."""


class ProbeUnsupported(HostError):
    """The probe cannot act in this environment."""


class GpuUnavailable(HostError):
    """No usable device, or the device is busy."""


class ArchiveError(SglGraphError):
    """An archive cannot be read (exit code 5)."""

    exit_code = 5


class ArchiveMissing(ArchiveError):
    """No archive at the path."""


class ArchiveCorrupt(ArchiveError):
    """An archive is damaged; the message names file and line."""


class SchemaUnknown(ArchiveError):
    """A file declares a schema that this release does not know."""
