"""Tables of what the evaluator implements itself: functions and attributes outside the checkout, by access path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sgl_graph.analyzer.static.config.values import ABSENT, External, Value

#: Takes the evaluator, positional and keyword arguments.
NativeCall = Callable[[Any, list[Value], dict[str, Value]], Value]

#: Access path to its implementation.
CALLS: dict[str, NativeCall] = {}
#: Access path to its value, for constants.
CONSTANTS: dict[str, Value] = {}
_BUILTIN_NAMES = frozenset(
    [
        "ArithmeticError",
        "AssertionError",
        "AttributeError",
        "BaseException",
        "Exception",
        "FileNotFoundError",
        "FileExistsError",
        "ImportError",
        "IndexError",
        "KeyError",
        "KeyboardInterrupt",
        "LookupError",
        "ModuleNotFoundError",
        "NameError",
        "NotImplementedError",
        "OSError",
        "OverflowError",
        "PermissionError",
        "RecursionError",
        "RuntimeError",
        "StopIteration",
        "SyntaxError",
        "SystemExit",
        "TimeoutError",
        "TypeError",
        "UnicodeDecodeError",
        "ValueError",
        "ZeroDivisionError",
        "ConnectionError",
        "IOError",
        "EnvironmentError",
        "Warning",
        "DeprecationWarning",
        "FutureWarning",
        "UserWarning",
        "RuntimeWarning",
        "NotImplemented",
        "Ellipsis",
        "abs",
        "all",
        "any",
        "bool",
        "bytes",
        "bytearray",
        "callable",
        "chr",
        "classmethod",
        "complex",
        "delattr",
        "dict",
        "dir",
        "divmod",
        "enumerate",
        "eval",
        "exec",
        "filter",
        "float",
        "format",
        "frozenset",
        "getattr",
        "globals",
        "hasattr",
        "hash",
        "hex",
        "id",
        "input",
        "int",
        "isinstance",
        "issubclass",
        "iter",
        "len",
        "list",
        "locals",
        "map",
        "max",
        "memoryview",
        "min",
        "next",
        "object",
        "oct",
        "open",
        "ord",
        "pow",
        "print",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "setattr",
        "slice",
        "sorted",
        "staticmethod",
        "str",
        "sum",
        "super",
        "tuple",
        "type",
        "vars",
        "zip",
        "__import__",
    ]
)


def native(*paths: str) -> Callable[[NativeCall], NativeCall]:
    """Register the implementation of functions outside the checkout."""

    def register(call: NativeCall) -> NativeCall:
        for path in paths:
            CALLS[path] = call
        return call

    return register


def builtin(name: str) -> Value:
    """A name of Python's own namespace, or ABSENT."""
    return External(f"builtins.{name}") if name in _BUILTIN_NAMES else ABSENT
