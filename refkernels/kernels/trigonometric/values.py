"""sin, cos and tan of one float64 as double-doubles, with a derived error.

With |r| <= pi/4 the reduced argument (reduction.py), k = rint(128 |r|) and t = |r| - k/128, exact
because of Sterbenz, |t| <= 2^-8:
    sin |r| = S_k + (S_k (cos t - 1) + C_k sin t)
    cos |r| = C_k + (C_k (cos t - 1) - S_k sin t)
S_k, C_k from a table of double-doubles, sin t and cos t - 1 from their Taylor series.

Error budget, U = 2^-53, in units of U^2 relative to the result; `double_double` proves the parts.
  sin t      series cut at t^13 (2^-22); coefficients from t^7 on in one double (0.05); product
             t (t^2 B) 19 x 2^-18.5; the last addition 3.01                            -> 3.2
  cos t - 1  t^2 5, bracket 4, product 5 of 2^-17; t^6 term in one double (0.2)        -> 0.25 abs.
  sin |r|    S_k: (1 table + 0.25) x |S_k / sin r| <= 2; C_k sin t: 5 + 1 + 3.2;
             two additions 6.1                                                         -> 18
  cos |r|    1.26 x 1.01 + 9.2 x 2^-7.9 + 3.1                                          -> 5
  reduction  REDUCTION_ERROR 7.2 times |r cot r| <= 1 (sin), |r tan r| <= 0.79 (cos)
  sum        sin 25.2, cos 11, tan = sin / cos 25.2 + 11 + 9.9 = 46.1
ERROR below is this sum rounded up; the slack covers second-order terms and the rounding of the
radius itself. Source of the scheme: Gal and Bachelis (1991), doi:10.1145/103147.103151; Muller,
"Elementary Functions" (3rd ed., 2016), chapters 4 and 11.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import (
    U,
    dd_add,
    dd_add_double,
    dd_div,
    dd_mul,
)
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner, njit
from refkernels.kernels.trigonometric.reduction import reduce_pio2
from refkernels.kernels.trigonometric.tables import (
    ONE_24TH_HIGH,
    ONE_24TH_LOW,
    ONE_120TH_HIGH,
    ONE_120TH_LOW,
    SINE_COSINE,
    SIXTH_HIGH,
    SIXTH_LOW,
)

SIN, COS, TAN = 0, 1, 2
CODES = {"sin": SIN, "cos": COS, "tan": TAN}
ERROR = 32 * U**2  # sin and cos
TAN_ERROR = 52 * U**2

TINY = 2.0**-27  # below it two terms of the series are enough
SCALED = 2.0**-250  # below it results carry a scale, so that their low parts do not underflow
QUARTER_PI = math.pi / 4
_S7, _S9, _S11 = -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800
_C6, _C8, _C10 = -1.0 / 720, 1.0 / 40320, -1.0 / 3628800


@inner
def _taylor(th: Any, tl: Any) -> Any:
    """sin t and cos t - 1 as double-doubles for |t| <= 2^-8."""
    uh, ul = dd_mul(th, tl, th, tl)
    ah, al = dd_add_double(ONE_120TH_HIGH, ONE_120TH_LOW, uh * (_S7 + uh * (_S9 + uh * _S11)))
    bh, bl = dd_mul(uh, ul, ah, al)
    bh, bl = dd_add(-SIXTH_HIGH, -SIXTH_LOW, bh, bl)
    wh, wl = dd_mul(uh, ul, bh, bl)
    wh, wl = dd_mul(th, tl, wh, wl)
    sh, sl = dd_add(th, tl, wh, wl)
    dh, dl = dd_add_double(ONE_24TH_HIGH, ONE_24TH_LOW, uh * (_C6 + uh * (_C8 + uh * _C10)))
    eh, el = dd_mul(uh, ul, dh, dl)
    eh, el = dd_add_double(eh, el, -0.5)
    ch, cl = dd_mul(uh, ul, eh, el)
    return sh, sl, ch, cl


@inner
def sincos_reduced(rh: Any, rl: Any) -> Any:
    """sin and cos of |rh + rl| <= pi/4 as double-doubles; sin has the sign of rh."""
    sign = 1.0
    if rh < 0.0:
        sign, rh, rl = -1.0, -rh, -rl
    k = np.int64(np.rint(rh * 128.0))
    th, tl = two_sum(rh - k * 0.0078125, rl)
    sh, sl, vh, vl = _taylor(th, tl)
    if k == 0:
        ch, cl = dd_add_double(vh, vl, 1.0)
        return sign * sh, sign * sl, ch, cl
    table_sh, table_sl = SINE_COSINE[k, 0], SINE_COSINE[k, 1]
    table_ch, table_cl = SINE_COSINE[k, 2], SINE_COSINE[k, 3]
    ah, al = dd_mul(table_sh, table_sl, vh, vl)
    bh, bl = dd_mul(table_ch, table_cl, sh, sl)
    ah, al = dd_add(ah, al, bh, bl)
    sine_h, sine_l = dd_add(table_sh, table_sl, ah, al)
    ah, al = dd_mul(table_ch, table_cl, vh, vl)
    bh, bl = dd_mul(table_sh, table_sl, sh, sl)
    ah, al = dd_add(ah, al, -bh, -bl)
    cosine_h, cosine_l = dd_add(table_ch, table_cl, ah, al)
    return sign * sine_h, sign * sine_l, cosine_h, cosine_l


@inner
def sincos(x: Any) -> Any:
    """(sin high, low, cos high, low) for finite x with |x| >= TINY; relative error <= ERROR."""
    magnitude = abs(x)
    sign = math.copysign(1.0, x)
    if magnitude <= QUARTER_PI:
        sh, sl, ch, cl = sincos_reduced(magnitude, 0.0)
        return sign * sh, sign * sl, ch, cl
    quadrant, rh, rl = reduce_pio2(magnitude)
    sh, sl, ch, cl = sincos_reduced(rh, rl)
    if quadrant & 1:
        sh, sl, ch, cl = ch, cl, -sh, -sl
    if quadrant & 2:
        sh, sl, ch, cl = -sh, -sl, -ch, -cl
    return sign * sh, sign * sl, ch, cl


@njit
def value(code: int, x: Any) -> Any:
    """f(x) as (high, low, radius, scale): f(x) in (high + low ± radius) 2^scale."""
    if x == 0.0:
        return (1.0, 0.0, 0.0, 0) if code == COS else (x, 0.0, 0.0, 0)
    if not math.isfinite(x):
        return math.nan, 0.0, 0.0, 0
    if abs(x) < TINY:
        return _tiny_value(code, x)
    sh, sl, ch, cl = sincos(x)
    if code == SIN:
        return sh, sl, abs(sh) * ERROR, 0
    if code == COS:
        return ch, cl, abs(ch) * ERROR, 0
    high, low = dd_div(sh, sl, ch, cl)
    return high, low, abs(high) * TAN_ERROR, 0


@inner
def _tiny_value(code: int, x: Any) -> Any:
    """0 < |x| < TINY. cos: 1 - x^2/2, next term below x^2 2^-58; sin: x - x^3/6, next below
    x^3 2^-60; tan: x + x^3/3, next below x^3 2^-56. The low part takes at most 4 roundings."""
    square = x * x
    if code == COS:
        if abs(x) < SCALED:
            return 1.0, -(2.0**-501), 2.0**-501, 0
        return 1.0, -0.5 * square, square * 2.0**-51, 0
    if abs(x) < SCALED:  # the cubic term is below |x| 2^-501
        scaled = x * 2.0**600
        side = scaled * (-(2.0**-501) if code == SIN else 2.0**-501)
        return scaled, side, abs(side), -600
    third = x * square
    low = -third / 6.0 if code == SIN else third / 3.0
    return x, low, abs(low) * 2.0**-49, 0
