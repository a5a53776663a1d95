"""Arrays without rows: what `if x.shape[0] == 0:` says of `x` where it holds.

Such an array cannot be taken apart into items. Code that hands an empty batch back as it is returns something else than its
other returns do, and whoever takes the result apart does not do so with the empty one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.extract.text import render
from sgl_graph.analyzer.static.link.values import NOTHING, ROWLESS, ClassValue, Instance, Values, just

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.link.world import World

#: Statements that bind no name (but for what `:=` in them does).
_PASSIVE = frozenset(("assert", "return", "raise", "e"))
_ONLY_ROWLESS: Values = just(ROWLESS)
#: Names by which an object of the checkout may have a shape.
_SHAPED = ("shape", "size", "__getattr__", "__getattribute__")
#: Bases from outside the checkout that give their objects no `shape` and no items (but for a named tuple's, whose fields they are).
_PLAIN_BASES = {
    "object", "abc.ABC", "typing.Generic", "typing.Protocol", "typing.NamedTuple", "typing_extensions.Protocol",
    "msgspec.Struct", "torch.nn.Module",
}  # fmt: skip


def tested(test: Expression) -> Iterator[Expression]:
    """What has no rows where a test holds: the `x` of `x.shape[0] == 0` or `x.size(0) == 0`, also beside other parts of an `and`."""
    if test[0] == "bo" and test[1] == "and":
        yield from tested(test[2])
        yield from tested(test[3])
    elif test[0] == "cmp" and len(test[2]) == 1 and list(test[2][0]) == ["==", ["v", 0]]:
        left = test[1]
        zeroth = [["v", 0]]
        if (left[0] == "s" and left[2] == zeroth and left[1][0] == "a" and left[1][2] == "shape") or (
            left[0] == "c" and left[2] == zeroth and left[1][0] == "a" and left[1][2] == "size"
        ):
            yield left[1][1]


def items_without_rows(test: Expression, body: list[Statement]) -> frozenset[str]:
    """Texts of the items, `x[0]`, that have no rows in a body that binds nothing anew."""
    found = [e for e in tested(test) if e[0] == "s" and e[1][0] == "n" and len(e[2]) == 1 and e[2][0][0] == "v"]
    if not found or not all(statement[0] in _PASSIVE for statement in body) or _assigns(body):
        return frozenset()
    return frozenset(map(render, found))


def _assigns(part: object) -> bool:
    if not isinstance(part, (list, tuple)):
        return False
    return bool(part) and (part[0] == "w" or any(map(_assigns, part)))


def without_rows(world: World, values: Values) -> Values:
    """What values are of which a test says that `shape[0]` is zero: arrays without rows, and objects that have a shape of their own."""
    if not values:
        return NOTHING
    return _ONLY_ROWLESS.union(value for value in values if isinstance(value, Instance) and _has_shape(world, value))


def is_plain(cls: ClassValue) -> bool:
    """Whether objects of a class have only what classes of the checkout give them."""
    return all(isinstance(base, ClassValue) or base.path in _PLAIN_BASES for base in cls.mro)


def _has_shape(world: World, instance: Instance) -> bool:
    for one in world.concrete(instance):
        if not is_plain(one.cls):
            return True
        tables = [
            one.attributes,
            *(table for base in one.cls.line for table in (base.own, base.attributes, base.declared)),
        ]
        cells = [table[name] for table in tables for name in _SHAPED if name in table]
        if any(world.heap.read(cell) for cell in cells):
            return True
    return False
