"""What `Bound` gives at least, for all inputs between two ends, from the formula's graph alone.

|ẑ - z| may be at least rate u |z|, and at least `floor`, which underflow causes: no rule of `Bound`
gives less for a node. The rate is not for inputs that are powers of two, whose products round
nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts import functions
from refkernels.contexts.ball import Ball, BallValue
from refkernels.contexts.bound import Bound
from refkernels.contexts.graph import Node, Untraceable, in_order, read
from refkernels.contexts.record import Record, node_of


class Least(NamedTuple):
    """A node's rate and floor; whether it may be a power of two that every kernel has exactly."""

    rate: float
    floor: float = 0.0
    power: bool = False


def least(formula: Callable[..., Any], ends: tuple[float, float], xp: Bound) -> Least:
    """That of formula(xp, x) for `ends[0] <= x <= ends[1]`; 0 where nothing is known."""
    record = Record()
    try:
        result = node_of(formula(record, record.input("x", (1,))))
    except Untraceable:
        return Least(0.0)
    mid = ends[0] / 2 + ends[1] / 2
    radius = np.nextafter(max(ends[1] - mid, mid - ends[0]), math.inf)
    nodes, ball = in_order([result]), Ball()
    values = read(nodes, ball, record.arrays, {"x": ball.value([mid], [radius])})
    exact, known = dict(zip(nodes, values, strict=True)), dict[Node, Least]()
    for node in nodes:
        operands = [(known[operand], exact[operand]) for operand in node.operands]
        known[node] = _rule(node, operands, xp)
    return known[result]


def _rule(node: Node, operands: list[tuple[Any, Any]], xp: Bound) -> Least:
    """What is known of a node, from what is known of its operands and from balls around them."""
    match node.op, operands:
        case "input", _:
            return Least(0.0)
        case "number", _:
            return _number(node.option, xp.working)
        case "where", ((_, yes), (_, no), (a, _), (b, _)):
            return a if yes.all() else b if no.all() else _either(a, b, min)
        case "maximum", ((a, x), (b, y)):
            less = Ball().less(x, y)
            return b if less.yes.all() else a if less.no.all() else _either(a, b, min)
        case "either", ((a, _), (b, _)):
            return _either(a, b, max)
        case (("store" | "saved" | "broadcast" | "negative" | "absolute"), ((a, _),)):
            return a
        case (("add" | "subtract"), ((a, x), (b, y))):
            rates = [term.rate for term, z in ((a, x), (b, y)) if _size(z)[1]]
            return Least(1.0 + min(rates, default=0.0), a.floor + b.floor)
        case "multiply", ((a, x), (b, y)):
            floor = _size(x)[0] * b.floor + _size(y)[0] * a.floor
            return _computed(a.rate + b.rate + (not (a.power or b.power)), floor)
        case "divide", ((a, x), (b, y)):
            most = _size(y)[1]
            floor = (a.floor + _size(x)[0] / most * b.floor) / most if most else 0.0
            return _computed(a.rate + b.rate + (not b.power), floor)
        case "square", ((a, x),):
            return Least(2.0 * a.rate + 1.0, 2.0 * _size(x)[0] * a.floor)
        case "function", _:
            limit = 2.0 * xp.limit * functions.allowance(node.option)
            return Least(1.0) if node.option == "sqrt" else Least(limit, limit * xp.working.half)
    return _computed(0.0)


def _size(ball: BallValue) -> tuple[float, float]:
    """The least and the largest magnitude."""
    size, radius = float(np.abs(ball.mid).max()), float(ball.radius.max())
    return max(size * (1.0 - 2.0**-40) - radius, 0.0), size + radius


def _computed(rate: float, floor: float = 0.0) -> Least:
    """A result that is off, or of which nothing is known."""
    return Least(rate, floor, power=rate == 0.0)


def _number(value: Any, working: Rounding) -> Least:
    mid = float(value)
    if value != mid or not working.holds(np.asarray(mid)):
        return Least(1.0)
    return Least(0.0, power=abs(math.frexp(mid)[0]) == 0.5)


def _either(a: Least, b: Least, which: Callable[..., float]) -> Least:
    return Least(which(a.rate, b.rate), which(a.floor, b.floor), power=a.power or b.power)
