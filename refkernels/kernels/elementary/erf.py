"""erf and erfc: the float64 tier, and values as double-doubles.

Values, U = 2^-53. |x| < 1/2: x g(x^2), g = erf(x)/x by a polynomial: ERF_SERIES_ERROR 4.51 U^2, the
product 2 -> SERIES 7 U^2. Else 1 - tail and, for x < 0, erfc = 1 + (1 - tail), from erf_tail.py;
beyond CERTAIN, where the tail is below TINIEST, one interval from 0 to that covers it.
erfc, |x| < TINY: 1 - 2x/sqrt(pi), next term x^3: below 2^-120 of the one before; erf below it is
2x/sqrt(pi) (1 - x^2/3): 2^-121.5, the product 2 U^2, the constant 1 -> SERIES again.
Fast. erf, |x| < 1: FAST_ERF_ERROR 2^-49.04, all roundings; x^2 stays at 2^-100 below that. Else
1 - exp(-x^2) erfcx(x): the tail's 2^-51 + 2^-47.89 + 2^-53, of at most 0.157 beside erf >= 0.842,
and one rounding -> 2^-49.9; at 6, where arguments are cut, 1 - erf is 2^-55.4. erfc: tail
FAST_ERROR 2^-46.4; for x < 0 2 - tail with one rounding -> 2^-46.3; at 12 erfc is 2^-212, below
what a Fast must resolve.
"""

import math
from typing import Any

import numpy as np

from refkernels.arithmetic.double_double import U, dd_add, dd_add_double, dd_mul, dd_mul_double
from refkernels.arithmetic.eft import fma, two_prod
from refkernels.arithmetic.jit import inner, njit
from refkernels.arithmetic.vectors import full_width
from refkernels.kernels.elementary.erf_tables import (
    ERF_SERIES,
    ERF_SERIES_PAIRS,
    FAST_ERF,
    FAST_UPPER,
    FAST_UPPER_SHIFT,
    TWO_OVER_SQRT_PI_HIGH,
    TWO_OVER_SQRT_PI_LOW,
)
from refkernels.kernels.elementary.erf_tail import (
    FARTHEST,
    erfc_tail,
    fast_tail,
    one_minus,
)
from refkernels.kernels.elementary.exponential import exp_fast
from refkernels.kernels.elementary.results import exactly, place, tiny_sum, vanishing

FAST_ERF_BOUND = 2.0**-49
FAST_ERFC_BOUND = 2.0**-46
SERIES = 7 * U**2
TINY = 2.0**-60
CERTAIN = 25.0
TINIEST = 2.0**-906  # above erfc(25)

_BLOCK = 256
_ONE, _SIX = np.float32(1.0), np.float32(6.0)
_LEAST = 2.0**-100  # of x^2, so that its powers are no subnormals, which are slow
_SERIES = np.array(ERF_SERIES)
_PAIRS = ERF_SERIES_PAIRS
_S0, _S1, _S2, _S3, _S4, _S5, _S6, _S7, _S8, _S9, _S10, _S11 = FAST_ERF
_A, _B, *_P = FAST_UPPER
_P0, _P1, _P2, _P3, _P4, _P5, _P6, _P7, _P8, _P9, _P10, _P11, _P12, _P13, _P14 = _P


@inner
def _erf_series(x: Any) -> Any:
    """erf(x) / x for 2^-400 < |x| <= 1/2 as a double-double; relative error <= 4.51 U^2."""
    sh, sl = two_prod(x, x)
    i = _SERIES.size - 1
    p = _SERIES[i]
    while i > 2 * _PAIRS:
        i -= 1
        p = fma(p, sh, _SERIES[i])
    ph, pl = dd_mul_double(sh, sl, p)
    while True:
        i -= 2
        ph, pl = dd_add(_SERIES[i], _SERIES[i + 1], ph, pl)
        if i == 0:
            return ph, pl
        ph, pl = dd_mul(ph, pl, sh, sl)


@inner
def erf(x: Any) -> Any:
    """erf(x) as (high, low, radius, scale)."""
    a = abs(x)
    if a == 0.0 or x != x:
        return exactly(x)
    sign = math.copysign(1.0, x)
    if a == math.inf:
        return exactly(sign)
    if a < TINY:
        m, exponent = math.frexp(x)
        high, low = dd_mul_double(TWO_OVER_SQRT_PI_HIGH, TWO_OVER_SQRT_PI_LOW, m)
        return place(high, low, abs(high) * SERIES, exponent)
    if a < 0.5:
        high, low = _erf_series(x)
        high, low = dd_mul_double(high, low, x)
        return high, low, abs(high) * SERIES, 0
    if a > CERTAIN:
        return sign, -sign * (0.5 * TINIEST), 0.5 * TINIEST, 0
    high, low, error, k = erfc_tail(a)
    high, low, radius = one_minus(high, low, high * error, k)
    return sign * high, sign * low, radius, 0


@inner
def erfc(x: Any) -> Any:
    """erfc(x) as (high, low, radius, scale)."""
    if not math.isfinite(x):
        return exactly(x if x != x else 1.0 - math.copysign(1.0, x))
    if x == 0.0:
        return exactly(1.0)
    if abs(x) < TINY:
        return tiny_sum(1.0, -TWO_OVER_SQRT_PI_HIGH, x, 1)
    if x > FARTHEST:
        return vanishing(1.0)
    if x > 0.0:
        high, low, error, k = erfc_tail(x)
        return place(high, low, high * error, k)
    if x < -CERTAIN:
        return 2.0, -0.5 * TINIEST, 0.5 * TINIEST, 0
    high, low, radius, _ = erf(-x)
    high, low = dd_add_double(high, low, 1.0)
    return high, low, (radius + high * (2 * U**2)) * (1.0 + 2.0**-40), 0


@njit(nogil=True)
def erf_fast(x: Any, hi: Any) -> None:
    """`Fast` of erf: relative error <= FAST_ERF_BOUND for every float32 x.

    A block computes only the parts that it needs: a sweep's neighbouring inputs need one part.
    """
    full_width()
    for start in range(0, x.size, _BLOCK):
        stop = min(start + _BLOCK, x.size)
        part, out = x[start:stop], hi[start:stop]
        near, far = 0, 0
        for i in range(part.size):
            near += abs(part[i]) < _ONE
            far += not abs(part[i]) < _SIX
        if near == part.size:
            for i in range(part.size):
                v: Any = np.float64(part[i])
                out[i] = erf_lower(v)
        elif far == part.size:
            for i in range(part.size):
                v = np.float64(part[i])
                out[i] = math.copysign(1.0, v) if v == v else v
        elif near == 0:
            for i in range(part.size):
                v = np.float64(part[i])
                out[i] = erf_upper(v) if v == v else v
        else:
            for i in range(part.size):
                v = np.float64(part[i])
                y = erf_lower(v) if abs(v) < 1.0 else erf_upper(v)
                out[i] = y if v == v else v


@inner(forceinline=True)
def erf_lower(v: Any) -> Any:
    """erf of |v| < 1; finite for all others."""
    a = abs(v)
    a = a if a < 1.0 else 1.0
    s = a * a
    s = s if s > _LEAST else _LEAST
    t = s * s
    e = t * t
    g = fma(t, fma(s, _S3, _S2), fma(s, _S1, _S0))
    g = fma(e, fma(t, fma(s, _S7, _S6), fma(s, _S5, _S4)), g)
    g = fma(e * e, fma(t, fma(s, _S11, _S10), fma(s, _S9, _S8)), g)
    return v * g


@inner(forceinline=True)
def erf_upper(v: Any) -> Any:
    """erf of |v| >= 1; 1 from 6 on."""
    a = abs(v)
    a = a if a < 6.0 else 6.0
    r = 1.0 / (a + FAST_UPPER_SHIFT)
    u = fma(-_B, r, _A)
    q = u * u
    f = q * q
    even = fma(q, fma(q, fma(q, _P14, fma(u, _P13, _P12)), fma(u, _P11, _P10)), _p89(u))
    lower = fma(f, fma(q, fma(u, _P7, _P6), fma(u, _P5, _P4)), _p03(u, q))
    p = fma(f * f, even, lower)
    return math.copysign(1.0 - p * r * exp_fast(-(a * a)), v)


@inner
def _p89(u: Any) -> Any:
    return fma(u, _P9, _P8)


@inner
def _p03(u: Any, q: Any) -> Any:
    return fma(q, fma(u, _P3, _P2), fma(u, _P1, _P0))


@njit(nogil=True)
def erfc_fast(x: Any, hi: Any) -> None:
    """`Fast` of erfc: relative error <= FAST_ERFC_BOUND for every float32 x."""
    full_width()
    for i in range(x.size):
        v: Any = np.float64(x[i])
        a = abs(v)
        a = a if a < 12.0 else 12.0
        tail = fast_tail(a * a, a)
        y = tail if v >= 0.0 else 2.0 - tail
        y = 0.0 if v == math.inf else y
        y = 2.0 if v == -math.inf else y
        hi[i] = y if v == v else v
