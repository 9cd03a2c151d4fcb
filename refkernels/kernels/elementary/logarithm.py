"""log and log1p: one float64 with slack for the fast tier, a double-double for the next.

Fast, in units of u = 2^-53. x = 2^e m, sqrt(1/2) <= m < sqrt 2, f = m - 1 exactly (log1p: one
rounding where e != 0), s = f / (2 + f), |s| <= 0.1716, z = s^2,
    log m = 2 s (1 + z (1/3 + z/5 + ... + z^8/19)),
cut at z^10/21 = 2^-55 (0.25). s has 2 roundings (2), z Q <= 0.0101 some 6 (0.06), the last
addition 1: 3.4 of log m. With e != 0, |log x| >= 0.3466 >= |log m|: 3.4 + 0.6 (LN2_HIGH) + 1 (sum)
+ 0.9 (log1p's f) = 5.9. log2 and log10 multiply log m first: 3.4 + 1.6, and 1 for the sum. The
bound is 8.

Double-double, U = 2^-53. k = rint(256 m), c = rint(2^17 / k) / 512, r = m c - 1 exactly as the sum
of two float64, |r| <= 2^-7.9, log x = e ln 2 - log c + log1p(r), s = r / (2 + r), |s| <= 2^-8.9,
log1p(r) = 2 s (1 + z (1/3 + z (1/5 + z (1/7 + ... + z^3/13)))):
  r          a low part of x: one addition 3
  s          2 + r 2, division 9.9                                                3 + 12
  z series   cut at z^7/15 = 2^-128; doubles z^3/7 = 2^-56.2, 4 U (0.5); inner sums 2^-17 x 30
  2 s (1 + w)  5 + 3 + 0.6                                                        -> 24 of log1p(r)
  e = 0      c = 1 for |m - 1| < 2^-9: nothing else is added. Beyond, |log x| >= 2^-9.01 and
             |log c| + |log1p(r)| <= 2 |log x| + ..., |log1p(r)| <= 2.2 |log x|: 24 x 2.2 + 3.2 + 3
  e != 0     |log x| >= 0.3466: e ln 2 (2 + 1) x 2, sum 3 twice, log c 1, 24 x 2^-6.3
-> 60 U^2; LOG_ERROR rounds up. Source of the scheme: Tang (1990), doi:10.1145/98267.98294.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.bits import bits_of, float_of
from refkernels.arithmetic.double_double import (
    U,
    dd_add,
    dd_add_double,
    dd_div,
    dd_mul,
    dd_mul_double,
)
from refkernels.arithmetic.eft import fma, two_prod, two_sum
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.tables import (
    FIFTH_HIGH,
    FIFTH_LOW,
    LN2_HIGH,
    LN2_LOW,
    LOGS,
    THIRD_HIGH,
    THIRD_LOW,
)

LOG_FAST_ERROR = 2.0**-50  # of log_fast, log1p_fast, and of log2 and log10 made from `split_fast`
LOG_ERROR = 64 * U**2

_FIRST = 181  # rint(256 sqrt(1/2)): the first row of LOGS
_ROOT_HALF = math.sqrt(0.5)
_ROOT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
_MAGIC = 1.5 * 2.0**52
_MAGIC_BITS = np.int64(0x4338000000000000)
_ONE_BITS = np.int64(0x3FF0000000000000)
_52 = np.int64(52)
_C = tuple(1.0 / k for k in range(3, 21, 2))
_C3, _C5, _C7, _C9, _C11, _C13, _C15, _C17, _C19 = _C


@inner
def log1p_reduced(f: Any) -> Any:
    """log(1 + f) for 1 + f in [sqrt(1/2), sqrt 2], in one float64."""
    s = f / (2.0 + f)
    z = s * s
    square = z * z
    fourth = square * square
    a = fma(z, _C5, _C3)
    b = fma(z, _C9, _C7)
    c = fma(z, _C13, _C11)
    d = fma(z, _C17, _C15)
    ab = fma(square, b, a)
    cd = fma(square, d, c)
    q = fma(fourth, fma(fourth, _C19, cd), ab)
    twice = s + s
    return fma(twice, z * q, twice)


@inner
def split_fast(x: Any) -> Any:
    """(e as a float64, f, exponent bits) with x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt 2); x
    positive and normal."""
    bits = bits_of(x)
    shifted = ((bits - _ROOT_HALF_BITS) >> _52) << _52
    e = float_of((shifted >> _52) + _MAGIC_BITS) - _MAGIC
    return e, float_of(bits - shifted) - 1.0, shifted


@inner
def log_fast(x: Any) -> Any:
    """log(x) for positive, finite, normal x; relative error <= LOG_FAST_ERROR. It vectorises."""
    e, f, _ = split_fast(x)
    return fma(e, LN2_HIGH, log1p_reduced(f))


@inner
def log1p_fast(x: Any) -> Any:
    """log(1 + x) for finite x > -1; relative error <= LOG_FAST_ERROR; -0 becomes +0."""
    u, lost = two_sum(1.0, x)
    e, f, shifted = split_fast(u)
    return fma(e, LN2_HIGH, log1p_reduced(fma(lost, float_of(_ONE_BITS - shifted), f)))


@inner
def _log1p_series(rh: Any, rl: Any) -> Any:
    """log(1 + r) for |r| <= 2^-7.9 as a double-double; relative error <= 21 U^2."""
    dh, dl = dd_add_double(rh, rl, 2.0)
    sh, sl = dd_div(rh, rl, dh, dl)
    zh, zl = dd_mul(sh, sl, sh, sl)
    tail = zh * (_C7 + zh * (_C9 + zh * (_C11 + zh * _C13)))
    wh, wl = dd_add_double(FIFTH_HIGH, FIFTH_LOW, tail)
    wh, wl = dd_mul(wh, wl, zh, zl)
    wh, wl = dd_add(THIRD_HIGH, THIRD_LOW, wh, wl)
    wh, wl = dd_mul(wh, wl, zh, zl)
    wh, wl = dd_mul(wh, wl, sh, sl)
    wh, wl = dd_add(sh, sl, wh, wl)
    return 2.0 * wh, 2.0 * wl


@inner
def log_parts(high: Any, low: Any, lower: Any) -> Any:
    """log(high + low + lower) = e ln 2 + (lh + ll) as (e, lh, ll), |lh| <= 0.3466 or so.

    high > 0 finite, high = fl(high + low), |lower| <= |low| 2^-53. Error of the sum: LOG_ERROR.
    """
    m, e = math.frexp(high)
    if m < _ROOT_HALF:
        m, e = 2.0 * m, e - 1
    low, lower = math.ldexp(low, -e), math.ldexp(lower, -e)
    row = np.int64(np.rint(m * 256.0)) - _FIRST
    c = LOGS[row, 0]
    ph, pl = two_prod(m, c)
    rh, rl = two_sum(ph - 1.0, pl)
    if low != 0.0 or lower != 0.0:
        lh, ll = dd_mul_double(low, lower, c)
        rh, rl = dd_add(rh, rl, lh, ll)
    high, low = _log1p_series(rh, rl)
    if c != 1.0:
        high, low = dd_add(LOGS[row, 1], LOGS[row, 2], high, low)
    return float(e), high, low


@inner
def log_dd(xh: Any, xl: Any) -> Any:
    """log(xh + xl) as (high, low) for finite x > 0; relative error <= LOG_ERROR, near 1 too."""
    e, high, low = log_parts(xh, xl, 0.0)
    return _join(e, high, low)


@inner
def log1p_dd(xh: Any, xl: Any) -> Any:
    """log(1 + xh + xl) as (high, low) for finite x > -1; relative error <= LOG_ERROR, near 0 too
    (|x| >= 2^-900)."""
    uh, ul = two_sum(1.0, xh)
    low, lower = two_sum(ul, xl)
    high, low = two_sum(uh, low)
    e, high, low = log_parts(high, low, lower)
    return _join(e, high, low)


@inner
def _join(e: Any, high: Any, low: Any) -> Any:
    if e == 0.0:
        return high, low
    eh, el = dd_mul_double(LN2_HIGH, LN2_LOW, e)
    return dd_add(eh, el, high, low)
