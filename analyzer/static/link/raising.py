"""Bodies of `try` that cannot raise: what their handlers do is then no outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.link.frame import Frame
from sgl_graph.analyzer.static.link.values import ClassValue, Constant, EnumMember

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.interpreter import Interpreter


def cannot_raise(interpreter: Interpreter, frame: Frame, body: list[Statement]) -> bool:
    """Whether each statement of a body only reads members of enumerations by names that they have."""
    if interpreter.world.survey:
        return False
    values = [statement[2] if statement[0] == "return" else None for statement in body]
    return bool(values) and all(value is not None and _is_member(interpreter, frame, value) for value in values)


def _is_member(interpreter: Interpreter, frame: Frame, e: Expression) -> bool:
    """`Enumeration[name]` where every name that may arrive is one of its members."""
    if e[0] != "s" or len(e[2]) != 1 or e[2][0][0] != "n":
        return False
    owners = interpreter.expressions.eval(frame, e[1])
    keys = interpreter.expressions.eval(frame, e[2][0])
    for owner in owners:
        if not isinstance(owner, ClassValue) or "enum" not in owner.marks:
            return False
        names = {member.name for member in interpreter.models.members(owner) if isinstance(member, EnumMember)}
        if any(not isinstance(key, Constant) or key.value not in names for key in keys):
            return False
    return bool(owners) and bool(keys)
