"""How results become (hi, lo, radius, scale): exponents applied, and values of tiny arguments.

Near 0 a function is c + b x^p or x (c + b x^p) with an exact c, and the next term is below 2^-52
of the correction b x^p. Only the correction separates such a value from a rounding boundary c x of
a narrow format (silu(x) = x/2 + x^2/4 of an odd subnormal). So lo holds the correction alone, with
a radius relative to itself; or, where the correction is below 2^-960, |lo| = radius: an interval
that ends at c or c x, on the side where the value is (`Enclosure`).
"""

import math
from typing import Any

from refkernels.arithmetic.jit import inner, njit

LINEAR = 2.0**-54  # below it c + b x is enough for |b / c| <= 1
SQUARE = 2.0**-27  # below it c + b x^2 is enough
VANISHING = -(10**8)  # the power of two below which a tail is the interval from zero to that power
_LEAST = 2.0**-960  # of a correction; below it lo only gives the side on which the value is


@inner
def exactly(value: Any) -> Any:
    """An exact value: a float64, possibly special."""
    return value, 0.0, 0.0, 0


@inner
def vanishing(sign: Any) -> Any:
    """A result between zero and ±2^VANISHING."""
    return math.copysign(0.5, sign), 0.0, 0.5, VANISHING


@njit
def beyond(sign: Any) -> Any:
    """A finite result of that sign, too large for every scale."""
    return math.copysign(math.inf, sign), 0.0, math.inf, 0


@njit
def place(high: Any, low: Any, radius: Any, exponent: Any) -> Any:
    """The exponent moved into the parts where nothing is lost there: high in [2^-70, 2^70], low 0
    or above 2^-250, radius 0 or above 2^-280."""
    if abs(exponent) < 700:
        factor = math.ldexp(1.0, exponent)
        return high * factor, low * factor, radius * factor, 0
    return high, low, radius, exponent


@inner
def _correction(b: Any, x: Any, power: int) -> Any:
    """b x^power, power 1 or 2, and a bound on its error, with 2^-52 of it for the terms beyond."""
    term = b * x if power == 1 else b * (x * x)
    if abs(term) < _LEAST:
        return math.copysign(_LEAST, term), _LEAST
    return term, abs(term) * 2.0**-50


@inner
def tiny_sum(c: Any, b: Any, x: Any, power: int) -> Any:
    """c + b x^power + ... for 0 < |x| < LINEAR or SQUARE."""
    low, radius = _correction(b, x, power)
    return c, low, radius, 0


@inner
def tiny_product(c: Any, b: Any, x: Any, power: int) -> Any:
    """x (c + b x^power + ...) for 0 < |x| < LINEAR or SQUARE, c a power of two."""
    m, exponent = math.frexp(x)
    low, radius = _correction(b, x, power)
    if exponent > -200:
        return c * x, low * x, radius * abs(x) * 2.0, 0
    if radius == _LEAST:
        return c * m, math.copysign(low, low * m), radius, exponent
    return c * m, low * m, radius * 2.0, exponent
