"""Whether what captures is made for a model: who makes it may leave where the model lacks an attribute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from sgl_graph.analyzer.static.config.walking import walk
from sgl_graph.analyzer.static.extract.facts import Expression, Statement
from sgl_graph.analyzer.static.linked import Linked


class Fitting:
    """Tells what a draft's model lacks.

    Args:
        models: simple names of the classes of the target's model (False) and of the draft's (True), where they are known.
    """

    def __init__(self, linked: Linked | None, models: Mapping[bool, str]) -> None:
        self._linked = linked
        self._models = models
        self._attributes = cache(self._given)

    def leaves_draft_out(self, runner: str) -> bool:
        """Whether every function that makes a runner leaves where an attribute is missing that of the two models the target's has.

        What is asked of is a model, or what its constructor makes: the attribute is one that the target's gives itself.
        """
        linked = self._linked
        if linked is None or self._models.keys() != {False, True}:
            return False
        target, draft = self._attributes(False), self._attributes(True)
        if not target or not draft:
            return False
        makers = {
            caller
            for caller, calls in linked.calls.items()
            if any(call.active and runner in call.constructs for call in calls)
        }
        return bool(makers) and all(
            any(name in target and name not in draft for name in self._demanded(maker)) for maker in makers
        )

    def _demanded(self, maker: str) -> Iterator[str]:
        assert self._linked is not None
        definition = self._linked.definitions.get(maker)
        if definition is not None:
            yield from demanded(definition.module.function_body(definition.index))

    def _given(self, draft: bool) -> frozenset[str]:
        """Attributes that objects of a model's class, and of the classes that its constructor makes, give themselves."""
        assert self._linked is not None
        own = [name for name in self._linked.classes if name.rpartition(":")[2] == self._models[draft]]
        if len(own) != 1:
            return frozenset()
        classes = set(own)
        for maker in self._methods(own[0], "__init__"):
            classes |= {made for call in self._linked.calls.get(maker, ()) if call.active for made in call.constructs}
        return frozenset(name for cls in classes for method in self._methods(cls) for name in self._stored(method))

    def _methods(self, cls: str, name: str | None = None) -> Iterator[str]:
        """Methods of a class and of its ancestors; of one name, the nearest."""
        assert self._linked is not None
        info = self._linked.classes.get(cls)
        for ancestor in info.ancestors if info is not None else ():
            found = self._linked.classes.get(ancestor)
            methods = found.methods if found is not None else {}
            if name is None:
                yield from methods.values()
            elif name in methods:
                yield methods[name]
                return

    def _stored(self, method: str) -> Iterator[str]:
        assert self._linked is not None
        definition = self._linked.definitions.get(method)
        if definition is None or not definition.facts.parameters:
            return
        receiver = ["n", definition.facts.parameters[0].name]
        for statement in walk(definition.module.function_body(definition.index)):
            for target in _targets(statement):
                if target[0] == "a" and target[1] == receiver:
                    yield target[2]


def demanded(body: list[Statement]) -> Iterator[str]:
    """Attributes without which no way through a body goes on to its end, as `hasattr` asks for them."""
    for statement in body:
        if statement[0] != "if":
            continue
        if _leaves(statement[3]):
            yield from _missing(statement[2])
            continue
        asked: list[set[str]] = []
        last = statement
        while True:
            asked.append(set(_asked(last[2])))
            if len(last[4]) != 1 or last[4][0][0] != "if":
                break
            last = last[4][0]
        if _leaves(last[4]):
            yield from sorted(set.intersection(*asked))


def _missing(test: Expression) -> Iterator[str]:
    """Names for which a test holds where an object has no such attribute."""
    if test[0] == "u" and test[1] == "not":
        yield from _asked(test[2], alone=True)
    elif test[0] == "bo" and test[1] == "or":
        yield from _missing(test[2])
        yield from _missing(test[3])


def _asked(test: Expression, *, alone: bool = False) -> Iterator[str]:
    """Names of the attributes that an object has where a test holds."""
    if test[0] == "c" and test[1] == ["n", "hasattr"] and len(test[2]) == 2 and test[2][1][0] == "v":
        if isinstance(test[2][1][1], str):
            yield test[2][1][1]
    elif test[0] == "bo" and test[1] == "and" and not alone:
        yield from _asked(test[2])
        yield from _asked(test[3])


def _leaves(body: list[Statement]) -> bool:
    return bool(body) and body[-1][0] in ("return", "raise")


def _targets(statement: Statement) -> list[Expression]:
    if statement[0] == "=":
        found: list[Expression] = []
        for target in statement[2]:
            found += target[1] if target[0] in ("t", "L") else [target]
        return found
    return [statement[2]] if statement[0] in ("+=", ":") else []
