"""sigmoid, silu and softplus of one float64, as double-doubles.

With E = exp(-|x|) (5 U^2, U = 2^-53), s = sigmoid(x):
  sigmoid   1 / (1 + E) or E / (1 + E): 5 + (2 + 5/2) + 9.9                            -> 18 U^2
            beyond x = 39: 1 - E, whose lo is -E to 2^-50 of itself
  silu      x s: 2 U^2 more; where s is 1 - E, only x E beside x counts
  softplus  log(1 + E) with 64 U^2 and E's 5, for x > 0 added to x
            beyond x = 39: x + E with lo = E to 2^-50 of itself; below -76: E
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import (
    U,
    dd_add_double,
    dd_div,
    dd_mul_double,
)
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.exponential import FARTHEST, exp_dd
from refkernels.kernels.elementary.exponentials import exp_error
from refkernels.kernels.elementary.logarithm import LOG_ERROR, log1p_dd
from refkernels.kernels.elementary.results import (
    LINEAR,
    exactly,
    place,
    tiny_product,
    tiny_sum,
    vanishing,
)
from refkernels.kernels.elementary.tables import LN2_HIGH, LN2_LOW

SIGMOID_ERROR = 18 * U**2
SOFTPLUS_ERROR = LOG_ERROR + 8 * U**2
_NEAR_ONE = -56  # E = e^-|x| < 2^(k + 1.01) beside 1: above this k its square counts
_NOTHING = -110  # below this k the sum 1 + E is 1 to 2^-108
_LEAST = -900  # below this k E only decides on which side of a value the result is


@inner
def _decay(x: Any) -> Any:
    """exp(-|x|) as (high, low, k); beyond FARTHEST, where only its size matters, exp(-FARTHEST)."""
    return exp_dd(-min(abs(x), FARTHEST), 0.0)


@inner
def _beside(value: Any, high: Any, low: Any, k: int, sign: Any) -> Any:
    """value + sign E (1 + ...), E = (high + low) 2^k < value 2^-54 and the rest below E 2^-54."""
    if k < _LEAST:
        return value, sign * 2.0**_LEAST, 2.0**_LEAST, 0
    tail = math.ldexp(high, k)
    return value, sign * tail, tail * 2.0**-50, 0


@inner
def sigmoid(x: Any) -> Any:
    if x == 0.0:
        return exactly(0.5)
    if not math.isfinite(x):
        return exactly(x if math.isnan(x) else (1.0 if x > 0.0 else 0.0))
    if abs(x) < LINEAR:
        return tiny_sum(0.5, 0.25, x, 1)
    if x < -FARTHEST:
        return vanishing(1.0)
    high, low, k = _decay(x)
    if x > 0.0 and k < _NEAR_ONE:
        return _beside(1.0, high, low, k, -1.0)
    if k < _NOTHING:
        return place(high, low, high * (exp_error(x) + 2.0**-108), k)
    factor = math.ldexp(1.0, k)
    dh, dl = dd_add_double(high * factor, low * factor, 1.0)
    if x > 0.0:
        high, low = dd_div(1.0, 0.0, dh, dl)
        return high, low, high * SIGMOID_ERROR, 0
    high, low = dd_div(high, low, dh, dl)
    return place(high, low, high * SIGMOID_ERROR, k)


@inner
def silu(x: Any) -> Any:
    if x == 0.0 or x == -math.inf:
        return exactly(x if x == 0.0 else -0.0)
    if abs(x) < LINEAR:
        return tiny_product(0.5, 0.25, x, 1)
    if x == math.inf or math.isnan(x):
        return exactly(x)
    high, low, radius, scale = sigmoid(x)
    m, exponent = math.frexp(x)
    wide = abs(m) * radius
    if high == 1.0:
        return place(m, m * low, wide if radius == -low else 2.0 * wide, exponent)
    if radius == high:
        return place(m * high, 0.0, wide, scale + exponent)
    high, low = dd_mul_double(high, low, m)
    radius = (wide + abs(high) * (2.0 * U**2)) * (1.0 + 2.0**-40)
    return place(high, low, radius, scale + exponent)


@inner
def softplus(x: Any) -> Any:
    if not math.isfinite(x):
        return exactly(0.0 if x < 0.0 else x)
    if x == 0.0:
        return LN2_HIGH, LN2_LOW, U**2, 0
    if x < -FARTHEST:
        return vanishing(1.0)
    high, low, k = _decay(x)
    if x > 0.0 and k < _NEAR_ONE:
        return _beside(x, high, low, k, 1.0)
    if k < _NOTHING:
        return place(high, low, high * (exp_error(x) + 2.0**-108), k)
    factor = math.ldexp(1.0, k)
    high, low = log1p_dd(high * factor, low * factor)
    error = high * SOFTPLUS_ERROR
    if x < 0.0:
        return high, low, error, 0
    high, low = dd_add_double(high, low, x)
    return high, low, error + high * (2.1 * U**2), 0
