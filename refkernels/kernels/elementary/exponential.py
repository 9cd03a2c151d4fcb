"""exp and expm1: one float64 with slack for the fast tier, a double-double for the next.

Fast, in units of u = 2^-53. n = rint(x / ln 2), r = x - n ln 2 in two parts: n LN2_A (11 + 40
bits) is exact and so is its difference from x, r is rounded once (0.25), |r| <= 0.3466 (exactly x
where n = 0). p = expm1(r) = r + r^2 (1/2 + ... + r^11 / 13!), cut at 0.04, of r at 0.13; the
product, <= 0.068, has 3.5 relative roundings (0.24), the sum 0.25:
  p                  0.25 e^r + 0.24 + 0.25 + 0.04            <= 0.9 for r > 0, 0.7 for r < 0
  exp                r > 0: (1 + 0.9) / 1;  r < 0: (0.5 + 0.7) / 0.707  -> 2, the bound is 4
  expm1, n = 0       1 + 3.5 x 0.18 + 0.13 of itself          -> 1.8
  expm1, n != 0      n = 1: 2 x 0.7 / 0.414 + 1; n = -1: 0.5 x 0.9 / 0.293 + 1; |n| > 53: one unit
                     for 2^n - 1                              -> 4.4, the bound is 8
(1 + p) 2^n and the products with 2^n are exact.

Double-double, U = 2^-53. n = rint(64 x / ln 2), r = x - n ln 2 / 64 in three parts (36 + 17 bits
are exact, the last product is a double-double), |r| <= 2^-7.52; reduced to 5 U^2 of r and 2^-115
absolutely. p = expm1(r) = r + r^2 (1/2 + r (1/6 + ... )), the terms to r^6 in double-double:
  cut     r^11/12! = 2^-111 of r                                                       0.03 U^2
  doubles r^6/5040 (1 + ...) = 2^-57.4 of r, times 4 U                                 0.2
  c       1/2 + ...: last addition 3, before that 2^-7.5 x 9                           3.1
  r^2 c   5 + 5 + 3.1 = 13.1, times 2^-8.5                                             0.04
  r + .   3 (+ 5 of r itself, times 1.01)                                              3.1 + 5
-> expm1(r) 8.4 U^2; for n = 0 r is x, and it is 3.4 U^2. exp = T + T p: T 1, T p 1 + 5 + 8.4 of
2^-7.5, the last addition 3 -> 4.2 U^2 and 2^-115 of the reduction. EXP_ERROR rounds up.
Source of the scheme: Tang (1989), doi:10.1145/63522.214389.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.bits import bits_of, float_of
from refkernels.arithmetic.double_double import (
    U,
    dd_add,
    dd_add_double,
    dd_mul,
)
from refkernels.arithmetic.eft import fma, two_prod, two_sum
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.tables import (
    EXP2,
    INV_LN2_HIGH,
    INV_LN2_LOW,
    LN2_A,
    LN2_B,
    LN2_HIGH,
    LN2_LOW,
    ONE_24TH_HIGH,
    ONE_24TH_LOW,
    ONE_120TH_HIGH,
    ONE_120TH_LOW,
    ONE_720TH_HIGH,
    ONE_720TH_LOW,
    SIXTH_HIGH,
    SIXTH_LOW,
    STEP_A,
    STEP_B,
    STEP_C,
)

EXP_FAST_ERROR = 2.0**-51
EXPM1_FAST_ERROR = 2.0**-50
EXP_ERROR = 5 * U**2
EXPM1_SMALL_ERROR = 4 * U**2  # where |x| <= SMALL
SMALL = 0.005  # below ln 2 / 128: expm1_dd is a series
FAR = 1400.0  # beyond it n has too many bits; results are beyond 2^2000
FAR_ERROR = 2.0**-72
FARTHEST = 2.0**29  # no scale holds e^(10^300): callers mark results beyond it

_MAGIC = 1.5 * 2.0**52  # t = fl(y + MAGIC): the low bits of t are rint(y)
_STEPS_PER_UNIT = 64 * INV_LN2_HIGH
_ONE_BITS = np.int64(0x3FF0000000000000)
_Q = tuple(1.0 / math.factorial(k) for k in range(2, 14))
_Q2, _Q3, _Q4, _Q5, _Q6, _Q7, _Q8, _Q9, _Q10, _Q11, _Q12, _Q13 = _Q


@inner
def power_of_two(t: Any) -> Any:
    """2^n for t = n + MAGIC, |n| <= 1022."""
    return float_of((bits_of(t) << np.int64(52)) + _ONE_BITS)


@inner
def expm1_reduced(r: Any) -> Any:
    """expm1(r) for |r| <= 0.3466, by its Taylor series to r^13, in one float64."""
    square = r * r
    fourth = square * square
    a = fma(r, _Q3, _Q2)
    b = fma(r, _Q5, _Q4)
    c = fma(r, _Q7, _Q6)
    d = fma(r, _Q9, _Q8)
    e = fma(r, _Q11, _Q10)
    f = fma(r, _Q13, _Q12)
    ab = fma(square, b, a)
    cd = fma(square, d, c)
    ef = fma(square, f, e)
    return fma(square, fma(fourth, fma(fourth, ef, cd), ab), r)


@inner
def reduce_fast(x: Any) -> Any:
    """(n + MAGIC, r) with x = n ln 2 + r, |r| <= 0.3466; |x| <= 700."""
    t = fma(x, INV_LN2_HIGH, _MAGIC)
    n = t - _MAGIC
    return t, fma(-n, LN2_B, fma(-n, LN2_A, x))


@inner
def exp_fast(x: Any) -> Any:
    """exp(x) for |x| <= 700; relative error <= EXP_FAST_ERROR; NaN stays NaN. It vectorises."""
    t, r = reduce_fast(x)
    return (1.0 + expm1_reduced(r)) * power_of_two(t)


@inner
def expm1_fast(x: Any) -> Any:
    """exp(x) - 1 for |x| <= 700; relative error <= EXPM1_FAST_ERROR; NaN stays NaN.

    -0 becomes +0. It vectorises."""
    t, r = reduce_fast(x)
    power = power_of_two(t)
    return fma(power, expm1_reduced(r), power - 1.0)


@inner
def _reduce(xh: Any, xl: Any) -> Any:
    """(n, rh, rl) with xh + xl = n ln 2 / 64 + r, |r| <= 2^-7.52; |xh| <= FAR."""
    n = np.rint(xh * _STEPS_PER_UNIT)
    sh, sl = two_sum(xh - n * STEP_A, -(n * STEP_B))
    th, tl = two_prod(n, STEP_C)
    sh, sl = dd_add(sh, sl, -th, -tl)
    if xl != 0.0:
        sh, sl = dd_add_double(sh, sl, xl)
    return n, sh, sl


@inner
def expm1_series(rh: Any, rl: Any) -> Any:
    """expm1(rh + rl) for |r| <= 2^-7.52 as a double-double; relative error <= 3.4 U^2."""
    tail = rh * (_Q7 + rh * (_Q8 + rh * (_Q9 + rh * (_Q10 + rh * _Q11))))
    ch, cl = dd_add_double(ONE_720TH_HIGH, ONE_720TH_LOW, tail)
    ch, cl = dd_mul(ch, cl, rh, rl)
    ch, cl = dd_add(ONE_120TH_HIGH, ONE_120TH_LOW, ch, cl)
    ch, cl = dd_mul(ch, cl, rh, rl)
    ch, cl = dd_add(ONE_24TH_HIGH, ONE_24TH_LOW, ch, cl)
    ch, cl = dd_mul(ch, cl, rh, rl)
    ch, cl = dd_add(SIXTH_HIGH, SIXTH_LOW, ch, cl)
    ch, cl = dd_mul(ch, cl, rh, rl)
    ch, cl = dd_add_double(ch, cl, 0.5)
    qh, ql = dd_mul(rh, rl, rh, rl)
    ch, cl = dd_mul(qh, ql, ch, cl)
    return dd_add(rh, rl, ch, cl)


@inner
def _exp_near(xh: Any, xl: Any) -> Any:
    """`exp_dd` for |x| <= FAR."""
    n, rh, rl = _reduce(xh, xl)
    ph, pl = expm1_series(rh, rl)
    whole = np.int64(n)
    j = whole & 63
    th, tl = EXP2[j, 0], EXP2[j, 1]
    ph, pl = dd_mul(th, tl, ph, pl)
    high, low = dd_add(th, tl, ph, pl)
    return high, low, whole >> 6


@inner
def _exp_far(xh: Any, xl: Any) -> Any:
    """`exp_dd` for |x| > FAR: x / ln 2 is known to 7 U^2 of at most 2^29.6, so its fraction, which
    is then multiplied by ln 2, to 2^-73.5."""
    yh, yl = dd_mul(xh, xl, INV_LN2_HIGH, INV_LN2_LOW)
    n = np.rint(yh)
    fh, fl = two_sum(yh - n, yl)
    fh, fl = dd_mul(fh, fl, LN2_HIGH, LN2_LOW)
    high, low, k = _exp_near(fh, fl)
    return high, low, k + np.int64(n)


@inner
def exp_dd(xh: Any, xl: Any) -> Any:
    """(high, low, k): exp(xh + xl) = (high + low) 2^k, high in [0.99, 2.01]; |x| <= FARTHEST.

    Relative error <= EXP_ERROR; FAR_ERROR for |x| > FAR.
    """
    if abs(xh) > FAR:
        return _exp_far(xh, xl)
    return _exp_near(xh, xl)


@inner
def expm1_dd(xh: Any, xl: Any) -> Any:
    """(high, low, radius): expm1(xh + xl) in high + low ± radius, |x| <= 700.

    Radius <= EXPM1_SMALL_ERROR |result| where |x| <= SMALL, else the error of exp and of one
    addition: below 2^-95 of the result.
    """
    if abs(xh) <= SMALL:
        high, low = expm1_series(xh, xl)
        return high, low, abs(high) * EXPM1_SMALL_ERROR
    high, low, k = _exp_near(xh, xl)
    factor = math.ldexp(1.0, k)
    error = high * factor * EXP_ERROR
    high, low = dd_add_double(high * factor, low * factor, -1.0)
    return high, low, (error + abs(high) * (2 * U**2)) * 1.0001
