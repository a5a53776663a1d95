"""Three-valued truth, equality, order and membership of values that may be several."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sgl_graph.analyzer.static.config.possibilities import MAX_COMBINATIONS, deps_of, fuzzy, options_of, same, single
from sgl_graph.analyzer.static.config.program import Bound, Instance
from sgl_graph.analyzer.static.config.python_values import PLAIN, Inexact, hashable, inner_deps, to_python
from sgl_graph.analyzer.static.config.runs import holds_something, may_hold_something
from sgl_graph.analyzer.static.config.values import (
    ABSENT,
    NO_DEPS,
    Deps,
    DictV,
    External,
    Fuzzy,
    Generic,
    IteratorV,
    ListV,
    SetV,
    Value,
)

if TYPE_CHECKING:
    from sgl_graph.analyzer.static.config.operations import Operations


Verdict = tuple[bool | None, Deps]


# -- truth


def simple_truth(value: Value) -> Verdict:
    """Truth of a value made of booleans."""
    options, open_ = options_of(value)
    if open_ or not options:
        return None, deps_of(value)
    found = {bool(option) for option in options}
    return (found.pop() if len(found) == 1 else None), deps_of(value)


def truth(machine: Operations, value: Value) -> Verdict:
    """Three-valued truth of any value."""
    if type(value) is not Fuzzy:
        if type(value) in PLAIN:
            return bool(value), NO_DEPS
        return _truth_of(machine, value)
    deps = value.deps
    if value.open or not value.options:
        return None, deps
    found: set[bool | None] = set()
    for option in value.options:
        verdict, more = _truth_of(machine, option)
        found.add(verdict)
        deps |= more
    return (found.pop() if len(found) == 1 else None), deps


def _truth_of(machine: Operations, value: Value) -> Verdict:
    kind = type(value)
    if kind in PLAIN or kind is tuple or kind is frozenset:
        return bool(value), NO_DEPS
    if kind is ListV:
        if value.opaque is not None:
            return None, value.opaque
        if holds_something(value.items):
            return True, NO_DEPS
        deps: Deps = NO_DEPS
        for item in value.items:
            deps |= item.deps  # whatever is not certain to be there rests on something
        return (None if may_hold_something(value.items) else False), deps
    if kind is DictV or kind is SetV:
        certain = any(not (type(item) is Fuzzy and ABSENT in item.options) for item in value.items.values())
        if certain:
            return True, NO_DEPS
        if value.opaque is not None:
            return None, value.opaque
        if value.items:
            return None, frozenset().union(*(deps_of(item) for item in value.items.values()))
        return False, NO_DEPS
    if kind is Instance:
        return machine.truth_of_object(value)
    if kind is External and value.path.rsplit(".", 1)[-1].isupper():
        return None, frozenset({f"package:{value.path.split('.')[0]}"})
    return True, NO_DEPS


def restricted(machine: Operations, value: Value, wanted: bool) -> Value:
    """The possibilities of a value that are truthy (or falsy)."""
    options, open_ = options_of(value)
    kept = [option for option in options if _truth_of(machine, option)[0] is not (not wanted)]
    return fuzzy(kept, open_, deps_of(value))


# -- comparison


def compare(machine: Operations, op: str, left: Value, right: Value) -> Verdict:
    """Three-valued comparison."""
    deps = deps_of(left) | deps_of(right)
    ours, open_left = options_of(left)
    theirs, open_right = options_of(right)
    if len(ours) * len(theirs) > MAX_COMBINATIONS:
        return None, deps
    found: set[bool | None] = set()
    if (open_left or open_right) and not (op in ("is", "is not") and (_sentinel(left) or _sentinel(right))):
        found.add(None)
    elif open_left or open_right:
        found.add(op == "is not")  # what is unknown comes from outside: it is never an object made here for comparison
    for a, b in itertools.product(ours, theirs):
        verdict, more = _compare_single(machine, op, a, b)
        deps |= more
        found.add(verdict)
        if len(found) > 1:
            return None, deps
    if not found:
        return None, deps
    return found.pop(), deps


_ORDER: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def _sentinel(value: Value) -> bool:
    plain = single(value)
    return type(plain) is Instance and plain.cls == External("builtins.object")


def _compare_single(machine: Operations, op: str, a: Value, b: Value) -> Verdict:
    if op == "is" or op == "is not":
        verdict, deps = _identical(a, b), NO_DEPS
        return (None if verdict is None else verdict is (op == "is")), deps
    if op == "==" or op == "!=":
        verdict, deps = equal(machine, a, b)
        return (None if verdict is None else verdict is (op == "==")), deps
    if op == "in" or op == "not in":
        verdict, deps = contains(machine, b, a)
        return (None if verdict is None else verdict is (op == "in")), deps
    try:
        return bool(_ORDER[op](to_python(a), to_python(b))), inner_deps(a) | inner_deps(b)
    except (Inexact, KeyError):
        return None, inner_deps(a) | inner_deps(b)
    except TypeError:
        raise machine.fail("TypeError", f"{op} between {type(a).__name__} and {type(b).__name__}") from None


def _identical(a: Value, b: Value) -> bool | None:
    if a is b:
        return True
    if type(a) is External and type(b) is External:
        return a.path == b.path
    if type(a) is Bound and type(b) is Bound:
        return same(a, b)
    plain = (bool, type(None))
    if type(a) in plain or type(b) in plain:
        return type(a) is type(b) and bool(a == b)
    if type(a) is type(b) and type(a) in PLAIN:
        return bool(a == b)
    return False


def equal(machine: Operations, a: Value, b: Value) -> Verdict:
    """Three-valued equality of two single values."""
    if a is b:
        return True, NO_DEPS
    ka, kb = type(a), type(b)
    if ka in PLAIN and kb in PLAIN:
        return bool(a == b), NO_DEPS
    if (ka is tuple and kb is tuple) or (ka is ListV and kb is ListV):
        return _equal_sequences(machine, a, b)
    if ka is Instance or kb is Instance:
        return machine.equal_objects(a, b)
    if ka is External and kb is External:
        return a.path == b.path, NO_DEPS
    if ka is External or kb is External:
        other = b if ka is External else a
        named = a if ka is External else b
        # A module constant outside the checkout may be any string or number; a class or module equals none.
        last = named.path.rsplit(".", 1)[-1]
        if type(other) in (str, int, float) and (last.isupper() or last.startswith("__")):
            return None, frozenset({f"package:{named.path.split('.')[0]}"})
        return False, NO_DEPS
    if ka in (DictV, SetV) and kb in (DictV, SetV, frozenset):
        try:
            return bool(to_python(a) == to_python(b)), inner_deps(a) | inner_deps(b)
        except Inexact:
            return None, inner_deps(a) | inner_deps(b)
        except TypeError:
            return None, NO_DEPS
    if ka is Generic and kb is Generic:
        return (True if same(a.origin, b.origin) and a.arguments == b.arguments else None), NO_DEPS
    return False, NO_DEPS


def _equal_sequences(machine: Operations, a: Value, b: Value) -> Verdict:
    deps = NO_DEPS
    if type(a) is ListV:
        if not a.exact or not b.exact:
            return None, (a.opaque or NO_DEPS) | (b.opaque or NO_DEPS)
        a, b = a.items, b.items
    if len(a) != len(b):
        return False, deps
    result: bool | None = True
    for x, y in zip(a, b, strict=True):
        verdict, more = compare(machine, "==", x, y)
        deps |= more
        if verdict is False:
            return False, deps
        if verdict is None:
            result = None
    return result, deps


def contains(machine: Operations, container: Value, item: Value) -> Verdict:
    """Three-valued membership of a single value in a single container."""
    kind = type(container)
    if kind is str:
        if type(item) is str:
            return item in container, NO_DEPS
        try:
            return to_python(item) in container, NO_DEPS
        except (Inexact, TypeError):
            return None, deps_of(item)
    if kind is DictV or kind is SetV:
        return has_key(container, item)
    if kind is range or kind is frozenset:
        try:
            return to_python(item) in container, NO_DEPS
        except (Inexact, TypeError):
            return None, NO_DEPS
    items = machine.runs(container) if kind is not IteratorV else list(container.items)
    if items is None:
        if kind is Instance:
            return machine.contains_object(container, item)
        return None, getattr(container, "opaque", None) or NO_DEPS
    result: bool | None = False
    deps = NO_DEPS
    for element in items:
        verdict, more = compare(machine, "==", element, item)
        deps |= more
        if type(element) is Fuzzy and ABSENT in element.options:
            verdict = None if verdict is not False else False
        if verdict is True:
            return True, deps
        if verdict is None:
            result = None
    return result, deps


def has_key(container: Value, item: Value) -> Verdict:
    key = hashable(item)
    if key is ABSENT:
        return None, inner_deps(item)
    if key in container.items:
        value = container.items[key]
        if type(value) is Fuzzy and ABSENT in value.options:
            return None, value.deps
        return True, NO_DEPS
    if container.opaque is not None:
        return None, container.opaque
    return False, NO_DEPS
