"""asin, acos and atan as double-doubles, with derived errors.

    asin x = atan(x / w),  acos x = atan(w / x) (+ pi for x < 0),  w = sqrt((1 - x)(1 + x))
and atan of a quotient n / d > 1 is pi/2 - atan(d / n), so that every argument y is in [0, 1]. With
k = rint(128 y), t = (y - k/128) / (1 + y k/128), |t| <= 2^-8:
    atan y = atan(k/128) + t - t^3/3 + t^5/5 - ...

Error budget, U = 2^-53, in units of U^2 relative to the result:
  series   cut at t^13 (2^-10); coefficients from 1/7 on in one double, 5 U t^6 / 7 (22); products
           2^-16 x 20; the last addition 3                                          -> 26
  t        denominator 3, division 9.9                                              -> 13
  atan y   39 |t / atan y| <= 39, table 2, addition 3                               -> 44, say 64
  w        1 - x and 1 + x are exact as pairs; product 5, root 3.13 + 2.5           -> 5.7 of w
  quotient 9.9;  pi/2 - atan or pi - atan: never below atan's size, 0.2 + 3.01      -> 13.2
  sum      64 + 5.7 + 13.2 + 3.3 (asin, acos), less for atan                        -> 86.2
ERROR is this rounded up.
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
    dd_mul_double,
    dd_sqrt,
)
from refkernels.arithmetic.eft import two_sum
from refkernels.arithmetic.jit import inner
from refkernels.kernels.trigonometric.tables import (
    ARC_TANGENT,
    FIFTH_HIGH,
    FIFTH_LOW,
    PI_HIGH,
    PI_LOW,
    PIO2_HIGH,
    PIO2_LOW,
    THIRD_HIGH,
    THIRD_LOW,
)
from refkernels.kernels.trigonometric.values import SCALED, TINY

ASIN, ACOS, ATAN = 0, 1, 2
CODES = {"asin": ASIN, "acos": ACOS, "atan": ATAN}
ERROR = 96 * U**2
_HUGE = 2.0**120  # atan is pi/2 - 1/x to far below U^2 from here on
_A7, _A9, _A11, _A13 = 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13


@inner
def _atan_unit(yh: Any, yl: Any) -> Any:
    """atan of 0 < yh + yl <= 1 + 2^-52."""
    k = np.int64(np.rint(yh * 128.0))
    th, tl = yh, yl
    if k > 0:
        c = k * 0.0078125
        nh, nl = two_sum(yh - c, yl)  # yh - c is exact: Sterbenz
        dh, dl = dd_mul_double(yh, yl, c)
        dh, dl = dd_add_double(dh, dl, 1.0)
        th, tl = dd_div(nh, nl, dh, dl)
    uh, ul = dd_mul(th, tl, th, tl)
    tail = uh * (_A7 - uh * (_A9 - uh * (_A11 - uh * _A13)))
    ah, al = dd_add_double(FIFTH_HIGH, FIFTH_LOW, -tail)
    bh, bl = dd_mul(uh, ul, ah, al)
    bh, bl = dd_add(THIRD_HIGH, THIRD_LOW, -bh, -bl)
    wh, wl = dd_mul(uh, ul, bh, bl)
    wh, wl = dd_mul(th, tl, wh, wl)
    sh, sl = dd_add(th, tl, -wh, -wl)
    if k > 0:
        return dd_add(ARC_TANGENT[k, 0], ARC_TANGENT[k, 1], sh, sl)
    return sh, sl


@inner
def _atan_quotient(nh: Any, nl: Any, dh: Any, dl: Any) -> Any:
    """atan(n / d) for positive n and d."""
    if nh <= dh:
        return _atan_unit(*dd_div(nh, nl, dh, dl))
    ah, al = _atan_unit(*dd_div(dh, dl, nh, nl))
    return dd_add(PIO2_HIGH, PIO2_LOW, -ah, -al)


@inner
def _cosine(x: Any) -> Any:
    """sqrt((1 - x)(1 + x)) for 0 <= x < 1."""
    ah, al = two_sum(1.0, -x)
    bh, bl = two_sum(1.0, x)
    return dd_sqrt(*dd_mul(ah, al, bh, bl))


@inner
def _tiny(x: Any, b: Any) -> Any:
    """x + b x^3, next term below x^3 2^-54, for 0 < |x| < TINY; b = ±1/6, ±1/3."""
    if abs(x) < SCALED:  # the cubic term is below |x| 2^-501
        scaled = x * 2.0**600
        side = scaled * math.copysign(2.0**-501, b)
        return scaled, side, abs(side), -600
    low = b * (x * (x * x))
    return x, low, abs(low) * 2.0**-49, 0


@inner
def value(code: int, x: Any) -> Any:
    size = abs(x)
    if math.isnan(x) or (code != ATAN and size > 1.0):
        return math.nan, 0.0, 0.0, 0
    if x == 0.0 and code != ACOS:
        return x, 0.0, 0.0, 0
    if size < TINY and code != ACOS:
        return _tiny(x, 1.0 / 6.0 if code == ASIN else -1.0 / 3.0)
    if code == ATAN:
        if size > _HUGE:
            high, low = dd_add_double(PIO2_HIGH, PIO2_LOW, -1.0 / size)
        else:
            high, low = _atan_quotient(size, 0.0, 1.0, 0.0)
    elif code == ASIN:
        high, low = PIO2_HIGH, PIO2_LOW
        if size < 1.0:
            wh, wl = _cosine(size)
            high, low = _atan_quotient(size, 0.0, wh, wl)
    else:
        high, low = _acos(x)
    if x < 0.0 and code != ACOS:
        high, low = -high, -low
    return high, low, abs(high) * ERROR, 0


@inner
def arctangent(x: Any) -> Any:
    """atan(x) as (high, low, radius, scale): in (high + low ± radius) 2^scale."""
    return value(ATAN, x)


@inner
def _acos(x: Any) -> Any:
    size = abs(x)
    if size == 1.0:
        return (0.0, 0.0) if x > 0.0 else (PI_HIGH, PI_LOW)
    if size < TINY:  # pi/2 - x - x^3/6, next term below 2^-138
        high, low = dd_add_double(PIO2_HIGH, PIO2_LOW, -x)
        return dd_add_double(high, low, -(x * x * x) / 6.0)
    wh, wl = _cosine(size)
    high, low = _atan_quotient(wh, wl, size, 0.0)
    if x < 0.0:
        return dd_add(PI_HIGH, PI_LOW, -high, -low)
    return high, low
