"""exp, exp2 and expm1 of one float64, as double-doubles with a derived radius.

exp2: x = n + r exactly; r ln 2 to 3 U^2 of 0.35, then exp's 5 U^2. An integer x gives the power of
two itself, a rounding boundary where it is half of the smallest subnormal. Results of arguments
beyond FARTHEST have no scale (`vanishing`, `beyond`).
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import U, dd_mul_double
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.exponential import (
    EXP_ERROR,
    FAR,
    FAR_ERROR,
    FARTHEST,
    exp_dd,
    expm1_dd,
)
from refkernels.kernels.elementary.results import (
    LINEAR,
    beyond,
    exactly,
    place,
    tiny_product,
    tiny_sum,
    vanishing,
)
from refkernels.kernels.elementary.tables import LN2_HIGH, LN2_LOW

EXP2_ERROR = 8 * U**2
_BEYOND_ONE = 700.0  # beyond it, one term of exp(x) - 1 is below every digit of the other


@inner
def exp_error(x: Any) -> Any:
    """The relative error of exp_dd at x."""
    return EXP_ERROR if abs(x) <= FAR else FAR_ERROR


@inner
def _out_of_scale(x: Any) -> Any:
    """e^x or 2^x for |x| > FARTHEST."""
    return beyond(1.0) if x > 0.0 else vanishing(1.0)


@inner
def exp(x: Any) -> Any:
    if x == 0.0:
        return exactly(1.0)
    if not math.isfinite(x):
        return exactly(0.0 if x < 0.0 else x)
    if abs(x) < LINEAR:
        return tiny_sum(1.0, 1.0, x, 1)
    if abs(x) > FARTHEST:
        return _out_of_scale(x)
    high, low, k = exp_dd(x, 0.0)
    return place(high, low, high * exp_error(x), k)


@inner
def exp2(x: Any) -> Any:
    if not math.isfinite(x):
        return exactly(0.0 if x < 0.0 else x)
    if abs(x) > FARTHEST:
        return _out_of_scale(x)
    n = np.rint(x)
    if x == n:
        return place(1.0, 0.0, 0.0, np.int64(n))
    if abs(x) < LINEAR:
        return tiny_sum(1.0, LN2_HIGH, x, 1)
    rh, rl = dd_mul_double(LN2_HIGH, LN2_LOW, x - n)
    high, low, k = exp_dd(rh, rl)
    return place(high, low, high * EXP2_ERROR, k + np.int64(n))


@inner
def expm1(x: Any) -> Any:
    if x == 0.0:
        return exactly(x)
    if not math.isfinite(x):
        return exactly(-1.0 if x < 0.0 else x)
    if abs(x) < LINEAR:
        return tiny_product(1.0, 0.5, x, 1)
    if x < -_BEYOND_ONE:
        return -1.0, 2.0**-1000, 2.0**-1000, 0
    if x > FARTHEST:
        return beyond(1.0)
    if x > _BEYOND_ONE:
        high, low, k = exp_dd(x, 0.0)
        return place(high, low, high * (exp_error(x) + 2.0**-900), k)
    high, low, radius = expm1_dd(x, 0.0)
    return high, low, radius, 0
