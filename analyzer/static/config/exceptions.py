"""Exceptions of the analysed program: their classes, what a handler takes, and their text."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.config.possibilities import options_of, single
from sgl_graph.analyzer.static.config.program import ClassV, Instance
from sgl_graph.analyzer.static.config.values import External, ListV, Value

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.operations import Operations

# Exceptions of the standard library that handlers name beside Python's own, with the class they derive from.
_LIBRARY: dict[str, type[BaseException]] = {
    "json.JSONDecodeError": ValueError,
    "json.decoder.JSONDecodeError": ValueError,
    "argparse.ArgumentTypeError": Exception,
    "argparse.ArgumentError": Exception,
    "subprocess.CalledProcessError": Exception,
    "importlib.metadata.PackageNotFoundError": ModuleNotFoundError,
    "socket.timeout": OSError,
}


def matches(machine: Operations, value: Value, handled: Value) -> bool | None:
    """Whether a handler of `handled` (a class or several) takes the exception."""
    options, open_ = options_of(handled)
    if open_ or not options:
        return None
    verdicts = []
    for option in options:
        if isinstance(option, (tuple, ListV)):
            items = option.items if isinstance(option, ListV) else option
            found = [matches(machine, value, item) for item in items]
            verdicts.append(True if True in found else None if None in found else False)
        else:
            verdicts.append(_matches_one(machine, value, option))
    return verdicts[0] if len(set(verdicts)) == 1 else None


def _matches_one(machine: Operations, value: Value, handled: Value) -> bool | None:
    if type(value) is not Instance:
        return True if handled in (External("builtins.Exception"), External("builtins.BaseException")) else None
    line = machine.ancestry(value.cls)
    if type(handled) is ClassV:
        return any(item is handled for item in line)
    if type(handled) is not External:
        return None
    wanted = external_class(handled)
    unknown = False
    for item in line:
        if type(item) is not External:
            continue
        if item.path == handled.path:
            return True
        ours = external_class(item)
        if ours is not None and wanted is not None and issubclass(ours, wanted):
            return True
        unknown = unknown or ours is None
    return None if unknown or ((wanted is None and any(type(item) is External for item in line)) and unknown) else False


def external_class(item: External) -> type[BaseException] | None:
    """The Python exception class of an access path, where it is a known one."""
    if item.path in _LIBRARY:
        return _LIBRARY[item.path]
    prefix, _, name = item.path.rpartition(".")
    found = getattr(builtins, name, None) if prefix == "builtins" else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def describe(value: Value) -> str:
    """`ValueError: text` of an exception, as far as its text is known."""
    if type(value) is not Instance:
        return "an exception"
    name = value.cls.name if isinstance(value.cls, ClassV) else value.cls.path.rsplit(".", 1)[-1]
    arguments = single(value.attrs.get("args", ()))
    text = single(arguments[0]) if type(arguments) is tuple and arguments else None
    return f"{name}: {text}" if isinstance(text, str) else name
