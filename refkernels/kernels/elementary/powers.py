"""sqrt, rsqrt and reciprocal of one float64: exact remainders, or double-doubles.

With x = m 2^e: 1/m = h + rest / m, rest = 1 - m h exactly by FMA; the quotient is rounded once, and
h = fl(1 / m) makes it relative: |lo| <= U h, error U |lo|. sqrt m = s + rest / (2 s) - ..., rest =
m - s^2 exactly; the next term is lo^2 / (2 s) <= U |lo| / 2, the quotient has one rounding, 2 s
none. Where the rest is zero the result is exact, a possible rounding boundary of a narrow format.
1/sqrt is a double-double, sqrt 25/8 U^2 and division 9.9, and exact where x is a power of four.
Roots of -0 are IEEE 754's: -0 and -inf.
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import (
    DIV_ERROR,
    SQRT_ERROR,
    U,
    dd_div,
    dd_sqrt,
)
from refkernels.arithmetic.eft import fast_two_sum, fma
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.results import exactly, place

REMAINDER_ERROR = 2.0 * U  # of lo
RSQRT_ERROR = SQRT_ERROR + DIV_ERROR + U**2


@inner
def reciprocal(x: Any) -> Any:
    if x == 0.0 or not math.isfinite(x):
        return exactly(1.0 / x)
    m, exponent = math.frexp(x)
    high = 1.0 / m
    high, low = fast_two_sum(high, fma(-m, high, 1.0) / m)
    return place(high, low, abs(low) * REMAINDER_ERROR, -exponent)


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
def rsqrt(x: Any) -> Any:
    if not 0.0 < x < math.inf:
        return exactly(1.0 / math.sqrt(x) if x >= 0.0 else math.nan)
    m, exponent = _even(x)
    if m == 0.25:
        return place(2.0, 0.0, 0.0, -exponent)
    high, low = dd_div(1.0, 0.0, *dd_sqrt(m, 0.0))
    return place(high, low, high * RSQRT_ERROR, -exponent)
