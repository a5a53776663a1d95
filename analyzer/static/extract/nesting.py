"""Sources nested too deeply for Python itself: a parser in native code would end the process on them."""

from __future__ import annotations

import ast

_BRACKETS = b"()[]{}"
_OTHERS = bytes(set(range(256)) - set(_BRACKETS))
#: As deep as CPython's own tokenizer goes.
_DEEPEST = 200


def too_deep(source: bytes) -> bool:
    """Whether brackets nest deeper than Python allows.

    Args:
        source: A file's bytes.
    """
    if _estimate(source) <= _DEEPEST:
        return False
    try:
        ast.parse(source)  # only Python knows which of the brackets lie in strings and comments
    except SyntaxError as error:
        return "nested" in str(error.msg)
    except (MemoryError, RecursionError):
        return True
    except ValueError:
        return False
    return False


def _estimate(source: bytes) -> int:
    """At least the depth: pairs that can be taken away, one level a pass, then what never closes."""
    left = source.translate(None, _OTHERS)
    passes = 0
    while passes <= _DEEPEST:
        less = left.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(less) == len(left):
            break
        left, passes = less, passes + 1
    return passes + sum(left.count(opening) for opening in (b"(", b"[", b"{"))
