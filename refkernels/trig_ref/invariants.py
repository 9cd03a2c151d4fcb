"""The invariants of the trigonometric functions.

The bounds 3 and 1.5 stand for pi and pi/2, with room for the error of any kernel within its limit.
"""

import math

from refkernels.elementwise.invariants import (
    CONTRACTS,
    STRETCHES,
    positive,
    sign,
    within,
    within_rounded,
    zero_at,
)
from refkernels.op import Invariant

_HALF_PI = math.pi / 2  # and math.pi: below pi/2 and pi, by less than half a unit of float64


def _at_most_one(name: str) -> Invariant:
    return within(f"|{name} x| <= 1", -1.0, 1.0, name="at_most_one")


def _arc(name: str, end: float) -> tuple[Invariant, ...]:
    statement = f"|{name} x| <= pi/2, rounded outward"
    return within_rounded(statement, -_HALF_PI, _HALF_PI), sign(f"{name} x has the sign of x", end)


INVARIANTS: dict[str, tuple[Invariant, ...]] = {
    "sin": (
        _at_most_one("sin"),
        sign("sin x never has the other sign for |x| <= 3", 3.0),
        CONTRACTS,
    ),
    "cos": (_at_most_one("cos"), positive("cos x > 0 for |x| <= 1.5", 1.5), CONTRACTS),
    "tan": (sign("tan x never has the other sign for |x| <= 1.5", 1.5), STRETCHES),
    "asin": (*_arc("asin", 1.0), STRETCHES),
    "acos": (within_rounded("0 <= acos x <= pi, rounded outward", 0.0, math.pi), STRETCHES),
    "atan": (*_arc("atan", math.inf), CONTRACTS),
    "sinpi": (_at_most_one("sinpi"), zero_at("sinpi x = 0 at every integer", 0.0)),
    "cospi": (_at_most_one("cospi"), zero_at("cospi x = 0 halfway between integers", 0.5)),
}
