"""Invariants that every correctly or faithfully rounded kernel of a function satisfies.

Faithful roundings err by less than one ulp each, so answers that fall by two ulp where the function
rises cannot both be faithful.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.elementwise.function import Doubles
from refkernels.op import Arrays, Invariant

Mask = npt.NDArray[np.bool_]
Violated = Callable[[Doubles, Doubles, Format], Mask]  # of the answers, and of x or of dy


def _forward(name: str, statement: str, violated: Violated, between: bool = False) -> Invariant:
    def of_arrays(got: Any, inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        return violated(to_float64(got), to_float64(inputs["x"]), formats.of(np.asarray(got)))

    return Invariant(name, statement, "forward", "y", of_arrays, between=between)


def _backward(name: str, statement: str, violated: Callable[..., Mask]) -> Invariant:
    """`violated` of |dx|, |dy|, where dy is normal, and x."""

    def of_arrays(got: Any, inputs: Arrays, params: Mapping[str, Any]) -> Mask:
        dy, format = to_float64(inputs["dy"]), formats.of(np.asarray(inputs["dy"]))
        size = np.abs(dy)
        return violated(np.abs(to_float64(got)), size, size >= format.min_normal, inputs["x"])

    return Invariant(name, statement, "backward", "dx", of_arrays)


def within(statement: str, low: float, high: float = math.inf, name: str = "range") -> Invariant:
    """y in [low, high]."""
    return _forward(name, statement, lambda y, x, _: (y < low) | (y > high))


def within_rounded(statement: str, low: float, high: float) -> Invariant:
    """y in [low, high], each end rounded outward to the format."""

    def violated(y: Doubles, x: Doubles, format: Format) -> Mask:
        ends = formats.round_to(np.array([low, high]), format)
        reached = to_float64(ends)
        with np.errstate(over="ignore"):
            step = to_float64(np.nextafter(ends, np.array([-np.inf, np.inf]).astype(ends.dtype)))
        bottom = reached[0] if reached[0] <= low else step[0]
        top = reached[1] if reached[1] >= high else step[1]
        return (y < bottom) | (y > top)

    return _forward("range", statement, violated)


def sign(statement: str, end: float = math.inf) -> Invariant:
    """The sign of x, or 0, for |x| <= end."""
    return _forward(
        "sign", statement, lambda y, x, _: (np.abs(x) <= end) & (np.sign(y) * np.sign(x) < 0.0)
    )


def positive(statement: str, end: float) -> Invariant:
    """y > 0 for |x| <= end."""
    return _forward("positive", statement, lambda y, x, _: (np.abs(x) <= end) & (y <= 0.0))


def zero_at(statement: str, offset: float) -> Invariant:
    """y = 0 where x is an integer and the offset."""

    def violated(y: Doubles, x: Doubles, format: Format) -> Mask:
        with np.errstate(invalid="ignore"):
            return np.isfinite(x) & (np.fmod(np.abs(x), 1.0) == offset) & (y != 0.0)

    return _forward("zero", statement, violated)


def at_least_x(statement: str) -> Invariant:
    return _forward("at_least_x", statement, lambda y, x, _: y < x)


def at_most_x(statement: str, sizes: bool = False) -> Invariant:
    """y <= x; of `sizes`, |y| <= |x|."""
    return _forward(
        "at_most_x", statement, lambda y, x, _: np.abs(y) > np.abs(x) if sizes else y > x
    )


def rising(name: str) -> Invariant:
    """No answer is two ulp or more below the answer to a smaller argument."""
    return _forward("rising", f"{name} never falls by two ulp", _falling, between=True)


def _falling(got: Doubles, arguments: Doubles, format: Format) -> Mask:
    x, y = arguments.reshape(-1), got.reshape(-1)
    order = np.argsort(x, kind="stable")
    order = order[np.isfinite(x[order]) & ~np.isnan(y[order])]
    sorted_x, sorted_y = x[order], y[order]
    highest = np.maximum.accumulate(sorted_y) if order.size else sorted_y
    first = np.searchsorted(sorted_x, sorted_x)  # the first of equal arguments
    before = np.where(first > 0, highest[np.maximum(first - 1, 0)], -np.inf)
    with np.errstate(invalid="ignore"):
        _, exponent = np.frexp(np.where(np.isfinite(before), before, 0.0))
        ulp = np.ldexp(1.0, np.maximum(exponent - 1, format.emin) - format.p + 1)
        fallen = before - sorted_y >= 2.0 * ulp
    mask = np.zeros(x.size, np.bool_)
    mask[order] = fallen
    return mask.reshape(np.shape(got))


CONTRACTS = _backward("slope_at_most_one", "|dx| <= |dy|", lambda dx, dy, *_: dx > dy)
STRETCHES = _backward(
    "slope_at_least_one",
    "|dx| >= |dy|",
    lambda dx, dy, normal, x: normal & np.isfinite(x) & (dx < dy),
)
# erf' is at most 2/sqrt(pi) = 1.1284; with room for an ulp of any format here
STEEP = _backward(
    "slope",
    "|dx| <= 1.15 |dy| where it does not overflow",
    lambda dx, dy, normal, x: normal & (dx / 1.15 > dy) & (dx < math.inf),
)
