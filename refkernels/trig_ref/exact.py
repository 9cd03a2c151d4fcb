"""The exact tier: Arb's balls, for the few elements that a question leaves open.

Arb reduces an argument of any size with enough bits. f(x) is transcendental for every rational x at
which the tier before is not exact (Lindemann; Niven for sinpi and cospi), and slopes are
irrational: none is a rounding boundary itself, except atan's slope, a rational.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from refkernels.elementwise.balls import of_arb, of_fraction
from refkernels.elementwise.function import Ball

_EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: x.sin(),
    "sin'": lambda x: x.cos(),
    "cos": lambda x: x.cos(),
    "cos'": lambda x: -x.sin(),
    "tan": lambda x: x.tan(),
    "tan'": lambda x: x.sec() ** 2,
    "asin": lambda x: x.asin(),
    "asin'": lambda x: (1 - x * x).rsqrt(),
    "acos": lambda x: x.acos(),
    "acos'": lambda x: -(1 - x * x).rsqrt(),
    "atan": lambda x: x.atan(),
    "atan'": lambda x: 1 / (1 + x * x),
    "sinpi": lambda x: x.sin_pi(),
    "sinpi'": lambda x: x.pi() * x.cos_pi(),
    "cospi": lambda x: x.cos_pi(),
    "cospi'": lambda x: -x.pi() * x.sin_pi(),
}


def ball(name: str) -> Callable[[float, int], Ball]:
    """(x, precision) -> the ball of the function of that name, a slope with an apostrophe."""
    return partial(of_arb, _EXPRESSIONS[name])


def atan_gradient(dy: float, x: float, precision: int) -> Ball:
    """dy / (1 + x^2), a rational: it may be a rounding boundary itself."""
    return of_fraction(Fraction(dy) / (1 + Fraction(x) ** 2), precision)
