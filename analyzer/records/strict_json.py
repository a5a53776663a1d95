"""JSON from elsewhere: what this tool could not write again is refused, however it was nested or spelled."""

from __future__ import annotations

import json
import math
import re
from typing import Any

#: No honest file nests deeper than a dozen levels.
DEEPEST = 100
_SURROGATE = re.compile(rb"\\u[dD][89abAB]")


def parse_json(data: bytes, *, finite: bool = True) -> Any:
    """The value of a JSON text.

    Args:
        data: The text.
        finite: Whether `NaN`, `Infinity` and numbers as large are refused.

    Raises:
        ValueError: It is not JSON, nests too deeply, or holds a number or a character that JSON cannot carry.
    """
    try:
        value = json.loads(data, parse_constant=_refuse, parse_float=_finite) if finite else json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if _deeper(value, DEEPEST):
        raise ValueError("nested too deeply")
    if _SURROGATE.search(data):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError("half a character") from error
    return value


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is too large")
    return value


def _deeper(value: Any, most: int) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return False
        members = (item for holder in level for item in (holder.values() if isinstance(holder, dict) else holder))
        level = [item for item in members if isinstance(item, dict | list)]
    return bool(level)
