"""Graphs that torch.compile captures by itself: a tree of them shares a pool, and torch arranges who has its memory when.

Inputs are copied to places of the pool that nobody owns between the replays, outputs are let go of before a replay that writes over
them, and blocks are given back and taken again when another branch runs. None of it is the program's doing.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

_FILE = "torch/_inductor/cudagraph_trees.py"
_DEEPEST = 200


def arranged(stack: list[dict[str, Any]]) -> bool:
    """Whether the trees took memory with this stack."""
    return any(str(frame.get("filename")).replace("\\", "/").endswith(_FILE) for frame in stack)


def captures(frame: FrameType | None) -> bool:
    """Whether the trees capture, in a stack that ends in `frame`."""
    for _ in range(_DEEPEST):
        if frame is None:
            return False
        if frame.f_code.co_filename.replace("\\", "/").endswith(_FILE):
            return True
        frame = frame.f_back
    return False
