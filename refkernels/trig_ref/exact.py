"""The exact tier: balls in multiple precision, for the few elements that a question leaves open.

libmp (mpmath's core) computes sin, cos and tan of an exact argument to the last bit or so of any
asked precision, with the argument reduced as far as that needs. Here GUARD bits of each result are
given away as its error. f(x) is transcendental for every rational x != 0 (Lindemann), so it is
never a rounding boundary itself.
The other functions are Arb's. Theirs too are transcendental, or for slopes irrational, wherever the
tier before is not exact (Niven for sinpi and cospi at rationals), but for atan's slope.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

from mpmath import libmp

from refkernels.elementwise.balls import of_arb, of_fraction
from refkernels.elementwise.function import Ball

GUARD = 20
_ONE = libmp.from_int(1)


def sine(x: float, precision: int) -> Ball:
    """sin x for finite x != 0."""
    return _ball(libmp.mpf_sin(libmp.from_float(x), precision, "n"), precision)


def cosine(x: float, precision: int) -> Ball:
    """cos x for finite x != 0."""
    return _ball(libmp.mpf_cos(libmp.from_float(x), precision, "n"), precision)


def minus_sine(x: float, precision: int) -> Ball:
    """-sin x for finite x != 0."""
    mid, radius, exponent = sine(x, precision)
    return -mid, radius, exponent


def tangent(x: float, precision: int) -> Ball:
    """tan x for finite x != 0."""
    return _ball(libmp.mpf_tan(libmp.from_float(x), precision, "n"), precision)


def secant_squared(x: float, precision: int) -> Ball:
    """1 / cos(x)^2 for finite x != 0."""
    cosine = libmp.mpf_cos(libmp.from_float(x), precision, "n")
    squared = libmp.mpf_mul(cosine, cosine)
    return _ball(libmp.mpf_div(_ONE, squared, precision, "n"), precision)


def _ball(number: Any, precision: int) -> Ball:
    """The mpf with a relative error of 2^(GUARD - precision) given to it."""
    sign, mantissa, exponent, size = number
    shift = max(precision - size, 0)
    mid = int(mantissa) << shift
    return (-mid if sign else mid), 1 << (GUARD + 1), int(exponent) - shift


def arb(name: str) -> Callable[[float, int], Ball]:
    """(x, precision) -> the ball of the function of that name, a slope with an apostrophe."""
    return partial(of_arb, _EXPRESSIONS[name])


def atan_gradient(dy: float, x: float, precision: int) -> Ball:
    """dy / (1 + x^2), a rational: it may be a rounding boundary itself."""
    return of_fraction(Fraction(dy) / (1 + Fraction(x) ** 2), precision)


_EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
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
