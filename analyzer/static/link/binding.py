"""How the arguments of a call reach the parameters of a function."""

from __future__ import annotations

from sgl_graph.analyzer.static.link.arguments import Arguments
from sgl_graph.analyzer.static.link.cells import cell_in
from sgl_graph.analyzer.static.link.heap import Activation
from sgl_graph.analyzer.static.link.values import NOTHING, Constant, Value, Values, just
from sgl_graph.analyzer.static.link.world import World


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
            loose = arguments.star | arguments.double
            if loose:
                heap.write(activation.parameter(name), loose)
            if parameter.default is not None:
                heap.write(activation.parameter(name), heap.read(cell_in(function.defaults, name)))
        elif kind == "*":
            rest = world.container("tuple", (activation, "*"))
            extra = given[position:]
            rest.length = None if arguments.star else len(extra)
            for index, values in enumerate(extra):
                world.put(rest, Constant.of(index), values)
            if arguments.star:
                world.put(rest, None, arguments.star)
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
