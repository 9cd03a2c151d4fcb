"""Numbers that are solved for: another value of a constant, a floor, a ceiling, a filter's cut.

A *knob* is a family of edits, one for each value. From some starts Newton's method goes to the
value that most elements ask for (the median over the elements), and halved steps to the one that
comes nearest. What fits is an *interval*, from there outwards to where the answer would cost some
bits more. It costs as many bits as values of that precision can be told apart. Proof speaks of the
interval: a usual number is named where exactly one lies in it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from refkernels.contexts.graph import Edits, Node, Replacement
from refkernels.diagnosis import few_digits
from refkernels.diagnosis.edits.catalogue import Program, by, is_number

Doubles = npt.NDArray[np.float64]
CONSTANT, MULTIPLIED, ADDED = "constant_differs", "part_multiplied", "constant_added"
_STARTS = (1.0, 2.0**-10, 2.0**10)  # times the present value
_QUANTILES = (0.03, 0.25, 0.5, 0.75, 0.97)
_STEPS, _MISSES = 12, 2  # of Newton's method, and those that come no nearer
_BEST_STARTS = 2
_AT_FIRST, _PROMISING = 0.98, 0.9  # of the bits that the truth costs
_LIMITED = frozenset(
    (
        *("sum", "mean", "norm", "max", "matmul", "multiply", "divide", "function", "add"),
        *("subtract", "negative", "square", "power", "input", "array"),
    )
)
_HALVINGS = 60
_FAR = 4.0  # times the largest size: a limit beyond it is none
_WORSE = 10.0  # bits: where a value no longer fits
_CHANCE = 2.0**-7  # that an interval holds a number of so few digits
_EXPONENT = 7.0  # bits of the binary order of magnitude, and of the sign
USUAL = frozenset(
    (
        *(10.0**-k for k in range(13)),
        *(5.0 * 10.0**-k for k in range(1, 9)),
        *(2.0**-k for k in (7, 10, 23, 24, 52, 53)),
        *(0.0, 1.0, 2.0, 10.0, 100.0, 1000.0, 10000.0),
    )
)


class Knob(NamedTuple):
    """A family of edits. `starts`: the values to begin from. `largest`: the largest size of what is
    limited."""

    kind: str
    place: Node
    changes: Callable[[float], Edits]
    starts: tuple[float, ...]
    details: dict[str, Any]
    largest: float = math.inf

    def binds(self, value: float) -> bool:
        """Whether a limit of that size limits anything."""
        return abs(value) <= _FAR * self.largest

    def unchanged(self, low: float, high: float, rounding: float) -> bool:
        """Whether the interval holds the present value, but for what kernels round: a factor of
        1 - 2^-23 may be a quotient that is truncated."""
        present = self.details.get("asked", math.nan)
        return low - rounding * abs(present) <= present <= high + rounding * abs(present)


class Target(NamedTuple):
    """An output that a value is solved for. `predict`: the output of an edited program, None where
    there is none; `distance`: the bits that the kernel's costs when that is known; `rounding`: the
    relative size of a few roundings."""

    got: Doubles
    predict: Callable[[Edits], Doubles | None]
    distance: Callable[[Doubles], float]
    rounding: float = 0.0


class SolvedNumber(NamedTuple):
    """The value that comes nearest, the interval of those that fit, and what they cost in bits."""

    value: float
    low: float
    high: float
    distance: float

    @property
    def price(self) -> float:
        """Bits of a value of this precision."""
        width, size = self.high - self.low, max(abs(self.low), abs(self.high))
        return _EXPONENT + math.log2(max(size / width, 1.0) if 0.0 < width < math.inf else 1.0)

    @property
    def told(self) -> float:
        """The usual number in the interval, if there is exactly one; else a number of few digits
        that is there hardly by chance; else the nearest."""
        inside = [number for number in USUAL if self.low <= number <= self.high]
        if len(inside) == 1:
            return inside[0]
        sign = math.copysign(1.0, self.value)
        low, high = sorted((sign * self.low, sign * self.high))
        short = few_digits.chosen(low, high, _CHANCE)
        return self.value if inside or short is None else sign * short[0]


def knobs(program: Program, value_of: Callable[[Node], Any]) -> Iterator[Knob]:
    """The families of a program. `value_of`: a node's value in the screen."""
    for node in (node for node in program.nodes if node.op != "welford"):  # two numbers
        value = np.asarray(value_of(node))
        if is_number(node):
            present = float(value)
            starts = tuple((present or 1.0) * factor for factor in _STARTS)
            details = {"part": node, "param": node.op == "input", "asked": present}
            yield Knob(CONSTANT, node, KINDS[CONSTANT](node), (*starts, 0.0), details)
        elif node.op in _LIMITED and np.unique(finite := value[np.isfinite(value)]).size > 1:
            details = {"part": node}
            yield Knob(MULTIPLIED, node, KINDS[MULTIPLIED](node), (0.5, 0.0), details)
            least = float(np.abs(finite).min())
            yield Knob(ADDED, node, KINDS[ADDED](node), (least, -least, least * 2.0**-10), details)
            starts = tuple(np.quantile(finite, _QUANTILES).tolist())
            sizes = tuple(np.quantile(np.abs(finite), _QUANTILES).tolist())
            largest = float(np.abs(finite).max())
            for kind in KINDS.keys() - {CONSTANT, MULTIPLIED, ADDED}:
                begin = starts if kind in ("floored", "capped") else sizes
                yield Knob(kind, node, KINDS[kind](node), begin, details, largest)


def _limited(limit: Callable[[Any, Any, Any], Any]) -> Callable[[Node], Callable[[float], Edits]]:
    return lambda node: lambda v: {node: by(node)(lambda xp, x: limit(xp, x, xp.number(v)))}


KINDS: dict[str, Callable[[Node], Callable[[float], Edits]]] = {
    CONSTANT: lambda node: lambda v: {node: Replacement((), lambda xp: xp.number(v))},
    "floored": _limited(lambda xp, x, v: xp.maximum(x, v)),
    "capped": _limited(lambda xp, x, v: xp.minimum(x, v)),
    "cut": _limited(lambda xp, x, v: xp.where(abs(x) < v, x * 0, x)),
    "saturated": _limited(lambda xp, x, v: v * xp.tanh(x / v)),
    MULTIPLIED: _limited(lambda xp, x, v: x * v),
    ADDED: _limited(lambda xp, x, v: x + v),
}


def solve(knob: Knob, target: Target) -> SolvedNumber | None:
    """The nearest value and its interval; None where no value is much nearer than the present
    program."""
    predicted: dict[float, Doubles | None] = {}

    def predict(value: float) -> Doubles | None:
        if value not in predicted:
            finite = math.isfinite(value)
            predicted[value] = target.predict(knob.changes(value)) if finite else None
        return predicted[value]

    @functools.cache
    def at(value: float) -> float:
        known = predict(value)
        return math.inf if known is None else target.distance(known)

    present = target.predict({})
    if present is None:
        return None
    starts = sorted(knob.starts, key=at)[:_BEST_STARTS]
    reached = [value for start in starts for value in _newton(target.got, predict, at, start)]
    best, most = min(reached, key=at), target.distance(present)
    step = (max(knob.starts) - min(knob.starts)) / 8.0
    for promising, precision in ((_AT_FIRST, 2.0**-8), (_PROMISING, 2.0**-50)):
        if at(best) > promising * most:
            return None
        best = _refined(best, at, max(step, abs(best) / 8.0), precision)
        step = 0.0
    held = target.rounding * abs(best)  # a kernel rounds what it holds
    low, high = _end(best, -1.0, at) - held, _end(best, 1.0, at) + held
    if not knob.binds(best) or knob.unchanged(low, high, target.rounding):
        return None
    return SolvedNumber(best, low, high, at(best))


def _newton(
    got: Doubles,
    predict: Callable[[float], Doubles | None],
    at: Callable[[float], float],
    value: float,
) -> Iterator[float]:
    """The start, and the values that Newton's method finds from it while they come nearer: in each
    step the median of what the elements that depend on it ask for."""
    nearest, misses = math.inf, 0
    for _ in range(_STEPS):
        yield value
        misses = 0 if at(value) < nearest else misses + 1
        nearest = min(nearest, at(value))
        if misses == _MISSES:
            return
        step = abs(value) * 2.0**-20 or 2.0**-60
        here, there = predict(value), predict(value + step)
        if here is None or there is None:
            return
        with np.errstate(all="ignore"):
            wanted = (got - here) / ((there - here) / step)
        wanted = wanted[np.isfinite(wanted)]
        change = float(np.median(wanted)) if wanted.size else 0.0
        if abs(change) <= abs(value) * 2.0**-30:
            return
        value += change


def _refined(best: float, at: Callable[[float], float], step: float, precision: float) -> float:
    """A better value nearby: the step is halved where neither neighbour is better."""
    for _ in range(_HALVINGS):
        if step <= abs(best) * precision:
            break
        nearest = min((best - step, best, best + step), key=at)
        if nearest == best:
            step /= 2.0
        best = nearest
    return best


def _end(best: float, side: float, at: Callable[[float], float]) -> float:
    """How far the values that fit reach on one side, to a hundredth of that distance; infinite
    where they reach beyond every size that is tried."""
    most = at(best) + _WORSE
    step = abs(best) * 2.0**-50 or 2.0**-100
    inside = 0.0
    while at(best + side * step) <= most:
        inside, step = step, step * 4.0
        if step > 2.0**40 * (abs(best) or 1.0):
            return side * math.inf
    for _ in range(8):
        middle = (inside + step) / 2.0
        inside, step = (middle, step) if at(best + side * middle) <= most else (inside, middle)
    return best + side * inside
