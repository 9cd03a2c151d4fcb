"""log, log2, log10 and log1p of one float64, as double-doubles with a radius.

log2 and log10 multiply log by a constant: LOG_ERROR + 5 + 1. log2 of a power of two is the integer
itself, which may be a rounding boundary of a narrow format; log10 of 10^k is an integer below 23,
never one. Below the domain NaN.
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import U, dd_mul
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.logarithm import LOG_ERROR, log1p_dd, log_dd
from refkernels.kernels.elementary.results import (
    LINEAR,
    exactly,
    tiny_product,
)
from refkernels.kernels.elementary.tables import (
    INV_LN2_HIGH,
    INV_LN2_LOW,
    INV_LN10_HIGH,
    INV_LN10_LOW,
)

LOG, LOG2, LOG10 = range(3)
SCALED_LOG_ERROR = LOG_ERROR + 8 * U**2  # log2 and log10


@inner
def log(code: int, x: Any) -> Any:
    if x == 0.0:
        return exactly(-math.inf)
    if not x > 0.0:
        return exactly(math.nan)
    if x == math.inf:
        return exactly(x)
    if x == 1.0:
        return exactly(0.0)
    m, exponent = math.frexp(x)
    if code == LOG2 and m == 0.5:
        return exactly(float(exponent - 1))
    high, low = log_dd(x, 0.0)
    if code == LOG:
        return high, low, abs(high) * LOG_ERROR, 0
    if code == LOG2:
        high, low = dd_mul(high, low, INV_LN2_HIGH, INV_LN2_LOW)
    else:
        high, low = dd_mul(high, low, INV_LN10_HIGH, INV_LN10_LOW)
    return high, low, abs(high) * SCALED_LOG_ERROR, 0


@inner
def log1p(x: Any) -> Any:
    if x == -1.0:
        return exactly(-math.inf)
    if not x > -1.0:
        return exactly(math.nan)
    if x == math.inf or x == 0.0:
        return exactly(x)
    if abs(x) < LINEAR:
        return tiny_product(1.0, -0.5, x, 1)
    high, low = log1p_dd(x, 0.0)
    return high, low, abs(high) * LOG_ERROR, 0
