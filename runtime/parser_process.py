"""A process that turns source into facts: bytes of files in by one pipe, encoded facts out by another.

It imports the parser and nothing else of this project. What a parser takes for a large file it does not give back, so
large files are parsed in a child that ends with them; native code that dies of one takes nothing else along.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from typing import BinaryIO

from sgl_graph.analyzer.static.extract import facts as f
from sgl_graph.analyzer.static.extract.nesting import too_deep

#: Parsing a file takes some three hundred times its size; what a child costs is a tenth of what parsing does.
_LARGE = 96 << 10
_COLLECTED = 64
READY = b"ready"
_LENGTH = 8


def parse(data: bytes) -> bytes:
    """Encoded facts of one file's bytes."""
    from sgl_graph.analyzer.static.extract.lower import (
        extract,  # the analysis speaks to this module, and needs no parser
    )

    return f.encode_module(f.failed("nested too deeply for Python") if too_deep(data) else extract(data))


def send(stream: BinaryIO, data: bytes) -> None:
    """Write one message."""
    stream.write(len(data).to_bytes(_LENGTH, "little"))
    stream.write(data)
    stream.flush()


def receive(stream: BinaryIO) -> bytes | None:
    """Read one message; None at the end, or where it breaks off."""
    head = stream.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    length = int.from_bytes(head, "little")
    data = stream.read(length)
    return data if len(data) == length else None


def serve(parser: Callable[[bytes], bytes] = parse, large: int = _LARGE) -> None:
    """Answer until there is nothing more to read; an empty answer: the file ended its parser."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started this decides when it ends
    import sgl_graph.analyzer.static.extract.lower  # noqa: F401 - once, and not in each child

    source, target = sys.stdin.buffer, sys.stdout.buffer
    gc.disable()  # syntax trees have no cycles: looking for some costs a tenth of the time and finds nothing
    gc.freeze()
    send(target, READY)
    answered = 0
    while (data := receive(source)) is not None:
        send(target, _apart(parser, data) if len(data) >= large and hasattr(os, "fork") else parser(data))
        answered += 1
        if answered % _COLLECTED == 0:
            gc.collect()


def _apart(parser: Callable[[bytes], bytes], data: bytes) -> bytes:
    """The answer of a child process; empty when it did not live to give it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "wb") as answer:
                answer.write(parser(data))
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        found = answer.read()
    return found if os.waitpid(child, 0)[1] == 0 else b""


if __name__ == "__main__":
    try:
        serve()
    except BrokenPipeError:
        os._exit(0)  # nobody waits for the answer any more
