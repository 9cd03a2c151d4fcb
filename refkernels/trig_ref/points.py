"""Floats next to multiples of pi/2: where sin, cos and tan are hardest, found in exact arithmetic.

x = m 2^e is next to a multiple of pi/2 where m 2^e 2/pi is next to an integer: by the theory of
continued fractions m is then a denominator of a convergent of 2^e 2/pi, or a small multiple.
Source: Kahan (1983), "Minimizing q*m-n"; Muller, "Elementary Functions" (2016), section 11.3.
"""

import functools
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from refkernels.arithmetic.formats import Format
from refkernels.kernels.trigonometric.tables import TWO_OVER_PI

_BITS = 64 * (TWO_OVER_PI.size - 1)
_NUMERATOR = functools.reduce(lambda total, word: total << 64 | int(word), TWO_OVER_PI, 0)
_PI_BITS = 2400  # pi/2 = 1 / (2/pi), to the 1344 bits of the table
_HALF_PI = (1 << (_BITS + _PI_BITS)) // _NUMERATOR


def multiples(ks: list[int]) -> npt.NDArray[np.float64]:
    """k pi/2 rounded to float64, for integers k."""
    return np.array([float(Fraction(k * _HALF_PI, 1 << _PI_BITS)) for k in ks])


def distance(x: float) -> Fraction:
    """x 2/pi minus the nearest integer, to about 2^-300."""
    quadrants = Fraction(x) * Fraction(_NUMERATOR, 1 << _BITS)
    return quadrants - round(quadrants)


@functools.cache
def hardest(format: Format) -> npt.NDArray[np.float64]:
    """For every exponent of the format from 2^0 on, the numbers m 2^e with p-bit m that the
    convergents give: the global minimum of |x - k pi/2| / x is among them. Ascending by x."""
    numbers = set()
    for exponent in range(1 - format.p, format.emax - format.p + 2):
        for m in _denominators(exponent, format.p):
            numbers.add(float(m * Fraction(2) ** exponent))
    return np.array(sorted(x for x in numbers if 0.5 < x <= format.max))


def _denominators(exponent: int, p: int) -> list[int]:
    """Denominators m in [2^(p-1), 2^p) of convergents of 2^exponent 2/pi; or the largest multiple
    in range of the last convergent below it, whichever exist."""
    top, bottom = (
        (_NUMERATOR << exponent, 1 << _BITS)
        if exponent > 0
        else (
            _NUMERATOR,
            1 << (_BITS - exponent),
        )
    )
    before, last = 0, 1  # the convergents' denominators
    top, bottom = bottom, top % bottom
    chosen = []
    while bottom and last < 2**p:
        quotient, remainder = divmod(top, bottom)
        before, last = last, quotient * last + before
        top, bottom = bottom, remainder
        if 2 ** (p - 1) <= last < 2**p:
            chosen.append(last)
    if not chosen and before < 2 ** (p - 1):
        chosen.append(before * (-(-(2 ** (p - 1)) // before)))
    return [m for m in chosen if m < 2**p]
