"""Integer balls (mid ± radius) 2^exponent from Arb's real balls and from rationals.

python-flint is imported when first needed. Source: Johansson (2017), "Arb: efficient
arbitrary-precision midpoint-radius interval arithmetic", doi:10.1109/TC.2017.2690633.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from refkernels.elementwise.function import Ball


def of_arb(expression: Callable[[Any], Any], x: float, precision: int) -> Ball:
    """The ball of expression(x), x an exact flint.arb, in so many bits of working precision."""
    import flint

    with flint.ctx.workprec(precision):
        return of(expression(flint.arb(x)))


def of(value: Any) -> Ball:
    """The ball that a flint.arb is, exactly."""
    mid, exponent = (int(part) for part in value.mid().man_exp())
    radius, power = (int(part) for part in value.rad().man_exp())
    if not radius:
        return mid, 0, exponent
    if not mid:
        return 0, radius, power
    common = min(exponent, power)
    return mid << (exponent - common), radius << (power - common), common


def of_fraction(value: Fraction, precision: int) -> Ball:
    """The ball of a rational, to that many bits; radius 0 where it is a binary fraction."""
    top, bottom = value.numerator, value.denominator
    if bottom & (bottom - 1) == 0:
        return top, 0, 1 - bottom.bit_length()
    exponent = abs(top).bit_length() - bottom.bit_length() - precision
    if exponent > 0:
        return top // (bottom << exponent), 1, exponent
    return (top << -exponent) // bottom, 1, exponent
