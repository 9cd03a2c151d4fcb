"""sqrt, rsqrt, reciprocal and their slopes of one float64: exact remainders, or double-doubles.

With x = m 2^e: 1/m = h + rest / m, rest = 1 - m h exactly by FMA; the quotient is rounded once, and
h = fl(1 / m) makes it relative: |lo| <= U h, error U |lo|. sqrt m = s + rest / (2 s) - ..., rest =
m - s^2 exactly; the next term is lo^2 / (2 s) <= U |lo| / 2, the quotient has one rounding, 2 s
none. Where the rest is zero the result is exact, a possible rounding boundary of a narrow format.
The others are double-doubles:
  1/sqrt  sqrt 25/8 U^2, division 9.9;  its slope: a division by m, 3 more
  1/x^2   m^2 exactly as a sum of two, division 9.9
and exact where m is a power of two (rsqrt: x a power of four). Roots of -0 are IEEE 754's: -0 and
-inf; slopes at -0 are those of the formulas 1 / (2 sqrt x) and -1 / (2 x sqrt x): both -inf.
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import (
    DIV_ERROR,
    SQRT_ERROR,
    U,
    dd_div,
    dd_div_double,
    dd_sqrt,
)
from refkernels.arithmetic.eft import fast_two_sum, fma, two_prod
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.results import exactly, place

REMAINDER_ERROR = 2.0 * U  # of lo
RSQRT_ERROR = SQRT_ERROR + DIV_ERROR + U**2
RSQRT_SLOPE_ERROR = RSQRT_ERROR + 4 * U**2
RECIPROCAL_SLOPE_ERROR = DIV_ERROR + U**2


@inner
def inverse_parts(x: Any) -> Any:
    """1 / x = (high + low ± radius) 2^exponent for finite x != 0; radius 0 where it is exact."""
    m, exponent = math.frexp(x)
    high = 1.0 / m
    low = fma(-m, high, 1.0) / m
    high, low = fast_two_sum(high, low)
    return high, low, abs(low) * REMAINDER_ERROR, -exponent


@inner
def reciprocal(x: Any) -> Any:
    if x == 0.0 or not math.isfinite(x):
        return exactly(1.0 / x)
    high, low, radius, exponent = inverse_parts(x)
    return place(high, low, radius, exponent)


@inner
def reciprocal_slope(x: Any) -> Any:
    if x == 0.0 or not math.isfinite(x):
        return exactly(-(1.0 / (x * x)))
    m, exponent = math.frexp(x)
    high, low = two_prod(m, m)
    high, low = dd_div(-1.0, 0.0, high, low)
    radius = 0.0 if abs(m) == 0.5 else -high * RECIPROCAL_SLOPE_ERROR
    return place(high, low, radius, -2 * exponent)


@inner
def _even(x: Any) -> Any:
    """(m, e) with x = m 4^e, 1/4 <= m < 1."""
    m, exponent = math.frexp(x)
    if exponent & 1:
        return 0.5 * m, (exponent + 1) >> 1
    return m, exponent >> 1


@inner
def sqrt(x: Any) -> Any:
    if not 0.0 < x < math.inf:
        return exactly(math.sqrt(x) if x >= 0.0 else math.nan)
    m, exponent = _even(x)
    root = math.sqrt(m)
    high, low = fast_two_sum(root, fma(-root, root, m) / (2.0 * root))
    return place(high, low, abs(low) * REMAINDER_ERROR, exponent)


@inner
def rsqrt(factor: float, slope: bool, x: Any) -> Any:
    """factor / sqrt(x), or factor / (x sqrt(x)) for the slope; |factor| a power of two."""
    if not 0.0 < x < math.inf:
        zero = slope and x == 0.0
        return exactly(factor / math.sqrt(abs(x) if zero else x) if x >= 0.0 else math.nan)
    m, exponent = _even(x)
    exponent *= 3 if slope else 1
    if m == 0.25:
        return place((8.0 if slope else 2.0) * factor, 0.0, 0.0, -exponent)
    high, low = dd_sqrt(m, 0.0)
    high, low = dd_div(factor, 0.0, high, low)
    if slope:
        high, low = dd_div_double(high, low, m)
    error = RSQRT_SLOPE_ERROR if slope else RSQRT_ERROR
    return place(high, low, abs(high) * error, -exponent)
