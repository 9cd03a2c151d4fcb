"""The invariants of the trigonometric functions.

The bounds 3 and 1.5 stand for pi and pi/2, with room for the error of any kernel within its limit.
"""

import math

import numpy as np

from refkernels.arithmetic import formats
from refkernels.arithmetic.arrays import to_float64
from refkernels.arithmetic.formats import Format
from refkernels.elementwise.invariants import CONTRACTS, Mask, backward, forward, sign, within
from refkernels.kernels.real_function import Doubles
from refkernels.op import Invariant


def _within_rounded(statement: str, low: float, high: float) -> Invariant:
    """y in [low, high], each end rounded outward to the format."""

    def violated(y: Doubles, x: Doubles, format: Format) -> Mask:
        ends = formats.round_to(np.array([low, high]), format)
        reached = to_float64(ends)
        with np.errstate(over="ignore"):
            step = to_float64(np.nextafter(ends, np.array([-np.inf, np.inf]).astype(ends.dtype)))
        bottom = reached[0] if reached[0] <= low else step[0]
        top = reached[1] if reached[1] >= high else step[1]
        return (y < bottom) | (y > top)

    return forward("range", statement, violated)


def _positive(statement: str, end: float) -> Invariant:
    """y > 0 for |x| <= end."""
    return forward("positive", statement, lambda y, x, _: (np.abs(x) <= end) & (y <= 0.0))


def _zero_at(statement: str, offset: float) -> Invariant:
    """y = 0 where x is an integer and the offset."""

    def violated(y: Doubles, x: Doubles, format: Format) -> Mask:
        with np.errstate(invalid="ignore"):
            return np.isfinite(x) & (np.fmod(np.abs(x), 1.0) == offset) & (y != 0.0)

    return forward("zero", statement, violated)


def _at_most_one(name: str) -> Invariant:
    return within(f"|{name} x| <= 1", -1.0, 1.0, name="at_most_one")


def _arc(name: str, end: float) -> tuple[Invariant, ...]:
    statement = f"|{name} x| <= pi/2, rounded outward"
    return _within_rounded(statement, -_HALF_PI, _HALF_PI), sign(f"{name} x has the sign of x", end)


_HALF_PI = math.pi / 2  # and math.pi: below pi/2 and pi, by less than half a unit of float64
_STRETCHES = backward(
    "slope_at_least_one",
    "|dx| >= |dy|",
    lambda dx, dy, normal, x: normal & np.isfinite(x) & (dx < dy),
)
INVARIANTS: dict[str, tuple[Invariant, ...]] = {
    "sin": (
        _at_most_one("sin"),
        sign("sin x never has the other sign for |x| <= 3", 3.0),
        CONTRACTS,
    ),
    "cos": (_at_most_one("cos"), _positive("cos x > 0 for |x| <= 1.5", 1.5), CONTRACTS),
    "tan": (sign("tan x never has the other sign for |x| <= 1.5", 1.5), _STRETCHES),
    "asin": (*_arc("asin", 1.0), _STRETCHES),
    "acos": (_within_rounded("0 <= acos x <= pi, rounded outward", 0.0, math.pi), _STRETCHES),
    "atan": (*_arc("atan", math.inf), CONTRACTS),
    "sinpi": (_at_most_one("sinpi"), _zero_at("sinpi x = 0 at every integer", 0.0)),
    "cospi": (_at_most_one("cospi"), _zero_at("cospi x = 0 halfway between integers", 0.5)),
}
