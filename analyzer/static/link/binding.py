"""How the arguments of a call reach the parameters of a function."""

from __future__ import annotations

from sgl_graph.analyzer.static.extract.facts import Parameter
from sgl_graph.analyzer.static.link.arguments import Arguments, Spread
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import NOTHING, Constant, Value, Values, just
from sgl_graph.analyzer.static.link.world import World


class _Rows:
    """What the sequences of a `*x` give to the parameters from `start` on: those that the function takes, each item in its place."""

    def __init__(self, parameters: list[Parameter], start: int, arguments: Arguments, spread: Spread) -> None:
        self._start = start
        self._loose = spread.loose
        places = [parameter for parameter in parameters if parameter.kind in ("p", "n")]
        free = places[start:]
        by_name = next((index for index, place in enumerate(free) if place.name in arguments.keywords), None)
        more = by_name is None and any(parameter.kind == "*" for parameter in parameters)
        most = len(free) if by_name is None else by_name
        needed = [index for index, place in enumerate(free[:most]) if place.default is None]
        least = needed[-1] + 1 if needed and not arguments.double else 0
        # A sequence of another length ends in a TypeError.
        self._rows = [row for row in spread.rows if least <= len(row) and (more or len(row) <= most)]

    def at(self, position: int) -> Values:
        """What the parameter in this place may be given."""
        index = position - self._start
        return self._loose.union(*(row[index] for row in self._rows if index < len(row)))

    def reach(self, position: int) -> bool:
        """Whether the parameter in this place is given for certain."""
        return not self._loose and all(position - self._start < len(row) for row in self._rows)

    def after(self, position: int) -> Values:
        """What is left for `*rest` from this place on."""
        first = max(position - self._start, 0)
        return self._loose.union(*(values for row in self._rows for values in row[first:]))


def bind(
    world: World, activation: Activation, receiver: Value | None, positional: list[Values], arguments: Arguments
) -> None:
    """Write what a call gives into the cells of the parameters; what it leaves out takes its default.

    `receiver` is the object of a method call; arguments of unknown number (`*x`, `**x`) may reach any parameter left over.
    """
    function = activation.function
    assert function is not None
    heap = world.heap
    parameters = function.facts.parameters
    position = 0
    given = list(positional)
    if receiver is not None and parameters and parameters[0].kind in ("p", "n"):
        heap.write(activation.parameter(parameters[0].name), just(receiver))
        parameters = parameters[1:]
    elif receiver is not None:  # `def wrapper(*args)` bound to an object
        given.insert(0, just(receiver))
    named = set()
    rows = _Rows(parameters, len(given), arguments, arguments.spread) if arguments.spread is not None else None
    for parameter in parameters:
        name, kind = parameter.name, parameter.kind
        if kind in ("p", "n"):
            if position < len(given):
                heap.write(activation.parameter(name), given[position])
                position += 1
                named.add(name)
                continue
            values = arguments.keywords.get(name, NOTHING)
            if name in arguments.keywords:
                named.add(name)
                heap.write(activation.parameter(name), values)
                continue
            loose = arguments.double | (arguments.star if rows is None else rows.at(position))
            given_up_to_here = rows is not None and rows.reach(position)
            position += 1
            if loose:
                heap.write(activation.parameter(name), loose)
            if parameter.default is not None and not given_up_to_here:
                heap.write(activation.parameter(name), heap.read(cell_in(function.defaults, name)))
        elif kind == "*":
            rest = world.container("tuple", (activation, "*"))
            extra = given[position:]
            rest.length = None if arguments.star else len(extra)
            for index, values in enumerate(extra):
                world.put(rest, Constant.of(index), values)
            if arguments.star:
                world.put(rest, None, arguments.star if rows is None else rows.after(position))
            position = len(given)
            heap.write(activation.parameter(name), just(rest))
        elif kind == "k":
            if name in arguments.keywords:
                named.add(name)
                heap.write(activation.parameter(name), arguments.keywords[name])
            else:
                if arguments.double:
                    heap.write(activation.parameter(name), arguments.double)
                if parameter.default is not None:
                    heap.write(activation.parameter(name), heap.read(cell_in(function.defaults, name)))
        else:
            rest = world.container("dict", (activation, "**"))
            rest.given = True
            for keyword, values in arguments.keywords.items():
                if keyword not in named:
                    world.put(rest, Constant.of(keyword), values)
            if arguments.double:
                world.put(rest, None, arguments.double)
            heap.write(activation.parameter(name), just(rest))
