"""Gradient: backward from forward, over any other context: a tape of pullbacks.

    xp = Gradient(Arb(256))
    x = xp.array(values)
    y = formula(xp, x)
    dx, = xp.pull(y, dy, [x])         # dy and dx in the context below

`PULLBACKS` is the table of all derivatives: for z = f(a, ...), the cotangent of each argument from
g, the cotangent of z. A rearrangement moves elements, so its pullback follows from where it moves
their indices. `pivot` has derivative 0, since results do not depend on it; `store` has 1.

A tie of `maximum`, and so of `minimum` and `clip`, and |0| have every number between the slopes of
both sides: certified contexts enclose them all; computed arithmetic gives a tie to the first
argument, and |0| the slope 1. `max` shares its gradient evenly among the largest. `where` takes the
branch that its condition chooses, so a formula states a convention of its own by `where`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.grids import NumberGrid
from refkernels.contexts.context import FUNCTIONS, Context, Index
from refkernels.contexts.graph import in_order
from refkernels.contexts.value import Mask, Value, not_a_value, taken

Pullback = Callable[..., tuple["Value | None", ...]]


class Taped(Value):
    """A value of the context below, with its arguments and its pullback."""

    __slots__ = ("arguments", "pull", "value")

    def __init__(
        self,
        context: Gradient,
        value: Value,
        arguments: tuple[Taped, ...] = (),
        pull: Callable[[Value], tuple[Value | None, ...]] | None = None,
    ) -> None:
        self.context = context
        self.value = value
        self.arguments = arguments
        self.pull = pull

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape


def _by_table(name: str) -> Any:
    """The method of a primitive of values a and b: the one below, its pullback from the table."""
    operands = len({"a", "b"} & inspect.signature(getattr(Context, name)).parameters.keys())

    def primitive(self: Gradient, *given: Any, **options: Any) -> Taped:
        nodes = tuple(map(node, given[:operands]))
        below, values = self.below, [*(part.value for part in nodes), *given[operands:]]
        result = getattr(below, name)(*values, **options)
        rule = PULLBACKS[name]
        return Taped(self, result, nodes, lambda g: rule(below, g, result, *values, **options))

    primitive.__name__ = name
    return primitive


class Gradient(Context):
    """Computes as `below` does, and records a tape."""

    def __init__(self, below: Context) -> None:
        self.below = below
        self.name = f"Gradient({below.name})"

    def pull(self, output: Value, cotangent: Value, inputs: Sequence[Value]) -> list[Value]:
        """The cotangents of the inputs, in the context below, given that of the output.

        Raises ValueError where the cotangent's shape is not the output's.
        """
        if cotangent.shape != taken(output).shape:
            raise ValueError(
                f"The cotangent has shape {cotangent.shape} and the output {output.shape}: "
                "they must be equal."
            )
        below = self.below
        gathered: dict[int, Value] = {id(output): cotangent}
        order = in_order([node(output)], lambda current: current.arguments[::-1])
        wanted = _dependent(order, inputs)  # a constant's cotangent may be the sum of all elements
        for current in reversed(order):
            g = gathered.get(id(current))
            if g is None or current.pull is None or id(current) not in wanted:
                continue
            for argument, share in zip(current.arguments, current.pull(g), strict=True):
                if share is None or id(argument) not in wanted:
                    continue
                if share.shape != (shape := argument.value.shape):
                    share = _unbroadcast(below, share, shape)
                sum_so_far = gathered.get(id(argument))
                gathered[id(argument)] = (
                    share if sum_so_far is None else below.add(sum_so_far, share)
                )
        for x in (x for x in inputs if id(x) not in gathered):
            gathered[id(x)] = below.broadcast(below.number(0), x.shape)
        return [gathered[id(x)] for x in inputs]

    def array(self, values: npt.NDArray[Any]) -> Taped:
        return Taped(self, self.below.array(values))

    def leaf(self, value: Value) -> Taped:
        """A value of the context below as an input of the tape."""
        return Taped(self, value)

    def number(self, value: Any) -> Taped:
        return Taped(self, self.below.number(value))

    def pi(self) -> Taped:
        return Taped(self, self.below.pi())

    add, subtract, multiply, divide = map(_by_table, ("add", "subtract", "multiply", "divide"))
    negative, absolute, square, power = map(_by_table, ("negative", "absolute", "square", "power"))
    maximum, logaddexp, matmul = map(_by_table, ("maximum", "logaddexp", "matmul"))
    sum, max, cumsum, prod = map(_by_table, ("sum", "max", "cumsum", "prod"))
    store, saved, narrow, either = map(_by_table, ("store", "saved", "narrow", "either"))

    def primitive(self, name: str, a: Value) -> Taped:
        argument = node(a)
        result = self.below.function(name, argument.value)
        slope = SLOPES[name]
        below = self.below

        def pull(g: Value) -> tuple[Value | None, ...]:
            return (below.multiply(g, slope(below, result, argument.value)),)

        return Taped(self, result, (argument,), pull)

    def pivot(self, a: Value, axis: int = -1) -> Taped:
        return Taped(self, self.below.pivot(node(a).value, axis))

    def stop(self, a: Value) -> Taped:
        return Taped(self, node(a).value)

    def step(self, a: Value, grid: NumberGrid) -> Taped:
        return Taped(self, self.below.step(node(a).value, grid))

    def less(self, a: Value, b: Value) -> Mask:
        return self.below.less(node(a).value, node(b).value)

    def where(self, mask: Mask | npt.NDArray[np.bool_], a: Value, b: Value) -> Taped:
        below, nodes = self.below, (node(a), node(b))
        result = below.where(mask, nodes[0].value, nodes[1].value)
        zero = below.number(0)

        def pull(g: Value) -> tuple[Value | None, ...]:
            return below.where(mask, g, zero), below.where(mask, zero, g)

        return Taped(self, result, nodes, pull)

    def rearrange(self, change: Any, *values: Value) -> Taped:
        below, nodes = self.below, tuple(map(node, values))
        result = below.rearrange(change, *(argument.value for argument in nodes))

        def pull(g: Value) -> tuple[Value | None, ...]:
            sources, *places = self.moved(change, *(argument.shape for argument in nodes))
            length = sum(index.size for index in places)
            flat = below.scatter_add(below.reshape(g, (-1,)), sources, length)
            return tuple(below.take(flat, index) for index in places)

        return Taped(self, result, nodes, pull)

    def moved(self, change: Any, *shapes: tuple[int, ...]) -> list[Index]:
        """Where change(*arrays) takes each element from, and where those of each array stand."""
        *ends, length = np.cumsum([math.prod(shape) for shape in shapes]).tolist()
        parts = zip(np.split(np.arange(length), ends), shapes, strict=True)
        places = [part.reshape(shape) for part, shape in parts]
        return [change(*places).reshape(-1), *places]

    def scatter_add(self, a: Value, index: Index, length: int) -> Taped:
        below, argument = self.below, node(a)
        result = below.scatter_add(argument.value, index, length)
        return Taped(self, result, (argument,), lambda g: (below.take(g, index),))


def node(value: Value) -> Taped:
    if not isinstance(value, Taped):
        raise not_a_value(value)
    return value


def _dependent(order: Sequence[Taped], inputs: Sequence[Value]) -> set[int]:
    """The identities of the inputs and of the nodes that depend on them."""
    dependent = {id(value) for value in inputs}
    for current in order:
        if not dependent.isdisjoint(map(id, current.arguments)):
            dependent.add(id(current))
    return dependent


def _unbroadcast(xp: Context, g: Value, shape: tuple[int, ...]) -> Value:
    """g summed over the axes along which an argument of that shape was repeated."""
    while len(g.shape) > len(shape):
        g = xp.reshape(xp.sum(g, 0), g.shape[1:])
    for axis, (have, want) in enumerate(zip(g.shape, shape, strict=True)):
        if have != want:
            g = xp.sum(g, axis)
    return g if g.shape == shape else xp.broadcast(g, shape)


def _strictly(xp: Context, a: Value, b: Value) -> Mask:
    """Where a < b, and where a > b. A tie is neither, so `where` takes the union of both sides:
    every number between the two slopes is a derivative there. Computed arithmetic takes the
    second."""
    return Mask(xp.less(a, b).yes, xp.less(b, a).yes)


def _absolute(xp: Context, g: Value, z: Value, a: Value) -> tuple[Value, ...]:
    return (xp.where(_strictly(xp, a, xp.number(0)), xp.negative(g), g),)


def _maximum(xp: Context, g: Value, z: Value, a: Value, b: Value) -> tuple[Value, ...]:
    smaller, zero = _strictly(xp, a, b), xp.number(0)
    return xp.where(smaller, zero, g), xp.where(smaller, g, zero)


def _cumsum(xp: Context, g: Value, z: Value, a: Value, axis: int = -1) -> tuple[Value, ...]:
    def flip(x: Value) -> Value:
        return xp.rearrange(lambda part: np.flip(part, axis), x)

    return (flip(xp.cumsum(flip(g), axis)),)


def _matmul(xp: Context, g: Value, z: Value, a: Value, b: Value) -> tuple[Value, ...]:
    def swapped(x: Value) -> Value:
        return xp.rearrange(lambda part: np.swapaxes(part, -1, -2), x)

    return xp.matmul(g, swapped(b)), xp.matmul(swapped(a), g)


PULLBACKS: dict[str, Pullback] = {
    "add": lambda xp, g, z, a, b: (g, g),
    "subtract": lambda xp, g, z, a, b: (g, -g),
    "multiply": lambda xp, g, z, a, b: (g * b, g * a),
    "divide": lambda xp, g, z, a, b: (g / b, -(g * z) / b),
    "negative": lambda xp, g, z, a: (-g,),
    "absolute": _absolute,
    "square": lambda xp, g, z, a: (2 * (g * a),),
    "power": lambda xp, g, z, a, exponent: (
        (xp.number(exponent) * (g * xp.power(a, exponent - 1)),) if exponent else (None,)
    ),
    "sum": lambda xp, g, z, a, axis=-1: (xp.broadcast(g, a.shape),),
    "max": lambda xp, g, z, a, axis=-1: (g * xp.share_of_max(a, z, axis),),
    "cumsum": _cumsum,
    "prod": lambda xp, g, z, a, axis=-1: (g * xp.others(a, axis),),
    "matmul": _matmul,
    "store": lambda xp, g, z, a: (g,),
    "saved": lambda xp, g, z, a: (g,),
    "narrow": lambda xp, g, z, a, format: (g,),
    "either": lambda xp, g, z, a, b: (g, None),
    "maximum": _maximum,
    "logaddexp": lambda xp, g, z, a, b, log1p=True: (g * xp.exp(a - z), g * xp.exp(b - z)),
}

SLOPES: dict[str, Callable[[Context, Value, Value], Value]] = {
    "sqrt": lambda xp, z, a: 1 / (2 * z),
    "rsqrt": lambda xp, z, a: -z / (2 * a),
    "exp": lambda xp, z, a: z,
    "expm1": lambda xp, z, a: xp.exp(a),
    "log": lambda xp, z, a: 1 / a,
    "log1p": lambda xp, z, a: 1 / (1 + a),
    "tanh": lambda xp, z, a: 1 - xp.square(z),
    "erf": lambda xp, z, a: 2 * xp.exp(-xp.square(a)) / xp.sqrt(xp.pi()),
    "erfc": lambda xp, z, a: -2 * xp.exp(-xp.square(a)) / xp.sqrt(xp.pi()),
    "sin": lambda xp, z, a: xp.cos(a),
    "cos": lambda xp, z, a: -xp.sin(a),
    "atan": lambda xp, z, a: 1 / (1 + xp.square(a)),
}
assert set(SLOPES) == set(FUNCTIONS)
