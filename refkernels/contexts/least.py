"""What `Bound` gives at least, for all inputs between two ends, from the formula's graph alone.

|ẑ - z| may be at least rate u |z|: no rule of `Bound` gives less for a node of this rate. Not for
inputs that are powers of two, whose products round nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from refkernels.arithmetic.rounding import Rounding
from refkernels.contexts import functions
from refkernels.contexts.bound import Bound
from refkernels.contexts.graph import Node, Untraceable, in_order
from refkernels.contexts.record import Record, node_of

_UNKNOWN = -math.inf, math.inf


class Least(NamedTuple):
    """A node's rate; the ends of its values, where every kernel has them exactly; whether they may
    be powers of two that every kernel has exactly."""

    rate: float
    ends: tuple[float, float] = _UNKNOWN
    power: bool = False


def rate(formula: Callable[..., Any], ends: tuple[float, float], xp: Bound) -> float:
    """The rate of formula(xp, x) for `ends[0] <= x <= ends[1]`; 0 where nothing is known."""
    record = Record()
    try:
        result = node_of(formula(record, record.input("x", (1,))))
    except Untraceable:
        return 0.0
    known: dict[Node, Any] = {}
    for node in in_order([result]):
        operands = [known[operand] for operand in node.operands]
        known[node] = Least(0.0, ends) if node.op == "input" else _rule(node, operands, xp)
    return float(known[result].rate)


def _rule(node: Node, operands: list[Any], xp: Bound) -> Any:
    """What is known of a node: a `Least`; of a condition whether it holds, None where that is
    open."""
    match node.op, operands:
        case "number", _:
            return _number(node.option, xp.working)
        case (("less" | "not less"), (a, b)):
            holds, fails = a.ends[1] < b.ends[0], a.ends[0] >= b.ends[1]
            return None if not (holds or fails) else holds == (node.op == "less")
        case "is", (a,):
            return a
        case "not", (a,):
            return None if a is None else not a
        case "where", (yes, no, a, b):
            return a if yes else b if no else _either(a, b, min)
        case "maximum", (a, b):
            first, second = a.ends[0] > b.ends[1], b.ends[0] > a.ends[1]
            return a if first else b if second else _either(a, b, min)
        case "either", (a, b):
            return _either(a, b, max)
        case (("store" | "saved" | "broadcast"), (a,)):
            return a
        case "negative", (a,):
            return a._replace(ends=(-a.ends[1], -a.ends[0]))
        case "absolute", (a,):
            low, high = a.ends
            ends = a.ends if low >= 0.0 else (-high, -low) if high <= 0.0 else _UNKNOWN
            return a._replace(ends=ends)
        case (("add" | "subtract"), (a, b)):
            terms = [term.rate for term in (a, b) if term.ends != (0.0, 0.0)]
            return Least(1.0 + min(terms, default=0.0))
        case "multiply", (a, b):
            return _computed(a.rate + b.rate + (not (a.power or b.power)))
        case "divide", (a, b):
            return _computed(a.rate + b.rate + (not b.power))
        case "square", (a,):
            return Least(2.0 * a.rate + 1.0)
        case "function", _:
            limit = 2.0 * xp.limit * functions.allowance(node.option)
            return Least(1.0 if node.option == "sqrt" else limit)
    return _computed(0.0)


def _computed(rate: float) -> Least:
    """A result that is off, or of which nothing is known."""
    return Least(rate, power=rate == 0.0)


def _number(value: Any, working: Rounding) -> Least:
    mid = float(value)
    if value != mid or not working.holds(np.asarray(mid)):
        return Least(1.0)
    return Least(0.0, (mid, mid), abs(math.frexp(mid)[0]) == 0.5)


def _either(a: Least, b: Least, which: Callable[..., float]) -> Least:
    return Least(which(a.rate, b.rate), power=a.power or b.power)
