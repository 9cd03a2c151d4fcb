"""tanh of one float64, as a double-double with a derived radius.

tanh |x| = M / (M + 2), M = expm1 |2 x| (exponential.py), U = 2^-53, up to LARGE: M's error enters
once, 2 + 9.9 -> 12 U^2 besides. Beyond, 1 - tanh < 2^-114.
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import U, dd_add_double, dd_div
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.exponential import expm1_dd
from refkernels.kernels.elementary.results import (
    SQUARE,
    exactly,
    tiny_product,
)

TANH_ERROR = 13 * U**2
LARGE = 40.0


@inner
def tanh(x: Any) -> Any:
    if x == 0.0 or math.isnan(x):
        return exactly(x)
    size = abs(x)
    sign = math.copysign(1.0, x)
    if size == math.inf:
        return exactly(sign)
    if size < SQUARE:
        return tiny_product(1.0, -1.0 / 3.0, x, 2)
    if size > LARGE:
        return sign, sign * -(2.0**-115), 2.0**-115, 0
    mh, ml, radius = expm1_dd(2.0 * size, 0.0)
    dh, dl = dd_add_double(mh, ml, 2.0)
    high, low = dd_div(mh, ml, dh, dl)
    radius = high * (radius / mh * 1.0001 + TANH_ERROR)
    return sign * high, sign * low, radius, 0
