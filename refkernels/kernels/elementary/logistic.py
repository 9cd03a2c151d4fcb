"""sigmoid, silu, softplus and the slopes of the first two of one float64, as double-doubles.

With E = exp(-|x|) (5 U^2, U = 2^-53), s = sigmoid(x):
  sigmoid   1 / (1 + E) or E / (1 + E): 5 + (2 + 5/2) + 9.9                            -> 18 U^2
            beyond x = 39: 1 - E, whose lo is -E to 2^-50 of itself
  sigmoid'  E / (1 + E)^2 (`hyperbolic.logistic_slope`)
  silu      x s, by the product that every backward pass uses
  silu'     s (1 + x (1 - s)) = (1 + E + x E) / (1 + E)^2 for x > 0: all terms positive, 14 for the
            numerator, 14 for the denominator, 9.9;                                    -> 40 U^2
            E (1 + x + E) / (1 + E)^2 for x < 0: 1 + x is exact as a sum of two; the sum with E
            errs by 5 U^2 E and 3 U^2 of itself, the zero at x = -1.2785 leaves the first
  softplus  log(1 + E) with 64 U^2 and E's 5, for x > 0 added to x: the slope is sigmoid
            beyond x = 39: x + E with lo = E to 2^-50 of itself; below -76: E
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import (
    U,
    dd_add,
    dd_add_double,
    dd_div,
    dd_mul,
    dd_mul_double,
)
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner
from refkernels.elementwise.product import multiply
from refkernels.kernels.elementary.exponential import FARTHEST, exp_dd
from refkernels.kernels.elementary.exponentials import exp_error
from refkernels.kernels.elementary.hyperbolic import logistic_slope
from refkernels.kernels.elementary.logarithm import LOG_ERROR, log1p_dd
from refkernels.kernels.elementary.results import (
    LINEAR,
    SQUARE,
    exactly,
    place,
    tiny_product,
    tiny_sum,
    vanishing,
)
from refkernels.kernels.elementary.tables import LN2_HIGH, LN2_LOW

SIGMOID_ERROR = 18 * U**2
SILU_SLOPE_ERROR = 40 * U**2
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
    high, low, radius, scale = sigmoid(x)
    return multiply(x, high, low, radius, scale)


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


@inner
def sigmoid_slope(x: Any) -> Any:
    if not math.isfinite(x):
        return exactly(x if math.isnan(x) else 0.0)
    if x == 0.0:
        return exactly(0.25)
    if abs(x) < SQUARE:
        return tiny_sum(0.25, -0.0625, x, 2)
    high, low, radius, k = logistic_slope(abs(x))
    return place(high, low, radius, k)


@inner
def silu_slope(x: Any) -> Any:
    if not math.isfinite(x):
        return exactly(x if math.isnan(x) else (1.0 if x > 0.0 else -0.0))
    if x == 0.0:
        return exactly(0.5)
    if abs(x) < LINEAR:
        return tiny_sum(0.5, 0.5, x, 1)
    if x < -FARTHEST:
        return vanishing(-1.0)
    high, low, k = _decay(x)
    if k < _NOTHING:
        if x > 0.0:  # 1 + (x - 1) E - ..., E <= 2^-109, x >= 76
            return 1.0, 2.0**-101, 2.0**-101, 0
        error = exp_error(x) + 2.0**-106
        th, tl = two_sum(x, 1.0)
        m, exponent = math.frexp(th)
        high, low = dd_mul(m, math.ldexp(tl, -exponent), high, low)
        return place(high, low, abs(high) * error, k + exponent)
    factor = math.ldexp(1.0, k)
    eh, el = high * factor, low * factor
    dh, dl = dd_add_double(eh, el, 1.0)
    qh, ql = dd_mul(dh, dl, dh, dl)
    if x > 0.0:
        th, tl = dd_mul_double(eh, el, x)
        th, tl = dd_add(dh, dl, th, tl)
        high, low = dd_div(th, tl, qh, ql)
        return high, low, high * SILU_SLOPE_ERROR, 0
    th, tl = two_sum(1.0, x)
    th, tl = dd_add(th, tl, eh, el)
    cancelled = 5.0 * U**2 * eh * high / qh
    high, low = dd_mul(high, low, th, tl)
    high, low = dd_div(high, low, qh, ql)
    return place(high, low, abs(high) * SILU_SLOPE_ERROR + 1.001 * cancelled, k)
