"""The tail exp(-s) erfcx(w) that erf, erfc and gelu share, erfcx(w) = exp(w^2) erfc(w), s = w^2.

s is exact (x^2, or x^2 / 2 for gelu, by two_prod), so that the tail keeps its relative error
however small it is; erfcx is smooth, between 1 and 1/(w sqrt pi).

erfcx_dd. w < 32: polynomials about 97 nodes, ERFCX_ERROR 4.61 U^2 (erf_tables.py). Else, with
y = 1/(2 w^2), the asymptotic series sum (-1)^n (2n-1)!! y^n / (w sqrt pi), 14 terms, which leaves
out less than its next one, 27!! 2^-154 < 0.75 U^2 of the sum; y's 15 U^2 has the weight y <= 2^-11,
last addition 3.1, 1/(w sqrt pi) 1 + 9.9, product 5                       -> 19.8 U^2
tail_dd. exp 5, erfcx 4.7 or 19.8, product 5, and 3 for a rounded w (|w erfcx'/erfcx| <= 1)
    -> w < 32: 17.7 U^2 < NEAR; else 32.8 U^2 < MIDDLE; where s > FAR exp's FAR_ERROR besides.
fast_tail. exp_fast 2^-51, FAST_TAIL_ERROR 2^-46.52, one product          -> FAST_ERROR 2^-46.4
Source of the asymptotic series: DLMF 7.12.1 and 7.12(ii).
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import (
    U,
    dd_add,
    dd_add_double,
    dd_div,
    dd_div_double,
    dd_mul,
    dd_mul_double,
)
from refkernels.arithmetic.eft import fma, two_prod, two_sum
from refkernels.arithmetic.jit import inner
from refkernels.kernels.elementary.erf_tables import (
    ERFCX,
    ERFCX_PAIRS,
    FAST_TAIL,
    FAST_TAIL_SHIFT,
    ONE_OVER_SQRT_PI_HIGH,
    ONE_OVER_SQRT_PI_LOW,
)
from refkernels.kernels.elementary.exponential import FAR, FAR_ERROR, exp_dd, exp_fast

NEAR = 18 * U**2
MIDDLE = 34 * U**2
FARTHEST = 2.0**14  # beyond it tails are below 2^VANISHING (results.py): 2^-1.9e8 for gelu
LIMIT = 32.0  # of the table
FAST_ERROR = 2.0**-46.4

_PAIRS = ERFCX_PAIRS
_LAST = ERFCX.shape[1] - 1
_TERMS = np.array([float((-1) ** n * math.prod(range(2 * n - 1, 0, -2))) for n in range(14)])
_A, _B, *_P = FAST_TAIL
_P0, _P1, _P2, _P3, _P4, _P5, _P6, _P7, _P8, _P9 = _P[:10]
_P10, _P11, _P12, _P13, _P14, _P15, _P16, _P17, _P18 = _P[10:]


@inner
def erfcx_dd(wh: Any, wl: Any) -> Any:
    """erfcx(wh + wl) as a double-double, 0 <= w <= 2^20; relative error as in the budget above."""
    if wh >= LIMIT:
        return _erfcx_asymptotic(wh, wl)
    if wh < 2.0:
        step = np.rint(wh * 16.0)
        row = np.int64(step)
        node = step * 0.0625
    else:
        mantissa, octave = math.frexp(wh)
        step = np.rint(mantissa * 32.0)
        row = 16 * octave - 16 + np.int64(step)
        node = math.ldexp(step, octave - 5)
    th, tl = two_sum(wh - node, wl)  # the difference is exact: Sterbenz, or node 0
    i = _LAST
    p = ERFCX[row, i]
    while i > 2 * _PAIRS:
        i -= 1
        p = fma(p, th, ERFCX[row, i])
    ph, pl = dd_mul_double(th, tl, p)
    while True:
        i -= 2
        ph, pl = dd_add(ERFCX[row, i], ERFCX[row, i + 1], ph, pl)
        if i == 0:
            return ph, pl
        ph, pl = dd_mul(ph, pl, th, tl)


@inner
def _erfcx_asymptotic(wh: Any, wl: Any) -> Any:
    yh, yl = dd_mul(wh, wl, wh, wl)
    yh, yl = dd_div(0.5, 0.0, yh, yl)
    ph, pl = _TERMS[13], 0.0
    for n in range(12, -1, -1):
        ph, pl = dd_mul(ph, pl, yh, yl)
        ph, pl = dd_add_double(ph, pl, _TERMS[n])
    if wl == 0.0:
        qh, ql = dd_div_double(ONE_OVER_SQRT_PI_HIGH, ONE_OVER_SQRT_PI_LOW, wh)
    else:
        qh, ql = dd_div(ONE_OVER_SQRT_PI_HIGH, ONE_OVER_SQRT_PI_LOW, wh, wl)
    return dd_mul(ph, pl, qh, ql)


@inner
def tail_error(wh: Any, sh: Any) -> Any:
    """The relative error of exp(-s) times a function of w that is as accurate as erfcx_dd."""
    error = NEAR if wh < LIMIT else MIDDLE
    return error + FAR_ERROR if sh > FAR else error


@inner
def tail_dd(sh: Any, sl: Any, wh: Any, wl: Any) -> Any:
    """exp(-s) erfcx(w) in (high + low)(1 ± error) 2^k, as (high, low, error, k), w <= FARTHEST."""
    eh, el, k = exp_dd(-sh, -sl)
    ch, cl = erfcx_dd(wh, wl)
    high, low = dd_mul(eh, el, ch, cl)
    return high, low, tail_error(wh, sh), k


@inner
def erfc_tail(x: Any) -> Any:
    """erfc(x) for 2^-400 <= x <= FARTHEST, as tail_dd."""
    sh, sl = two_prod(x, x)
    return tail_dd(sh, sl, x, 0.0)


@inner
def one_minus(high: Any, low: Any, error: Any, k: int) -> Any:
    """1 - (high + low ± error) 2^k as (high, low, radius), for a result >= 2^-3 and k >= -960."""
    factor = math.ldexp(1.0, k)
    high, low = dd_add_double(-high * factor, -low * factor, 1.0)
    return high, low, (error * factor + high * (2 * U**2)) * (1.0 + 2.0**-40)


@inner(forceinline=True)
def fast_tail(s: Any, w: Any) -> Any:
    """exp(-s) erfcx(w) for 0 <= w <= 12.125 in one float64; relative error <= FAST_ERROR where s is
    exact and w has a relative error of 1.5 units at most. It vectorises."""
    r = 1.0 / (w + FAST_TAIL_SHIFT)
    u = fma(-_B, r, _A)
    square = u * u
    fourth = square * square
    a = fma(square, fma(u, _P3, _P2), fma(u, _P1, _P0))
    b = fma(square, fma(u, _P7, _P6), fma(u, _P5, _P4))
    c = fma(square, fma(u, _P11, _P10), fma(u, _P9, _P8))
    d = fma(square, fma(u, _P15, _P14), fma(u, _P13, _P12))
    e = fma(square, _P18, fma(u, _P17, _P16))
    eighth = fourth * fourth
    high = fma(eighth, e, fma(fourth, d, c))
    return fma(eighth, high, fma(fourth, b, a)) * r * exp_fast(-s)
