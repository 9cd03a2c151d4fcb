"""sinh, cosh and tanh of one float64, as double-doubles with a derived radius.

With E = exp |x|, M = expm1 |x| (exponential.py), U = 2^-53, up to LARGE, where e^(-2x) < 2^-115:
  sinh  (M + M / (1 + M)) / 2: M's error enters at most once; 1 + M 2, the quotient 9.9, both with a
        weight <= 1/2; the sum 3                                             -> 9 U^2 besides M's
  cosh  (E + 1 / E) / 2: E 5, 1 / E 5 + 9.9 with a weight <= 1/2, the sum 3   -> 13 U^2
  tanh  M2 / (M2 + 2), M2 = expm1 |2 x|: M2's error once, 2 + 9.9             -> 12 U^2 besides
Beyond: sinh and cosh are e^x / 2, 1 - tanh < 2^-114.
"""

import math
from typing import Any

from refkernels.arithmetic.double_double import U, dd_add, dd_add_double, dd_div
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.exponential import FARTHEST, exp_dd, expm1_dd
from refkernels.kernels.elementary.exponentials import exp_error
from refkernels.kernels.elementary.results import (
    SQUARE,
    beyond,
    exactly,
    place,
    tiny_product,
    tiny_sum,
)

SINH_ERROR = 10 * U**2
COSH_ERROR = 14 * U**2
TANH_ERROR = 13 * U**2
LARGE = 40.0
_NEGLECTED = 2.0**-115  # e^(-2 LARGE)


@inner
def _large(odd: bool, x: Any) -> Any:
    size = abs(x)
    if size > FARTHEST:
        return beyond(x if odd else size)
    high, low, k = exp_dd(size, 0.0)
    radius = high * (exp_error(size) + _NEGLECTED)
    if odd and x < 0.0:
        high, low = -high, -low
    return place(high, low, radius, k - 1)


@inner
def sinh(x: Any) -> Any:
    if x == 0.0 or not math.isfinite(x):
        return exactly(x)
    size = abs(x)
    if size < SQUARE:
        return tiny_product(1.0, 1.0 / 6.0, x, 2)
    if size > LARGE:
        return _large(True, x)
    mh, ml, radius = expm1_dd(size, 0.0)
    qh, ql = dd_add_double(mh, ml, 1.0)
    qh, ql = dd_div(mh, ml, qh, ql)
    high, low = dd_add(mh, ml, qh, ql)
    radius = 0.5 * high * (radius / mh * 1.0001 + SINH_ERROR)
    sign = math.copysign(0.5, x)
    return sign * high, sign * low, radius, 0


@inner
def cosh(x: Any) -> Any:
    if x == 0.0:
        return exactly(1.0)
    size = abs(x)
    if not math.isfinite(x):
        return exactly(size)
    if size < SQUARE:
        return tiny_sum(1.0, 0.5, x, 2)
    if size > LARGE:
        return _large(False, x)
    high, low, k = exp_dd(size, 0.0)
    factor = math.ldexp(1.0, k)
    high, low = high * factor, low * factor
    qh, ql = dd_div(1.0, 0.0, high, low)
    high, low = dd_add(high, low, qh, ql)
    return 0.5 * high, 0.5 * low, 0.5 * high * COSH_ERROR, 0


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
